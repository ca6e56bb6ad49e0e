/* nvrtc_hurry: NVRTC without most of its optimisation, a quarter of its time. For tests whose claims are about other things
 * than what it makes of kernels: that they get compiled, and what becomes of the cubins. */
#ifndef FPAC_TESTS_NVRTC_HURRY_H
#define FPAC_TESTS_NVRTC_HURRY_H

#include <stdbool.h>

/* True when it will. By $FPA_NVRTC_FLAGS, unless that is set, FPA_TEST_ALL asks for everything, or NVRTC is older than the option. This process looks
 * for no NVRTC meanwhile. */
bool nvrtc_hurry(void);
void nvrtc_hurry_no_more(void);

#endif
