/* What hosts do: signals at any time, many processes and threads at once, forks; and the fuzzers for a while. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/scratch.h"
#include "tests/toy.h"
#include "torture.h"

/* ---- signals ---- */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGKILL};

enum { SIGNALS = sizeof signals / sizeof *signals };

/* Files and folders below a folder that are not finished. */
static int count_unfinished(const char *folder)
{
    int count = 0;
    DIR *list = opendir(folder);
    if (!list)
        return 0;
    for (struct dirent *item = readdir(list); item; item = readdir(list))
        count += strncmp(item->d_name, ".fpac-", 6) == 0 || strncmp(item->d_name, "fpac-", 5) == 0;
    closedir(list);
    return count;
}

static bool nothing_unfinished(const torture *t, int signal)
{
    static const char *const folders[] = {"tmp", "cache", "bundle"};
    char path[TORTURE_PATH];
    for (int i = 0; i < 3; i++) {
        torture_path(t, folders[i], path);
        if (count_unfinished(path) > 0)
            return torture_says("signal %d leaves unfinished files in %s", signal, path);
    }
    return true;
}

/* A bundle that has a manifest is whole. */
static bool whole_or_absent(const torture *t)
{
    char path[TORTURE_PATH];
    fpa_kernel *kernel = NULL;
    fpa_error error;
    torture_path(t, "bundle/manifest.fpa", path);
    if (access(path, F_OK) != 0)
        return true;
    *strrchr(path, '/') = 0;
    if (fpa_open_bundle(path, NULL, NULL, &kernel, &error))
        return torture_says("a bundle that was interrupted: %s: %s", error.where, error.message);
    fpa_close(kernel);
    return true;
}

static bool interrupt_one(torture *t, double seconds, int signal)
{
    char fpac[TORTURE_PATH + 8], spec[TORTURE_PATH], bundle[TORTURE_PATH];
    torture_path(t, "toy.lua", spec);
    torture_path(t, "bundle", bundle);
    scratch_write(spec, TOY_SPEC, strlen(TOY_SPEC));
    snprintf(fpac, sizeof fpac, "%s/fpac", t->builds);
    const char *const gen[] = {fpac, "gen", spec, "-o", bundle, "--object", NULL};
    const pid_t child = torture_start(t, gen, "fpac.output", 0);
    torture_pause(seconds);
    kill(child, signal);
    t->tries++;
    if (torture_wait(child, 60) == TORTURE_HANGS)
        return torture_says("signal %d does not end it", signal);
    const bool fine = whole_or_absent(t) && (signal == SIGKILL || nothing_unfinished(t, signal));
    folder_remove(bundle);
    torture_path(t, "tmp", bundle); /* what a kill left there */
    folder_remove(bundle);
    mkdir(bundle, 0700);
    return fine;
}

bool torture_signal(torture *t)
{
    enum { TIMES = 10 };
    for (int i = 0; i < TIMES; i++)
        if (!interrupt_one(t, random_unit(&t->random) * 0.6,
                           signals[random_between(&t->random, 0, SIGNALS - 1)]))
            return false;
    return true;
}

/* ---- together ---- */

enum { MOST_AT_ONCE = 64, FEW = 12, DEADLINE = 200 };

static void *open_and_use(void *argument)
{
    bool *fine = argument;
    fpa_error error;
    fpa_kernel *kernel = NULL;
    if (fpa_open_text("toy", TOY_SPEC, NULL, NULL, &kernel, &error)) {
        torture_says("%s: %s", error.where, error.message);
        return NULL;
    }
    *fine = toy_works(kernel) || torture_says("the toy's numbers are wrong");
    fpa_close(kernel);
    return NULL;
}

/* Threads of this process open the toy at once. */
static bool open_in_threads(int count)
{
    pthread_t threads[MOST_AT_ONCE];
    bool fine[MOST_AT_ONCE] = {false}, all = true;
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, open_and_use, &fine[i]))
            abort();
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        all = all && fine[i];
    }
    return all;
}

/* A compiler that notes its calls, so that they can be counted. */
static void count_compilations(const torture *t, char calls[TORTURE_PATH])
{
    char compiler[TORTURE_PATH], script[3 * TORTURE_PATH];
    const char *real = getenv("FPA_CC");
    torture_path(t, "calls", calls);
    torture_path(t, "cc", compiler);
    snprintf(script, sizeof script, "#!/bin/sh\necho call >>%s\nexec %s \"$@\"\n", calls, real ? real : "cc");
    scratch_write(compiler, script, strlen(script));
    chmod(compiler, 0755);
    setenv("FPA_CC", compiler, 1);
}

