/* What people type: hostile specs, command lines and arrays; and machines with little memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/npy.h"
#include "tests/scratch.h"
#include "torture.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static const char *pick(random_source *random, const char *const *list, int count)
{
    return list[random_between(random, 0, count - 1)];
}

/* ---- hostile specs ---- */

static void write_value(random_source *random, FILE *out, int depth);

static void write_table(random_source *random, FILE *out, int depth)
{
    static const char *const keys[] = {
        "name",  "d",         "dv",           "terms", "scale",  "weight", "degree",  "block", "rows",
        "chunk", "normalize", "eps",          "gate",  "causal", "dtype",  "shared",  "[1]",   "[0]",
        "[-1]",  "[2^53]",    "[range(1,4)]", "['']",  "[{}]",   "[1.5]",  "constant"};
    fprintf(out, "{ ");
    for (int i = random_between(random, 0, 6); i > 0; i--) {
        if (random_chance(random, 0.7))
            fprintf(out, "%s = ", pick(random, keys, COUNT(keys)));
        write_value(random, out, depth - 1);
        fprintf(out, ", ");
    }
    fprintf(out, "}");
}

/* clang-format off */
static const char *const values[] = {
    "0", "1", "2", "3", "4", "8", "64", "-1", "0.5", "1e308", "-1e308", "1e-320", "1e400", "0/0",
    "1/0", "2^31", "2^53 + 1", "math.huge", "math.pi", "nil", "true", "false", "\"\"", "'sum'",
    "'max'", "'bf16'", "'f16'", "'a/../../b'", "'$(touch pwned)'", "'x; touch pwned'", "'\\0'",
    "'\\n*/'", "'%s%n'", "\"\\xff\\xfe\"", "'..'", "sqrt2", "sqrt(-1)", "sqrt(2)", "ratio(1, 3)",
    "ratio(1, 0)", "gram(2)", "gram(-2)", "range(1, 8)", "range(8, 1)", "range(-3, 3)",
    "identity()", "identity", "print", "_G", "npy 'nowhere.npy'", "npy '/dev/zero'",
    "npy '/dev/stdin'", "npy 'tmp'", "dense 'random.lua'", "function() end", "head", "math",
    "{ {} }", "4096", "1024",
};

static const char *const calls[] = {
    "term", "select", "diagonal", "dense", "trainable", "power", "tspow", "spow", "linear",
    "taylor", "inhomogeneous", "orthogonal", "scaled", "head", "rows",
};
/* clang-format on */

static void write_value(random_source *random, FILE *out, int depth)
{
    if (depth <= 0 || random_chance(random, 0.4))
        fprintf(out, "%s", pick(random, values, COUNT(values)));
    else if (random_chance(random, 0.3))
        write_table(random, out, depth);
    else {
        fprintf(out, "%s(", pick(random, calls, COUNT(calls)));
        write_table(random, out, depth);
        fprintf(out, ")");
    }
}

/* Specs that ask for much, or for what a sandbox has not. */
static const char *const greedy[] = {
    "while true do end",
    "local t = {} while true do t = { t, t, t } end",
    "local t = {} for i = 1, 60 do t = { t, t } end return t",
    "local s = {} for i = 1, 1e9 do s[i] = i end",
    "local function f() return f() end return f()",
    "local function f() return 1 + f() end return f()",
    "return head { d = 4, dv = 4, terms = power { degree = 16 } }",
    "return head { d = 64, dv = 64, terms = tspow { d = 64, degree = 9, block = 1 } }",
    "return head { d = 1024, dv = 1024, terms = power { degree = 3 } }",
    "local t = {} for i = 1, 131072 do t[i] = term { select { 1 } } end return head { d = 4, dv = 4, terms = "
    "t }",
    "local h = head { name = 'a', d = 2, dv = 2, terms = linear() } local t = {} for i = 1, 3000 do t[i] = h "
    "end return t",
    "for i = 1, 50 do orthogonal { rows = 64, d = 64, seed = i } end return {}",
    "os.execute('touch pwned')",
    "io.open('pwned', 'w')",
    "load('return 1')()",
    "string.dump(print)",
    "getmetatable('').__index.rep('x', 1e9)",
    "return ('x'):rep(1e9)",
    "debug.sethook()",
    "require 'os'",
    "setmetatable({}, { __gc = function() while true do end end })",
    "return select(-1)",
    "goto x ::x:: goto x",
    "\x1bLua",
    "",
    "return",
    "return head",
    "return head(head(head))",
};

