/* Programs of examples/ that measure something, at a small size: they end well, and their results are right. */
#include "c_hurry.h"
#include "claims.h"
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char spec[] =
    "return head { name = 'small', d = 8, dv = 8, scale = 1 / 4, gate = true, normalize = 'sum',\n"
    "  terms = power { degree = 2 } }\n";

static char folder[64], file[96];

static int setup(void **state)
{
    scratch_make(folder);
    snprintf(file, sizeof file, "%s/small.lua", folder);
    text_write(file, spec);
    return 0;
}

static int teardown(void **state)
{
    scratch_remove(folder);
    return 0;
}

/* An example with these arguments behind the spec's, the head's and the target. */
static program_result run_on(const char *target, const char *name, const char *const *arguments)
{
    char program[4096];
    const char *command = getenv("FPAC") ? getenv("FPAC") : "build/fpac";
    const char *all[10] = {program, file, "small", target};
    snprintf(program, sizeof program, "%.*s/examples/%s", (int)(strrchr(command, '/') - command), command,
             name);
    for (int i = 0; arguments[i]; i++)
        all[i + 4] = arguments[i];
    return program_run(all);
}

/* What it prints. It has to end well. */
static program_result run_example(const char *name, const char *const *arguments)
{
    program_result result = run_on("c", name, arguments);
    if (result.code)
        fail_msg("%s: %s%s", name, result.out, result.err);
    return result;
}

static void a_server_prints_a_line_for_each_number_of_slots_and_draws_them(void **state)
{
    char picture[128];
    long slots[8];
    int lines = 0;
    snprintf(picture, sizeof picture, "%s/rates.svg", folder);
    program_result result = run_example("serve", (const char *const[]){"4", picture, NULL});
    for (char *line = strchr(result.out, '\n'); line && line[1]; line = strchr(line + 1, '\n'), lines++) {
        double decoded, read;
        assert_true(lines < 8);
        assert_int_equal(sscanf(line + 1, "%ld\t%lf\t%lf", &slots[lines], &decoded, &read), 3);
        assert_true(decoded > 0 && read > 0);
    }
    assert_int_equal(lines, 3);
    assert_true(slots[0] == 1 && slots[1] == 2 && slots[2] == 4);
    char *svg = text_read(picture, NULL);
    assert_non_null(svg);
    assert_non_null(strstr(svg, "<polyline"));
    assert_non_null(strstr(svg, "small on c"));
    free(svg);
    program_free(&result);
}

static void a_server_that_finds_no_gpu_says_so(void **state)
{
    program_result result = run_on("cuda", "serve", (const char *const[]){"1", NULL});
    const bool found = result.code == 0;
    if (!found) {
        assert_int_equal(result.code, 1);
        assert_non_null(strstr(result.err, "there is no GPU here"));
    }
    program_free(&result);
    if (found)
        skip();
}

/* How many pieces the example says that it had; all together they are the sequence. */
static int count_pieces(const char *out, long tokens)
{
    static const char before[] = "pieces of";
    const char *at = strstr(out, before);
    int count = 0;
    long sum = 0;
    assert_non_null(at);
    for (at += strlen(before); *at == ' '; count++) {
        char *end;
        const long piece = strtol(at, &end, 10);
        assert_true(piece > 0);
        sum += piece;
        at = end;
    }
    assert_int_equal(sum, tokens);
    return count;
}

/* The example compares pieces with one pass, and fails where they differ. The first device of several has the first piece and the last. */
static void pieces_of_a_sequence_are_one_pass(void **state)
{
    static const char *const devices[] = {"1", "2", "5"};
    static const int pieces[] = {1, 3, 6};
    for (int i = 0; i < 3; i++) {
        program_result result =
            run_example("context_parallel", (const char *const[]){"1001", devices[i], NULL});
        assert_non_null(strstr(result.out, "results differ by"));
        assert_int_equal(count_pieces(result.out, 1001), pieces[i]);
        program_free(&result);
    }
}

int main(void)
{
    c_hurry();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_prints_a_line_for_each_number_of_slots_and_draws_them),
        cmocka_unit_test(a_server_that_finds_no_gpu_says_so),
        cmocka_unit_test(pieces_of_a_sequence_are_one_pass),
    };
    return cmocka_run_group_tests_name("examples", tests, setup, teardown);
}
