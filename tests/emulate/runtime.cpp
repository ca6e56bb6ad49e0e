/* runtime: what all emulated files have in common, compiled once; each library has its own. */
#define EMULATE_RUNTIME
#include "ptx.h"

#include "cuda_call.h"
#include "launch.h"
