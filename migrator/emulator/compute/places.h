// Which line of the program an operator belongs to.
#pragma once

namespace emulator {

// Asks Python for the place that runs now: its number, or -1 where there is none.
int current_place();
// As above; in a backward pass, where the operator was called whose derivative is computed.
int place_of_operator(bool backward);

}  // namespace emulator