/* Specs that end by the budget of specs only, half a minute later: for long runs. */
static const char *const endless[] = {
    "while true do orthogonal { rows = 600, d = 600, seed = 1 } end",
    "while true do head { name = 'a', d = 2, dv = 2, terms = linear() } end",
    "local t = { 1 } for i = 1, 30 do t = { t, t } end return head { d = 4, dv = 4, terms = t }",
    "local t = {} while true do t[#t + 1] = tspow { d = 64, degree = 2, block = 1 } end",
    "local x = 1 while true do x = x * ratio(3, 7) end",
    "while true do ipairs { sqrt(2), gram(3) } end",
};

static void write_spec(torture *t, const char *path)
{
    FILE *out = fopen(path, "w");
    if (!out)
        abort();
    if (random_chance(&t->random, 0.03) && getenv("TORTURE_ENDLESS")) {
        fprintf(out, "%s\n", pick(&t->random, endless, COUNT(endless)));
    } else if (random_chance(&t->random, 0.3)) {
        fprintf(out, "%s\n", pick(&t->random, greedy, COUNT(greedy)));
    } else {
        fprintf(out, "return head { name = 'a', d = %d, dv = 4, terms = ", random_between(&t->random, 1, 9));
        write_value(&t->random, out, 4);
        if (random_chance(&t->random, 0.5)) {
            fprintf(out, ", scale = ");
            write_value(&t->random, out, 1);
        }
        fprintf(out, " }\n");
    }
    fclose(out);
}

/* A file that only an escape from the sandbox makes. */
static bool nothing_escaped(const torture *t)
{
    char path[TORTURE_PATH];
    torture_path(t, "pwned", path);
    return (access(path, F_OK) != 0 && access("pwned", F_OK) != 0) || torture_says("a spec made a file");
}

bool torture_spec(torture *t)
{
    enum { SPECS = 8 };
    static const char *const stages[] = {"--dump=head", "--dump=simplified", "--dump=plan", "--dump=source",
                                         "--json"};
    char path[TORTURE_PATH], out[TORTURE_PATH];
    int code;
    torture_path(t, "random.lua", path);
    torture_path(t, "out", out);
    for (int i = 0; i < SPECS; i++) {
        write_spec(t, path);
        const char *const explain[] = {"explain", path, pick(&t->random, stages, COUNT(stages)), NULL};
        const char *const gen[] = {"gen", path, "-o", out, NULL};
        const char *const list[] = {"list", path, NULL};
        if (!torture_fpac(t,
                          random_chance(&t->random, 0.6)   ? explain
                          : random_chance(&t->random, 0.5) ? gen
                                                           : list,
                          0, &code) ||
            !nothing_escaped(t))
            return false;
    }
    return true;
}

/* ---- command lines and arrays ---- */

static void write_array(torture *t, const char *path)
{
    fpa_error error;
    fpa_array array = {.axes = random_chance(&t->random, 0.8) ? 4 : random_between(&t->random, 1, 5),
                       .count = 1};
    for (int a = 0; a < array.axes; a++) {
        array.shape[a] = a == 3 && random_chance(&t->random, 0.8) ? 4 : random_between(&t->random, 0, 5);
        array.count *= array.shape[a];
    }
    array.data = calloc((size_t)array.count + 1, sizeof *array.data);
    if (!array.data || npy_write(path, &array, &error))
        abort();
    free(array.data);
    if (random_chance(&t->random, 0.3)) { /* one byte of it */
        fpa_file file;
        if (file_read(path, &file, &error) == FPA_OK) {
            file.bytes[random_between(&t->random, 0, file.size < 128 ? (int)file.size - 1 : 127)] ^=
                (unsigned char)(1 << random_between(&t->random, 0, 7));
            scratch_write(path, file.bytes, file.size);
            free(file.bytes);
        }
    }
}

