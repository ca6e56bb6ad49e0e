/* Specs end: whatever they do in Lua or in the vocabulary's C functions is counted, and so are heads and files. */
#include "base/clock.h"
#include "gen/spec/spec.h"
#include "claims.h"
#include "scratch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The seconds that are allowed while the text is read. */
static fpa_status load(const char *folder, const char *text, const char *seconds, fpa_error *error)
{
    fpa_head_list list;
    *error = (fpa_error){0};
    if (seconds)
        setenv("FPA_SPEC_SECONDS", seconds, 1);
    fpa_status status = spec_load_text("mine.lua", folder, text, strlen(text), &list, error);
    unsetenv("FPA_SPEC_SECONDS");
    if (status == FPA_OK)
        head_list_free(&list);
    return status;
}

/* Each of them ran for minutes or for ever, since it spends its time in C. */
static void what_is_done_in_c_is_counted_as_well(void **state)
{
    static const struct {
        const char *text, *what;
    } cases[] = {
        {"while true do local row = orthogonal { rows = 300, d = 300, seed = 1 }[1] end",
         "still running after 1 seconds"},
        {"local t = {}\nfor i = 1, 30 do t = { t, t } end\nreturn head { name = 'x', d = 4, terms = t }",
         "still running after"},
        {"local row, rows = {}, {}\nfor i = 1, 1024 do row[i] = i end\n"
         "for i = 1, 2000 do rows[i] = row end\nwhile true do dense(rows) end",
         "still running after"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fpa_error error;
        const double start = clock_seconds();
        assert_int_equal(load(NULL, cases[i].text, "1", &error), FPA_INVALID);
        assert_non_null(strstr(error.message, cases[i].what));
        assert_true(clock_seconds() - start < 20); /* with sanitizers, on a busy machine */
    }
}

static void a_largest_orthogonal_matrix_is_within_the_limits(void **state)
{
    fpa_error error;
    assert_int_equal(load(NULL,
                          "local m = orthogonal { rows = 512, d = 512, seed = 1 }\n"
                          "return head { name = 'x', d = 512, dv = 4, terms = { term { dense(m) } } }",
                          NULL, &error),
                     FPA_OK);
}

static void heads_are_counted_while_the_spec_holds_them(void **state)
{
    fpa_error error;
    assert_int_equal(
        load(NULL,
             "local l = {}\n"
             "for i = 1, 100000 do l[i] = head { name = 'h' .. i, d = 4, terms = linear {} } end\nreturn l",
             NULL, &error),
        FPA_INVALID);
    assert_string_equal(error.message, "needs more than 256 MiB of memory, the limit for a spec");
    assert_string_equal(error.where, "mine.lua:2");
    assert_int_equal(load(NULL,
                          "for i = 1, 40000 do head { name = 'h' .. i, d = 4, terms = linear {} } end\n"
                          "return head { name = 'x', d = 4, terms = linear {} }",
                          NULL, &error),
                     FPA_OK);
}

/* A .npy file of that shape whose numbers are a hole. */
static void write_sparse(const char *path, long long rows, long long columns)
{
    static const char start[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
    char header[128];
    memset(header, ' ', sizeof header);
    memcpy(header, start, sizeof start);
    int size = snprintf(header + sizeof start, sizeof header - sizeof start,
                        "{'descr': '<f8', 'fortran_order': False, 'shape': (%lld, %lld), }", rows, columns);
    header[sizeof start + (size_t)size] = ' ';
    header[127] = '\n';
    scratch_write(path, header, sizeof header);
    assert_int_equal(truncate(path, (off_t)(128 + 8 * rows * columns)), 0);
}

static long peak_kilobytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void files_are_looked_at_before_they_are_read(void **state)
{
    char folder[64], path[96];
    fpa_error error;
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/large.npy", folder);
    write_sparse(path, 65536, 6144);
    const long before = peak_kilobytes();
    assert_int_equal(load(folder, "npy 'large.npy'", NULL, &error), FPA_INVALID);
    assert_non_null(strstr(error.message, "is 65536 x 6144, but at most 65536 x 1024 is allowed"));
    write_sparse(path, 65536, 1024);
    assert_int_equal(load(folder, "npy 'large.npy'", NULL, &error), FPA_INVALID);
    assert_non_null(strstr(error.message, "has 67108864 numbers, more than there is memory for"));
    assert_true(peak_kilobytes() - before < 64 * 1024);
    write_sparse(path, 3, 4);
    assert_int_equal(load(folder,
                          "assert(#npy 'large.npy' == 3)\n"
                          "return head { name = 'x', d = 4, terms = linear {} }",
                          NULL, &error),
                     FPA_OK);
    scratch_remove(folder);
}

static void a_fifo_is_no_matrix_and_is_not_waited_for(void **state)
{
    char folder[64], path[96];
    fpa_error error;
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/fifo.npy", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20);
    assert_int_equal(load(folder, "npy 'fifo.npy'", NULL, &error), FPA_INVALID);
    assert_non_null(strstr(error.message, "is not a regular file"));
    alarm(0);
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_looked_at_before_they_are_read),
        cmocka_unit_test(a_fifo_is_no_matrix_and_is_not_waited_for),
        cmocka_unit_test(heads_are_counted_while_the_spec_holds_them),
        cmocka_unit_test(a_largest_orthogonal_matrix_is_within_the_limits),
        cmocka_unit_test(what_is_done_in_c_is_counted_as_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
