/* Nothing that the library writes or reads depends on the locale of the program that it is in. */
#include "claims.h"
#include "comma_locale.h"
#include "command/bundle.h"
#include "gen/gen.h"
#include "program.h"
#include "runtime/store/manifest.h"
#include "toy.h"

#include <stdlib.h>

/* Weights, a scale and a normaliser whose decimals get into every text. */
static const char spec[] =
    "return head { name = 'thirds', d = 4, dv = 4, chunk = 4, scale = 0.3,\n"
    "  normalize = 'sum', eps = 1e-3,\n"
    "  terms = { linear { weight = 1 / 3 }, spow { d = 4, degree = 2, weight = 0.7 },\n"
    "    term { dense {{ 0.1, 0.2, 0.5, 1.5 }}, weight = 2.5 } } }\n";

typedef struct fixture {
    char folder[64], spec[96], plain[96], local[96], cache[96];
    fpa_options options;
    scratch_log log;
} fixture;

static int make_fixture(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    scratch_make(f->folder);
    snprintf(f->spec, sizeof f->spec, "%s/thirds.lua", f->folder);
    snprintf(f->plain, sizeof f->plain, "%s/plain", f->folder);
    snprintf(f->local, sizeof f->local, "%s/local", f->folder);
    snprintf(f->cache, sizeof f->cache, "%s/cache", f->folder);
    scratch_write(f->spec, spec, strlen(spec));
    f->options = (fpa_options){.cache_dir = f->cache, .log = scratch_record, .log_user = &f->log};
    *state = f;
    return 0;
}

static int drop_fixture(void **state)
{
    fixture *f = *state;
    comma_locale_leave();
    scratch_remove(f->folder);
    free(f);
    return 0;
}

static char locales[64]; /* folder of the locale that is made, if none is installed */

static void enter_or_skip(void)
{
    if (comma_locale_enter(locales))
        return;
    print_message("skipped: no locale with a decimal comma is installed, and localedef can make none\n");
    skip();
}

static void write_bundle(fixture *f, const char *folder)
{
    static const char *const best[] = {"c"};
    fpa_head_list list;
    fpa_error error = {0};
    if (spec_load(f->spec, &list, &error) ||
        bundle_write(list.heads, list.count, folder, best, 1, (bundle_parts){.objects = true}, &f->options,
                     &error))
        fail_msg("%s: %s", error.where, error.message);
    head_list_free(&list);
}

/* Every file of one folder is in the other, with the same bytes. */
static void expect_same_files(const char *some, const char *other)
{
    DIR *list = opendir(some);
    int count = 0;
    assert_non_null(list);
    for (struct dirent *item = readdir(list); item; item = readdir(list)) {
        if (item->d_name[0] == '.')
            continue;
        char path[512], twin[512];
        size_t size, same;
        snprintf(path, sizeof path, "%s/%s", some, item->d_name);
        snprintf(twin, sizeof twin, "%s/%s", other, item->d_name);
        char *bytes = text_read(path, &size), *again = text_read(twin, &same);
        assert_non_null(bytes);
        if (!again || size != same || memcmp(bytes, again, size) != 0)
            fail_msg("%s is another text under a locale with a comma", item->d_name);
        free(bytes);
        free(again);
        count++;
    }
    closedir(list);
    assert_int_equal(count, scratch_count(other, NULL));
    assert_true(count >= 5);
}

static void expect_works(const fpa_kernel *kernel)
{
    toy_call call;
    fpa_error error;
    toy_fill(&call);
    assert_int_equal(toy_forward(kernel, FPA_FORM_AUTO, &call.operands, &error), FPA_OK);
    assert_true(isfinite(call.o[0]));
    assert_true(comma_locale_rules());
}

static void a_bundle_has_the_same_bytes_under_a_comma(void **state)
{
    fixture *f = *state;
    write_bundle(f, f->plain);
    enter_or_skip();
    write_bundle(f, f->local);
    assert_true(comma_locale_rules());
    expect_same_files(f->plain, f->local);
}

static void a_bundle_opens_under_a_comma(void **state)
{
    fixture *f = *state;
    fpa_error error = {0};
    fpa_kernel *kernel = NULL;
    write_bundle(f, f->plain);
    enter_or_skip();
    for (int again = 0; again < 2; again++) { /* verified, then with the verdict of the cache */
        assert_ok(fpa_open_bundle(f->plain, NULL, &f->options, &kernel, &error), &error);
        assert_null(strchr(fpa_describe(kernel)->verdict, '\n'));
        assert_non_null(strchr(fpa_describe(kernel)->verdict, '.'));
        expect_works(kernel);
        fpa_close(kernel);
    }
    assert_null(strstr(f->log.text, "damaged"));
}

