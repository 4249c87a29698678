// What this CANN lacks.
#pragma once

extern "C" {

// Called by the generated stand-in of each function that torch_npu wants and nobody here defines.
// Returns an ACL error code; says once on standard error which function it was.
int emulator_missing(const char* function);
}
