#include "command_place.h"
#include "claims.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char tiny_spec[] =
    "return head { name = 'tiny', d = 4, dv = 4, terms = tspow { d = 4, degree = 2, block = 2 } }\n";

const char two_heads_spec[] = "return {\n"
                              "  head { name = 'one', d = 4, dv = 4, terms = linear {} },\n"
                              "  head { name = 'two', d = 4, dv = 4, terms = power { degree = 2 } },\n"
                              "}\n";

void place_begin(place *here, const char *spec)
{
    scratch_make(here->folder);
    snprintf(here->spec, sizeof here->spec, "%s/spec.lua", here->folder);
    text_write(here->spec, spec);
}

void place_file(const place *here, const char *name, char path[PATH])
{
    snprintf(path, PATH, "%s/%s", here->folder, name);
}

void expect(program_result result, int code, const char *out, const char *err)
{
    if (result.code != code)
        fail_msg("exit code %d, but %d is expected; stderr: %s", result.code, code, result.err);
    if (out && !strstr(result.out, out))
        fail_msg("stdout lacks '%s': %s", out, result.out);
    if (err && !strstr(result.err, err))
        fail_msg("stderr lacks '%s': %s", err, result.err);
    program_free(&result);
}

/* Whether `fpac list` says that of a CUDA target: nothing of the kind is tried a second time here. */
static bool list_says(const char *what)
{
    program_result result = RUN("fpac", "list");
    bool said = strstr(result.out, what) != NULL;
    assert_non_null(strstr(result.out, "cuda:sm_90"));
    program_free(&result);
    return said;
}

bool nvrtc_is_here(void)
{
    return list_says("compiles it;");
}

bool gpu_is_here(void)
{
    return list_says("; runs here");
}