/* One entry, one key, one verdict: whatever the locale of the program that stored it. */
static void an_entry_of_the_cache_serves_programs_of_every_locale(void **state)
{
    fixture *f = *state;
    fpa_error error = {0};
    fpa_kernel *kernel = NULL;
    char verdict[512];
    enter_or_skip();
    for (int open = 0; open < 3; open++) {
        if (open == 2)
            comma_locale_leave();
        assert_ok(fpa_open_text("thirds.lua", spec, NULL, &f->options, &kernel, &error), &error);
        assert_int_equal(fpa_describe(kernel)->from_cache, open > 0);
        if (open == 0)
            snprintf(verdict, sizeof verdict, "%s", fpa_describe(kernel)->verdict);
        assert_string_equal(fpa_describe(kernel)->verdict, verdict);
        if (open < 2)
            expect_works(kernel);
        fpa_close(kernel);
        assert_int_equal(fpa_open(f->spec, NULL, &f->options, &kernel, &error), FPA_OK);
        assert_int_equal(fpa_describe(kernel)->from_cache, 1);
        fpa_close(kernel);
    }
    assert_int_equal(scratch_count(f->cache, ".fpa"), 1);
    assert_null(strstr(f->log.text, "again"));
}

static void facts_and_heads_are_read_under_a_comma(void **state)
{
    fixture *f = *state;
    fpa_error error = {0};
    fpa_facts facts = {.name = "a", .target = "c", .features = 1, .flop = {0.5, 1.0 / 3, 1e30}}, read;
    fpa_head_list list;
    fpa_head *again;
    const char *rest;
    char *plain = facts_print(&facts);
    enter_or_skip();
    char *local = facts_print(&facts);
    assert_string_equal(plain, local);
    assert_int_equal(facts_parse("facts", plain, &read, &rest, &error), FPA_OK);
    assert_true(read.flop[1] == facts.flop[1]);
    free(plain);
    free(local);
    assert_int_equal(spec_load(f->spec, &list, &error), FPA_OK);
    char *text = head_print(list.heads[0]);
    assert_int_equal(head_parse(text, strlen(text), &again, &error), FPA_OK);
    comma_locale_leave();
    char *later = head_print(again);
    assert_string_equal(text, later);
    free(text);
    free(later);
    head_free(again);
    head_list_free(&list);
}

/* The command, as a German's shell starts it. */
static void the_command_writes_opens_and_runs_under_a_comma(void **state)
{
    fixture *f = *state;
    char q[128], k[128], v[128], o[128];
    const char *const names[] = {"q", "k", "v"};
    char *paths[] = {q, k, v};
    fpa_kernel *kernel;
    fpa_error error = {0};
    enter_or_skip();
    setenv("FPA_CACHE_DIR", f->cache, 1);
    program_result gen = RUN("fpac", "gen", f->spec, "-o", f->local, "--object");
    if (gen.code)
        fail_msg("%s", gen.err);
    program_free(&gen);
    assert_int_equal(fpa_open_bundle(f->local, NULL, &f->options, &kernel, &error), FPA_OK);
    expect_works(kernel);
    fpa_close(kernel);
    program_result new = RUN("fpac", "new", "mine", "-o", f->plain);
    program_free(&new);
    for (int i = 0; i < 3; i++) {
        /* NumPy's format: [1, 2, 1, 4] float32 */
        char header[128] = "\x93NUMPY\x01\x00\x76\x00";
        float bytes[32 + 8];
        memset(header + 10, ' ', 118);
        memcpy(header + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 1, 4), }", 65);
        header[127] = '\n';
        memcpy(bytes, header, 128);
        for (int j = 0; j < 8; j++)
            bytes[32 + j] = (float)(j + i) / 8;
        snprintf(paths[i], 128, "%s/%s.npy", f->folder, names[i]);
        scratch_write(paths[i], bytes, sizeof bytes);
    }
    snprintf(o, sizeof o, "%s/o.npy", f->folder);
    program_result run = RUN("fpac", "run", f->spec, "--q", q, "--k", k, "--v", v, "-o", o);
    if (run.code)
        fail_msg("%s", run.err);
    program_free(&run);
    program_result explain = RUN("fpac", "explain", f->spec, "--dump=source");
    assert_int_equal(explain.code, 0);
    assert_non_null(strstr(explain.out, "0.333333"));
    assert_null(strstr(explain.out, "0,333333"));
    program_free(&explain);
    unsetenv("FPA_CACHE_DIR");
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_fixture, drop_fixture)

static int make_locales(void **state)
{
    scratch_make(locales);
    return 0;
}

static int drop_locales(void **state)
{
    scratch_remove(locales);
    return 0;
}

int main(void)
{
    toy_hurry();
    const struct CMUnitTest tests[] = {
        CLAIM(a_bundle_has_the_same_bytes_under_a_comma),
        CLAIM(a_bundle_opens_under_a_comma),
        CLAIM(an_entry_of_the_cache_serves_programs_of_every_locale),
        CLAIM(facts_and_heads_are_read_under_a_comma),
        CLAIM(the_command_writes_opens_and_runs_under_a_comma),
    };
    return cmocka_run_group_tests(tests, make_locales, drop_locales);
}
