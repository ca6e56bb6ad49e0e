/* fpac report, looked at: headless Chromium lays pages out, narrow and wide, light and dark (tools/page-look.py). All of it
 * is dear, and skipped where there is no browser. */
#include "c_hurry.h"
#include "claims.h"
#include "command_place.h"
#include "dear.h"
#include "program.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* tools/page-look.py said why it did not look: no browser, or (127) no Python. */
static bool did_not_look(int code)
{
    return code == 3 || code == 127;
}

/* Every page that make gallery writes, and one with a verdict and times. */
static void a_browser_finds_nothing_wrong(void **state)
{
    place here;
    char out[PATH], line[3 * PATH];
    if (!dear_tests())
        skip();
    place_begin(&here, tiny_spec);
    place_file(&here, "pages", out);
    snprintf(line, sizeof line, "\"$FPAC\" report specs/*.lua specs/models/*.lua -o %s", out);
    expect(RUN("/bin/sh", "-c", line), 0, NULL, NULL);
    snprintf(line, sizeof line, "%s/verified.html", out);
    expect(RUN("fpac", "report", here.spec, "--verify", "--measure", "-o", line), 0, NULL, NULL);
    snprintf(line, sizeof line, "tools/page-look.py %s/*.html", out);
    program_result result = RUN("/bin/sh", "-c", line);
    const int code = result.code;
    print_message("%s%s", result.out, result.err);
    program_free(&result);
    scratch_remove(here.folder);
    if (did_not_look(code))
        skip();
    assert_int_equal(code, 0);
}

/* What the look is for is found. */
static void a_browser_finds_what_is_wrong(void **state)
{
    static const char bad[] =
        "<!DOCTYPE html><html><body style=\"width:2000px;background:#fff;color:#ccc\"><p>pale</p>"
        "<svg width=\"9\" height=\"9\"></svg><img src=\"missing.png\">"
        "<script>console.log('said'); throw 1</script></body></html>";
    static const char *const told[] = {"pixels wide",
                                       "has a contrast of 1.6",
                                       "a picture without a title",
                                       "writes to the console",
                                       "throws ",
                                       "asks for "};
    place here;
    char path[PATH];
    if (!dear_tests())
        skip();
    place_begin(&here, tiny_spec);
    place_file(&here, "bad.html", path);
    text_write(path, bad);
    program_result result = RUN("tools/page-look.py", path);
    const int code = result.code;
    for (size_t i = 0; !did_not_look(code) && i < sizeof told / sizeof *told; i++) {
        if (!strstr(result.out, told[i]))
            fail_msg("'%s' is not told: %s%s", told[i], result.out, result.err);
    }
    program_free(&result);
    scratch_remove(here.folder);
    if (did_not_look(code))
        skip();
    assert_int_equal(code, 1);
}

int main(void)
{
    c_hurry();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_browser_finds_nothing_wrong),
        cmocka_unit_test(a_browser_finds_what_is_wrong),
    };
    return cmocka_run_group_tests_name("report, looked at", tests, NULL, NULL);
}
