/* emit: the text of every shipped head, for every target. */
#include "claims.h"
#include "dear.h"
#include "gen/gen.h"
#include "runtime/store/manifest.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static fpa_head_list shipped[64];
static int shipped_count;

static int load_shipped(void **state)
{
    struct dirent **names;
    int count = scandir("specs", &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char path[512];
        fpa_error error = {0};
        const char *dot = strrchr(names[i]->d_name, '.');
        snprintf(path, sizeof path, "specs/%s", names[i]->d_name);
        if (dot && !strcmp(dot, ".lua") && spec_load(path, &shipped[shipped_count++], &error))
            return fprintf(stderr, "%s: %s\n", error.where, error.message), -1;
        free(names[i]);
    }
    free(names);
    return shipped_count ? 0 : -1;
}

static int free_shipped(void **state)
{
    for (int i = 0; i < shipped_count; i++)
        head_list_free(&shipped[i]);
    return 0;
}

static void each_head(void (*check)(const fpa_head *head))
{
    for (int i = 0; i < shipped_count; i++)
        for (int h = 0; h < shipped[i].count; h++)
            check(shipped[i].heads[h]);
}

static void generate(const fpa_head *head, const char *target, fpa_source *source)
{
    fpa_error error = {0};
    if (source_generate(head, target, source, &error))
        fail_msg("%s for %s: %s: %s", head->name, target, error.where, error.message);
}

/* make test: every third head. */
static void check_same(const fpa_head *head)
{
    static int turn;
    fpa_source first, second;
    if (!dear_tests() && turn++ % 3)
        return;
    generate(head, "c:avx512", &first);
    generate(head, "c:avx512", &second);
    assert_string_equal(first.code, second.code);
    assert_string_equal(first.header, second.header);
    assert_non_null(strstr(first.code, "do not edit"));
    source_free(&first);
    source_free(&second);
}

static void the_same_head_gives_the_same_bytes(void **state)
{
    each_head(check_same);
}

/* Cached modules come with them as text. make test: of every third head for one target, by turns. */
static void check_facts(const fpa_head *head)
{
    static const char *const targets[] = {"c:avx2", "cuda:sm_80", "cuda:sm_90a"};
    static int turn;
    turn++;
    for (int i = 0; i < 3; i++) {
        fpa_source source;
        fpa_facts facts;
        fpa_error error = {0};
        const char *rest;
        if ((!dear_tests() && i != turn % 9) || source_generate(head, targets[i], &source, &error))
            continue; /* not for this target */
        char *text = facts_print(&source.facts);
        assert_non_null(text);
        assert_int_equal(facts_parse("facts", text, &facts, &rest, &error), FPA_OK);
        assert_string_equal(rest, "");
        assert_string_equal(facts.name, head->name);
        assert_memory_equal(facts.flop, source.facts.flop, sizeof facts.flop);
        char *again = facts_print(&facts);
        assert_string_equal(again, text);
        free(again);
        free(text);
        source_free(&source);
    }
}

static void facts_come_back_from_their_text(void **state)
{
    each_head(check_facts);
    assert_int_equal(strlen(generator_digest), 64);
}

static bool on_path(const char *program)
{
    char command[256];
    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", program);
    return system(command) == 0;
}

/* Feed a text to a compiler; the check is its exit status, its words go to the log. */
static void check_compiler(const char *compiler, const char *how, const fpa_target *target,
                           const fpa_head *head, const char *text)
{
    char command[512];
    snprintf(command, sizeof command, "%s -std=gnu11 %s -Wall -Wextra -Werror -fopenmp %s -x c - 2>&1",
             compiler, how, target->march);
    FILE *in = popen(command, "w");
    assert_non_null(in);
    fputs(text, in);
    if (pclose(in) != 0)
        fail_msg("%s %s refuses %s for %s", compiler, how, head->name, target->name);
}

static const char *const native[] = {"gcc", "clang"}, *const cross[] = {"aarch64-linux-gnu-gcc"};

/* Whether a text has a function that none had before it for its target. */
static bool brings_function(const fpa_head *head, const fpa_target *target, const char *code)
{
    enum { MOST_TARGETS = 64 };
    static function_set sets[MOST_TARGETS];
    int t = 0;
    while (target_at(t) != target)
        t++;
    assert_true(t < MOST_TARGETS);
    const size_t before = sets[t].count;
    function_set_add_plain(&sets[t], code, head->name);
    return sets[t].count > before;
}

/* NVRTC's targets: test_cuda_compile. */
static void check_target(const fpa_head *head, const fpa_target *target, int number)
{
    const bool here = !strcmp(target->machine, target_best()->machine);
    const char *const *compilers = here ? native : cross;
    fpa_source source;
    generate(head, target->name, &source);
    const bool wanted = dear_tests() || brings_function(head, target, source.code);
    for (int c = 0; c < (here ? 2 : 1); c++)
        if (wanted && on_path(compilers[c]) && (dear_tests() || !here || c == number % 2))
            check_compiler(compilers[c], "-fsyntax-only -O1", target, head, source.code);
    source_free(&source);
}

