// Errors that torch_npu raises at the next synchronization, as with TASK_QUEUE_ENABLE=2: another thread calls CANN there.
#pragma once

#include <c10/util/Exception.h>

#include "arguments.h"

namespace emulator {

// Keeps an error of a call of CANN, the first alone, and returns whether it does: not where errors are raised at once.
bool keep_for_later(const c10::Error& error);
// Raises what is kept, in torch_npu's words, once.
void surface();
// Raises it where a call waits for the device: a copy to the host.
void surface_if_waiting(const std::string& name, Arguments& arguments);

}  // namespace emulator
