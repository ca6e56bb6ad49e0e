/* nvrtc_fixture: options that record the log, and a look whether NVRTC is here. */
#ifndef FPAC_TESTS_NVRTC_FIXTURE_H
#define FPAC_TESTS_NVRTC_FIXTURE_H

#include <stdlib.h>

#include "runtime/cuda/build.h"
#include "claims.h"
#include "scratch.h"

typedef struct fixture {
    fpa_options options;
    scratch_log log;
} fixture;

static inline int make_fixture(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->options = (fpa_options){.log = scratch_record, .log_user = &f->log};
    *state = f;
    return 0;
}

static inline int drop_fixture(void **state)
{
    free(*state);
    return 0;
}

/* Only a machine where NVRTC may not be fetched has none. */
static inline void need_nvrtc(void)
{
    const char *version;
    fpa_error error;
    if (nvrtc_find(&version, &error)) {
        print_message("%s\n", error.message);
        skip();
    }
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_fixture, drop_fixture)

#endif
