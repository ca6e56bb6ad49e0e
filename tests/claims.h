/* claims: what every test includes: CMocka with the headers that it needs, and calls that must succeed. */
#ifndef FPAC_TESTS_CLAIMS_H
#define FPAC_TESTS_CLAIMS_H

#include "base/error.h" /* first: CMocka's macro hides its function */
#undef fail

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* The call gave FPA_OK, or the test fails with what *error says. */
#define assert_ok(call, error)                                                                               \
    do {                                                                                                     \
        if (call)                                                                                            \
            fail_msg("%s: %s", (error)->where, (error)->message);                                            \
    } while (0)

#endif
