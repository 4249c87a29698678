// How much memory of each device is in use, by all processes of one launch together.
#pragma once

#include <cstddef>

namespace emulator {

bool take(int device, size_t size);  // false: the device has not so much left
void give_back(int device, size_t size);
size_t memory_in_use(int device);

}  // namespace emulator