/* Every head for every target by each compiler in make test-all; in make test by turns, so that a head meets one target
 * and each target both compilers, and of a target's heads those that have a function which none before them had. */
static void check_targets(const fpa_head *head)
{
    static int number;
    int of = 0, targets = 0;
    for (int t = 0; t < target_count(); t++)
        targets += target_at(t)->backend == BACKEND_C;
    for (int t = 0; t < target_count(); t++)
        if (target_at(t)->backend == BACKEND_C && (dear_tests() || of++ == number % targets))
            check_target(head, target_at(t), number / targets);
    number++;
}

static void gcc_and_clang_accept_heads_for_every_target_without_a_warning(void **state)
{
    for (int i = 0; i < 2; i++)
        print_message("%s: %s\n", native[i], on_path(native[i]) ? "used" : "not installed, skipped");
    print_message("%s: %s\n", cross[0], on_path(cross[0]) ? "used" : "not installed, skipped");
    each_head(check_targets);
}

/* make test: one type, by gcc at one level, by turns of the targets, gradients at the other one; make test-all: both types by both
 * compilers. */
static void check_optimised(const fpa_head *head, int target, const fpa_source *source, int type, int turns)
{
    static const char *const levels[] = {"-O2 -fPIC -c -o /dev/null", "-O3 -fPIC -c -o /dev/null"};
    for (int level = 0; level < 2; level++) {
        const bool turn = level == (target / 2 + turns) % 2 && type == target % 2;
        if (dear_tests() || turn)
            check_compiler("gcc", levels[level], target_at(target), head, source->code);
        if (on_path("clang") && dear_tests())
            check_compiler("clang", levels[level], target_at(target), head, source->code);
    }
}

/* What gcc, and maybe clang, warns of only after it has put functions together and made vectors: conversions of what
 * is stored in 16 bits. Gradients in make test for the best target. */
static void optimised_code_of_narrow_storage_has_no_warning(void **state)
{
    static const char *const types[] = {"bf16", "f16"};
    fpa_error error;
    if (strcmp(target_best()->machine, "x86_64") || !on_path("gcc"))
        skip();
    for (int type = 0; type < 2; type++) {
        char spec[192];
        fpa_head_list list;
        snprintf(spec, sizeof spec,
                 "return head { name = 'narrow', d = 20, dv = 17, dtype = '%s', state_dtype = '%s',\n"
                 "  terms = linear {} }",
                 types[type], types[type]);
        assert_int_equal(spec_load_text("types.lua", NULL, spec, strlen(spec), &list, &error), FPA_OK);
        for (int t = 0; t < target_count(); t++) {
            fpa_source source;
            if (target_at(t)->backend != BACKEND_C || strcmp(target_at(t)->machine, "x86_64"))
                continue;
            generate(list.heads[0], target_at(t)->name, &source);
            check_optimised(list.heads[0], t, &source, type, 0);
            source_free(&source);
            if (!dear_tests() && target_at(t) != target_best())
                continue;
            assert_int_equal(source_generate_backward(list.heads[0], target_at(t)->name, &source, &error),
                             FPA_OK);
            check_optimised(list.heads[0], t, &source, type, 1);
            source_free(&source);
        }
        head_list_free(&list);
    }
}

/* Maps of which neither the value nor the slope needs the argument, and its square of x least of all. */
static void gradients_of_made_coordinates_have_no_warning(void **state)
{
    static const char *const made[] = {"identity(), square = 0.5",
                                       "identity(), map = one, square = 0.5, shift = 1",
                                       "{ dense{{1,2,3}}, dense{{3,2,1}} }, gain = 2",
                                       "identity(), map_q = one, map_k = exp, square = 0.5, angle = 'a'"};
    fpa_error error = {0};
    if (!on_path("gcc"))
        skip();
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        char spec[256];
        fpa_head_list list;
        fpa_source source;
        snprintf(spec, sizeof spec,
                 "return head { name = 'made', d = 3, %s terms = term { coordinates { %s } } }",
                 strstr(made[i], "angle") ? "positions = 1," : "", made[i]);
        assert_int_equal(spec_load_text("made.lua", NULL, spec, strlen(spec), &list, &error), FPA_OK);
        assert_int_equal(source_generate_backward(list.heads[0], target_best()->name, &source, &error),
                         FPA_OK);
        check_compiler("gcc", "-fsyntax-only -O1", target_best(), list.heads[0], source.code);
        source_free(&source);
        head_list_free(&list);
    }
}