static bool compiled(const char *calls, int most)
{
    struct stat facts;
    const int count = stat(calls, &facts) == 0 ? (int)(facts.st_size / 5) : 0;
    return (count >= 1 && count <= most) || torture_says("%d compilations, not 1 to %d", count, most);
}

bool torture_together(torture *t)
{
    char calls[TORTURE_PATH];
    pid_t children[MOST_AT_ONCE];
    bool fine = true;
    const int processes = random_chance(&t->random, 0.1) ? MOST_AT_ONCE : random_between(&t->random, 2, FEW);
    const int killed = random_chance(&t->random, 0.5) ? random_between(&t->random, 1, processes - 1) : 0;
    count_compilations(t, calls);
    for (int i = 0; i < processes; i++) {
        const int threads = i == processes - 1 && random_chance(&t->random, 0.1)
                                ? MOST_AT_ONCE
                                : random_between(&t->random, 1, 4);
        children[i] = fork();
        if (children[i] == 0)
            _exit(open_in_threads(threads) ? 0 : 1);
    }
    for (int i = 0; i < killed; i++) {
        torture_pause(random_unit(&t->random) * 0.1);
        kill(children[i], SIGKILL);
    }
    for (int i = 0; i < processes; i++) {
        const int status = torture_wait(children[i], DEADLINE);
        fine = fine && (status == 0 || i < killed || torture_says("a process ended with status %d", status));
        t->tries++;
    }
    return fine && compiled(calls, 1 + killed) && open_in_threads(2) && compiled(calls, 1 + killed) &&
           (scratch_count(getenv("FPA_CACHE_DIR"), ".fpa") == 1 ||
            torture_says("not one entry in the cache"));
}

/* ---- forks ---- */

/* Do something with a kernel, then fork, and again. */
static bool fork_and_use(random_source random, fpa_kernel *kernel, int depth)
{
    bool fine = true;
    fpa_kernel *given = kernel;
    if (!kernel && random_chance(&random, 0.6)) {
        fpa_error error;
        if (fpa_open_text("toy", TOY_SPEC, NULL, NULL, &kernel, &error))
            return torture_says("%s: %s", error.where, error.message);
    }
    if (kernel && random_chance(&random, 0.7))
        fine = toy_works(kernel);
    if (random_chance(&random, 0.3))
        fine = fine && open_in_threads(2);
    for (int i = random_between(&random, 1, 2); depth > 0 && fine && i > 0; i--) {
        const random_source other = {random_bits(&random)};
        const pid_t child = fork();
        if (child == 0)
            _exit(fork_and_use(other, kernel, depth - 1) ? 0 : 1);
        const int status = torture_wait(child, DEADLINE);
        fine = status == 0 ||
               torture_says("a child of depth %d: %s", depth, status == TORTURE_HANGS ? "hangs" : "fails");
    }
    fine = fine && (!kernel || toy_works(kernel));
    if (!given)
        fpa_close(kernel);
    return fine;
}

bool torture_fork(torture *t)
{
    t->tries++;
    return fork_and_use(t->random, NULL, 3);
}

/* ---- fuzzers ---- */

bool torture_fuzz(torture *t)
{
    static const char *const names[] = {"fuzz_spec", "fuzz_head", "fuzz_manifest", "fuzz_npy"};
    const char *name = names[random_between(&t->random, 0, 3)];
    const char *builds = getenv("TORTURE_FUZZERS"), *seconds = getenv("TORTURE_FUZZ_SECONDS");
    char program[TORTURE_PATH + 64], seed[32], specs[TORTURE_PATH], parity[TORTURE_PATH],
        generated[TORTURE_PATH];
    const char *source = getenv("TORTURE_SOURCE");
    snprintf(program, sizeof program, "%s/tests/%s", builds ? builds : t->builds, name);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)(random_bits(&t->random) >> 16));
    snprintf(specs, sizeof specs, "%.200s/specs", source ? source : ".");
    snprintf(parity, sizeof parity, "%.200s/tests/parity", source ? source : ".");
    snprintf(generated, sizeof generated, "%.200s/generated", source ? source : ".");
    setenv("FUZZ_SEED", seed, 1);
    const char *const arguments[] = {program, seconds ? seconds : "5", specs, parity, generated, NULL};
    const int status = torture_wait(torture_start(t, arguments, "fuzz.output", 0), 200);
    char path[TORTURE_PATH];
    unsigned long long inputs = 0;
    torture_path(t, "fuzz.output", path);
    FILE *output = fopen(path, "r");
    char line[256];
    while (output && fgets(line, sizeof line, output))
        sscanf(line, "fuzz %*[^:]: %llu inputs", &inputs);
    if (output)
        fclose(output);
    t->tries += (int)inputs;
    return status == 0 || torture_says("%s, seed %s: status %d; see fuzz.output", name, seed, status);
}