static const char small_spec[] =
    "return head { name = 'a', d = 4, dv = 4, chunk = 4, terms = power { degree = 2 } }\n";

/* clang-format off */
static const char *const words[] = {
    "--q", "--k", "--v", "-o", "--form", "chunked", "--head", "a", "--target", "c:avx2", "c",
    "cuda", "--dtype", "f16", "bf16", "--state-in", "--state-out", "--weights", "w=", "=", "--help",
    "--json", "--", "-", "", "--dump=plan", "--dump=", "--length", "-1", "1e9",
    "99999999999999999999", "--threads", "0", "--log-gate", "--device", "\x1b[31m", "\xff",
    "--clear", "/dev/null",
};
/* clang-format on */

enum { NAMES = 5 };

/* A word of the table, or one of the line's own files. */
static const char *pick_word(random_source *random, char (*paths)[TORTURE_PATH])
{
    int at = random_between(random, 0, COUNT(words) + NAMES - 1);
    return at < COUNT(words) ? words[at] : paths[at - COUNT(words)];
}

bool torture_arguments(torture *t)
{
    enum { LINES = 12, WORDS = 9 };
    char paths[NAMES][TORTURE_PATH];
    static const char *const names[NAMES] = {"q.npy", "k.npy", "v.npy", "o.npy", "a.lua"};
    for (int i = 0; i < NAMES; i++)
        torture_path(t, names[i], paths[i]);
    scratch_write(paths[4], small_spec, strlen(small_spec));
    static const char *const commands[] = {"run",     "explain", "list", "prelude", "--version",
                                           "nothing", "",        "run",  "run"};
    for (int i = 0; i < LINES; i++) {
        const char *line[WORDS + 14] = {pick(&t->random, commands, COUNT(commands))};
        int count = 1, code;
        for (int a = 0; a < 3; a++)
            write_array(t, paths[a]);
        if (random_chance(&t->random, 0.7)) {
            const char *const whole[] = {paths[4], "--q",    paths[0], "--k",   paths[1],
                                         "--v",    paths[2], "-o",     paths[3]};
            for (int w = 0; w < COUNT(whole); w++)
                line[count++] = whole[w];
        }
        for (int w = random_between(&t->random, 0, 4); w > 0; w--) {
            const char *word = pick_word(&t->random, paths);
            if (strcmp(line[count - 1], "-o") != 0 || word == paths[3]) /* it writes nothing but o */
                line[count++] = word;
        }
        if (!torture_fpac(t, line, 0, &code))
            return false;
    }
    return true;
}

/* ---- little memory ---- */

bool torture_memory(torture *t)
{
    enum { RUNS = 6 };
    char path[TORTURE_PATH], out[TORTURE_PATH];
    torture_path(t, "a.lua", path);
    torture_path(t, "out", out);
    for (int i = 0; i < RUNS; i++) {
        const int64_t limit =
            (int64_t)(random_unit(&t->random) * random_unit(&t->random) * (1 << 26)) + (1 << 20);
        const bool large = random_chance(&t->random, 0.5);
        const char *text = large
                               ? "return head { name = 'a', d = 48, dv = 64, terms = power { degree = 3 } }\n"
                               : small_spec;
        int code;
        scratch_write(path, text, strlen(text));
        const char *const explain[] = {"explain", path, "--dump=source", NULL};
        const char *const gen[] = {"gen", path, "-o", out, large ? NULL : "--object", NULL};
        if (!torture_fpac(t, random_chance(&t->random, 0.5) ? explain : gen, limit, &code))
            return false;
    }
    return true;
}
