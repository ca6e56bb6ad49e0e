/* open_fixture: a folder with a toy's spec, a cache, and a compiler that notes each call. */
#ifndef FPAC_TESTS_OPEN_FIXTURE_H
#define FPAC_TESTS_OPEN_FIXTURE_H

#include <stdlib.h>

#include "claims.h"
#include "scratch.h"
#include "toy.h"

/* Kernels are compiled by a script that notes each call, so that tests can count compilations. */
typedef struct fixture {
    char folder[64], cache[96], bundle[96], compiler[96], calls[96], specs[96];
    fpa_options options;
    scratch_log log;
} fixture;

static inline int make_fixture(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    char script[512];
    scratch_make(f->folder);
    snprintf(f->cache, sizeof f->cache, "%s/cache", f->folder);
    snprintf(f->bundle, sizeof f->bundle, "%s/bundle", f->folder);
    snprintf(f->compiler, sizeof f->compiler, "%s/cc", f->folder);
    snprintf(f->calls, sizeof f->calls, "%s/calls", f->folder);
    snprintf(f->specs, sizeof f->specs, "%s/toy.lua", f->folder);
    snprintf(script, sizeof script, "#!/bin/sh\necho call >>%s\nexec gcc \"$@\"\n", f->calls);
    scratch_write(f->compiler, script, strlen(script));
    scratch_write(f->calls, "", 0);
    scratch_write(f->specs, TOY_SPEC, strlen(TOY_SPEC));
    f->options = (fpa_options){
        .cache_dir = f->cache, .compiler = f->compiler, .log = scratch_record, .log_user = &f->log};
    *state = f;
    return chmod(f->compiler, 0755);
}

static inline int drop_fixture(void **state)
{
    fixture *f = *state;
    scratch_remove(f->folder);
    free(f);
    return 0;
}

static inline int compilations(const fixture *f)
{
    struct stat facts;
    assert_int_equal(stat(f->calls, &facts), 0);
    return (int)(facts.st_size / (off_t)strlen("call\n"));
}

static inline fpa_kernel *open_toy(fixture *f)
{
    fpa_error error = {0};
    fpa_kernel *kernel = NULL;
    assert_ok(fpa_open(f->specs, NULL, &f->options, &kernel, &error), &error);
    return kernel;
}

/* Open, use, close; true when it was taken from the cache. */
static inline bool comes_from_cache(fixture *f)
{
    fpa_kernel *kernel = open_toy(f);
    bool cached = fpa_describe(kernel)->from_cache;
    assert_true(toy_works(kernel));
    fpa_close(kernel);
    return cached;
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_fixture, drop_fixture)

#endif
