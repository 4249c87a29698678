// The device that the calling thread uses.
#pragma once

namespace emulator {

int current_device();  // -1 before aclrtSetDevice

}  // namespace emulator
