/* torture SECONDS SEED FOLDER [KIND]: play cases until the time is over, and print what was tried and what held. A
 * case that did not hold leaves a folder of its name in FOLDER, in which `command` is what repeats it.
 * torture --case KIND SEED FOLDER: play that one, in a folder that is not there yet. */
#include "torture.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

typedef struct kind {
    const char *name, *what;
    bool (*play)(torture *t);
    int share; /* of the time, beside the others' */
    int cases, tries, failed;
    double seconds;
} kind;

static const kind all_kinds[] = {
    {.name = "heads",
     .play = torture_head,
     .share = 6,
     .what = "random heads beside the formula, in every form"},
    {.name = "future",
     .play = torture_future,
     .share = 1,
     .what = "NaN and infinities behind a query reach no o before"},
    {.name = "gradients",
     .play = torture_gradients,
     .share = 1,
     .what = "NaN and infinities at a token reach only gradients that depend on it"},
    {.name = "locales",
     .play = torture_locale,
     .share = 1,
     .what = "the same in a locale with a decimal comma"},
    {.name = "specs",
     .play = torture_spec,
     .share = 2,
     .what = "hostile specs: end, in bounds, with a message"},
    {.name = "arguments",
     .play = torture_arguments,
     .share = 1,
     .what = "command lines and arrays at random"},
    {.name = "memory", .play = torture_memory, .share = 1, .what = "less memory than is needed"},
    {.name = "caches",
     .play = torture_cache,
     .share = 2,
     .what = "damaged cache entries: the right numbers all the same"},
    {.name = "bundles",
     .play = torture_bundle,
     .share = 2,
     .what = "damaged bundles: refused, or the right numbers"},
    {.name = "signals",
     .play = torture_signal,
     .share = 2,
     .what = "signals at random times: whole files or none, nothing left"},
    {.name = "together",
     .play = torture_together,
     .share = 2,
     .what = "processes and threads open one head at once, some are killed"},
    {.name = "forks", .play = torture_fork, .share = 1, .what = "children open and compute at every depth"},
    {.name = "fuzz", .play = torture_fuzz, .share = 2, .what = "mutated files against the readers"},
};

enum { KINDS = sizeof all_kinds / sizeof *all_kinds, CASE_SECONDS = 480 };

static const kind *find_kind(const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (strcmp(all_kinds[i].name, name) == 0)
            return &all_kinds[i];
    fprintf(stderr, "torture: no kind %s; kinds are", name);
    for (int i = 0; i < KINDS; i++)
        fprintf(stderr, " %s", all_kinds[i].name);
    fputc('\n', stderr);
    exit(2);
}

/* ---- one case, in the process that plays it ---- */

/* Nothing of the user's is read or written; kernels are compiled as quickly as tests do. */
static void set_environment(const torture *t)
{
    const char *flags = getenv("FPA_CFLAGS");
    char path[TORTURE_PATH], longer[TORTURE_PATH];
    torture_path(t, "cache", path);
    setenv("FPA_CACHE_DIR", path, 1);
    torture_path(t, "tmp", path);
    setenv("TMPDIR", path, 1);
    mkdir(path, 0700);
    snprintf(longer, sizeof longer, "%s -O1", flags ? flags : "");
    setenv("FPA_CFLAGS", longer, 1);
    setenv("OMP_WAIT_POLICY", "passive", 1);
    setenv("OMP_NUM_THREADS", "3", 0);
}

static int play_case(const char *self, const char *name, const char *seed, const char *folder)
{
    torture t = {.random = {strtoull(seed, NULL, 10)}};
    const kind *k = find_kind(name);
    char path[TORTURE_PATH], tries[32];
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return perror(folder), 2;
    char *real = realpath(folder, NULL), *program = realpath(self, NULL);
    if (!real || !program || strlen(real) > 200 || strlen(program) > 200)
        return fprintf(stderr, "torture: %s: no such folder, or its path is long\n", folder), 2;
    *strrchr(program, '/') = 0;
    snprintf(t.folder, sizeof t.folder, "%s", real);
    snprintf(t.builds, sizeof t.builds, "%s", program);
    free(real);
    free(program);
    set_environment(&t);
    bool held = k->play(&t);
    torture_path(&t, "tries", path);
    snprintf(tries, sizeof tries, "%d\n", t.tries);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    held = file >= 0 && file_write_all(file, tries, strlen(tries)) && held;
    close(file);
    return held ? 0 : 1;
}

/* ---- many cases ---- */

static int read_tries(const char *folder)
{
    char path[TORTURE_PATH];
    int tries = 0;
    snprintf(path, sizeof path, "%s/tries", folder);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%d", &tries) != 1)
        tries = 0;
    if (file)
        fclose(file);
    return tries;
}