/* A program that includes the header and calls the kernel, without any file of fpac. */
static void check_header(const fpa_head *head)
{
    fpa_source source;
    char *text = NULL;
    generate(head, target_best()->name, &source);
    assert_true(
        asprintf(&text,
                 "%s\nsize_t use(const struct fpa_launch *a);\nsize_t use(const struct fpa_launch *a)\n"
                 "{\n    return %s_workspace(0, a) + (size_t)%s_forward(0, a);\n}\n",
                 source.header, head->name, head->name) > 0);
    check_compiler("gcc", "-fsyntax-only -O1", target_best(), head, text);
    free(text);
    source_free(&source);
}

static void the_header_stands_alone(void **state)
{
    check_header(shipped[0].heads[0]);
}

static void an_unknown_target_is_refused_by_name(void **state)
{
    fpa_source source;
    fpa_error error = {0};
    assert_int_equal(source_generate(shipped[0].heads[0], "c:mips", &source, &error), FPA_UNSUPPORTED);
    assert_string_equal(error.where, "c:mips");
}

/* ---- register tiles ---- */

static const fpa_head *shipped_head(const char *name)
{
    for (int i = 0; i < shipped_count; i++)
        for (int h = 0; h < shipped[i].count; h++)
            if (!strcmp(shipped[i].heads[h]->name, name))
                return shipped[i].heads[h];
    fail_msg("no head '%s' in specs/", name);
    return NULL;
}

/* Compile to assembly in a file of its own. */
static FILE *assembly_of(const char *text, const fpa_target *target, const char *path)
{
    char command[512];
    snprintf(command, sizeof command,
             "gcc -std=gnu11 -O2 -fopenmp -fPIC -S %s -mprefer-vector-width=512 -x c -o %s -", target->march,
             path);
    FILE *in = popen(command, "w");
    assert_non_null(in);
    fputs(text, in);
    assert_int_equal(pclose(in), 0);
    FILE *out = fopen(path, "r");
    assert_non_null(out);
    return out;
}

static bool is_product(const char *label)
{
    static const char *const names[] = {"tile",        "slice",       "query_",        "update",      "dot",
                                        "pair_query_", "pair_update", "pair_columns_", "project_rows"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(label, names[i], strlen(names[i])))
            return true;
    return false;
}

/* Whole vectors that are kept on the stack by functions of products; how many functions there are. */
static int count_spills(FILE *assembly, int *functions)
{
    char line[512];
    bool inside = false;
    int spills = 0;
    while (fgets(line, sizeof line, assembly)) {
        if (line[0] != '\t' && line[0] != '.' && strchr(line, ':')) {
            inside = is_product(line);
            *functions += inside;
        }
        if (inside && (strstr(line, "%ymm") || strstr(line, "%zmm")) &&
            (strstr(line, "(%rsp)") || strstr(line, "(%rbp)")))
            spills++;
    }
    return spills;
}

static void check_registers(const char *name, const char *target, const char *path)
{
    fpa_source source;
    int functions = 0;
    generate(shipped_head(name), target, &source);
    FILE *assembly = assembly_of(source.code, target_find(target), path);
    const int spills = count_spills(assembly, &functions);
    fclose(assembly);
    source_free(&source);
    print_message("%s for %s: %d functions of products\n", name, target, functions);
    assert_true(functions > 0);
    assert_int_equal(spills, 0);
}

/* Sums and factors of a register tile are registers: neither in the loop nor around it is a vector kept
 * elsewhere. make test: of three heads, each for one target. */
static void register_tiles_are_registers(void **state)
{
    char path[] = "/tmp/fpac-assembly-XXXXXX";
    if (strcmp(target_best()->machine, "x86_64") || !on_path("gcc"))
        skip();
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    enum { DEGREE_2 = 0, LINEAR = 5 };
    static const char *const heads[] = {"tspow2_d64_b8",   "tspow3_d16",       "tspow3_d32",
                                        "dense_16x32_d64", "gated_power2_d64", "linear_d24_v48"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        if (dear_tests() || i == DEGREE_2)
            check_registers(heads[i], "c:avx512", path);
        if (dear_tests() || i == LINEAR)
            check_registers(heads[i], "c:avx2", path);
    }
    check_registers("tspow2_d64_bf16", "c:avx512bf16", path);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_head_gives_the_same_bytes),
        cmocka_unit_test(facts_come_back_from_their_text),
        cmocka_unit_test(gcc_and_clang_accept_heads_for_every_target_without_a_warning),
        cmocka_unit_test(optimised_code_of_narrow_storage_has_no_warning),
        cmocka_unit_test(gradients_of_made_coordinates_have_no_warning),
        cmocka_unit_test(register_tiles_are_registers),
        cmocka_unit_test(the_header_stands_alone),
        cmocka_unit_test(an_unknown_target_is_refused_by_name),
    };
    return cmocka_run_group_tests_name("emit", tests, load_shipped, free_shipped);
}
