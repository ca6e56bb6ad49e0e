/* c_hurry: C kernels without optimisation, half their compiler's time or less, for tests whose claims are about other things than
 * what it makes of them; those of `make test-all` are as users have them. */
#ifndef FPAC_TESTS_C_HURRY_H
#define FPAC_TESTS_C_HURRY_H

#include <stdlib.h>
#include <string.h>

/* By $FPA_CFLAGS, unless that is set: the flags of sanitizers stay. */
static inline void c_hurry_at(const char *level)
{
    const char *all = getenv("FPA_TEST_ALL");
    if (!all || !*all || strcmp(all, "0") == 0)
        setenv("FPA_CFLAGS", level, 0);
    setenv("OMP_WAIT_POLICY", "passive", 0);
}

static inline void c_hurry(void)
{
    c_hurry_at("-O0");
}

/* Where they run as long as they are compiled: -Og takes a third more to compile, and they run in a fifth of the time. */
static inline void c_hurry_a_little(void)
{
    c_hurry_at("-Og");
}

#endif