/* What decides a case besides its seed; tools/torture.sh sets them. */
static const char *const settings[] = {"TORTURE_SOURCE",  "TORTURE_FUZZERS", "TORTURE_FUZZ_SECONDS",
                                       "TORTURE_ENDLESS", "OMP_NUM_THREADS", "FPA_CFLAGS",
                                       "FPA_CC"};

static void write_command(const char *self, const kind *k, uint64_t seed, const char *folder)
{
    char path[TORTURE_PATH];
    snprintf(path, sizeof path, "%s/command", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (getenv(settings[i]))
            fprintf(file, "%s='%s' ", settings[i], getenv(settings[i]));
    fprintf(file, "%s --case %s %" PRIu64 " build/torture-%s-%" PRIu64 "\n", self, k->name, seed, k->name,
            seed);
    fclose(file);
}

static void show_output(const char *folder)
{
    char path[TORTURE_PATH], line[512];
    snprintf(path, sizeof path, "%s/output", folder);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        printf("    %s", line);
    if (file)
        fclose(file);
}

static void one_case(const char *self, kind *k, uint64_t seed, const char *above)
{
    char folder[TORTURE_PATH / 2], number[32];
    torture runner = {.tries = 0};
    const double start = clock_seconds();
    snprintf(number, sizeof number, "%" PRIu64, seed);
    snprintf(folder, sizeof folder, "%.200s/%s-%s", above, k->name, number);
    snprintf(runner.folder, sizeof runner.folder, "%s", folder);
    folder_remove(folder);
    if (mkdir(folder, 0700) != 0) {
        perror(folder);
        exit(2);
    }
    write_command(self, k, seed, folder);
    const char *const arguments[] = {self, "--case", k->name, number, folder, NULL};
    int status = torture_wait(torture_start(&runner, arguments, "output", 0), CASE_SECONDS);
    k->cases++;
    k->tries += read_tries(folder);
    k->seconds += clock_seconds() - start;
    if (status == 0) {
        folder_remove(folder);
        return;
    }
    k->failed++;
    printf("%s %s: %s; %s\n", k->name, number,
           status == TORTURE_HANGS ? "HANGS"
           : WIFSIGNALED(status)   ? "CRASHES"
                                   : "FAILS",
           folder);
    show_output(folder);
    fflush(stdout);
}

/* The kind that has had the least of its share. */
static kind *next_kind(kind *kinds, const char *only)
{
    kind *next = NULL;
    for (int i = 0; i < KINDS; i++)
        if ((!only || strcmp(only, kinds[i].name) == 0) &&
            (!next || kinds[i].seconds / kinds[i].share < next->seconds / next->share))
            next = &kinds[i];
    return next;
}

static int print_table(const kind *kinds, double seconds, uint64_t seed)
{
    int failed = 0;
    printf("\n%-10s %6s %8s %8s %8s  %s\n", "attack", "cases", "inputs", "held", "seconds", "what");
    for (int i = 0; i < KINDS; i++) {
        const kind *k = &kinds[i];
        if (k->cases == 0)
            continue;
        printf("%-10s %6d %8d %8d %8.1f  %s\n", k->name, k->cases, k->tries, k->cases - k->failed, k->seconds,
               k->what);
        failed += k->failed;
    }
    printf("torture: seed %" PRIu64 ", %.0f seconds, %d failed\n", seed, seconds, failed);
    return failed ? 1 : 0;
}

int main(int count, char **arguments)
{
    kind kinds[KINDS];
    memcpy(kinds, all_kinds, sizeof kinds);
    if (count == 5 && strcmp(arguments[1], "--case") == 0)
        return play_case(arguments[0], arguments[2], arguments[3], arguments[4]);
    if (count < 4)
        return fprintf(stderr, "usage: torture SECONDS SEED FOLDER [KIND]\n"), 2;
    const char *only = count > 4 ? find_kind(arguments[4])->name : NULL;
    const uint64_t given = strtoull(arguments[2], NULL, 10), seed = given ? given : (uint64_t)time(NULL);
    random_source random = {seed};
    const double start = clock_seconds(), end = start + strtod(arguments[1], NULL);
    printf("torture: seed %" PRIu64 "\n", seed);
    fflush(stdout);
    if (!folder_create(arguments[3], 0700))
        return perror(arguments[3]), 2;
    while (clock_seconds() < end)
        one_case(arguments[0], next_kind(kinds, only), random_bits(&random) >> 16, arguments[3]);
    return print_table(kinds, clock_seconds() - start, seed);
}
