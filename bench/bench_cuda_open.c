/* bench_cuda_open: how long the first fpa_open of each head of a spec takes on a GPU, and how long one
 * from the cache: bench_cuda_open [--backward] [--verbose] [--head NAME] SPEC... Then, of the heads that took
 * longest, where the time goes (without gradients and --head). One kernel stays open meanwhile, as the GPU's
 * context does in a program that uses it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/gen.h"
#include "base/clock.h"
#include "runtime/builder.h"
#include "runtime/api/fpa.h"
#include "runtime/verify/verify.h"

static fpa_options options = {.target = "cuda"};
static const char *only; /* this head; NULL: all */

static int complain(const fpa_error *error)
{
    fprintf(stderr, "bench_cuda_open: %s: %s\n", error->where, error->message);
    return 1;
}

static void say(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "%s\n", line);
}

static double open_once(const char *spec, const char *head, int *cached)
{
    fpa_kernel *kernel;
    fpa_error error;
    double start = clock_seconds();
    if (fpa_open(spec, head, &options, &kernel, &error)) {
        complain(&error);
        return -1;
    }
    double seconds = clock_seconds() - start;
    *cached = fpa_describe(kernel)->from_cache;
    fpa_close(kernel);
    return seconds;
}

/* The head that took longest to open in one of the two ways. */
typedef struct slowest {
    double seconds;
    const char *spec;
    char head[HEAD_MAX_NAME + 1];
} slowest;

static void keep_slowest(slowest *s, double seconds, const char *spec, const char *head)
{
    if (seconds <= s->seconds)
        return;
    s->seconds = seconds;
    s->spec = spec;
    snprintf(s->head, sizeof s->head, "%s", head);
}

static int open_all(const char *spec, slowest *first, slowest *again)
{
    fpa_head_list list;
    fpa_error error;
    const double begin = clock_seconds();
    if (spec_load(spec, &list, &error))
        return complain(&error);
    printf("%s: %d heads, read in %.1f ms, all of them\n", spec, list.count, 1e3 * (clock_seconds() - begin));
    for (int i = 0; i < list.count; i++) {
        const char *name = list.heads[i]->name;
        int first_cached = 0, again_cached = 0;
        if (only && strcmp(name, only) != 0)
            continue;
        double first_seconds = open_once(spec, name, &first_cached);
        double again_seconds = open_once(spec, name, &again_cached);
        if (first_seconds < 0 || again_seconds < 0)
            return 1;
        printf("%-28s d %3d  first %6.2f s%s  from the cache %6.1f ms%s\n", name, list.heads[i]->d,
               first_seconds, first_cached ? " (was cached)" : "", 1e3 * again_seconds,
               again_cached ? "" : " (was not cached)");
        fflush(stdout);
        keep_slowest(first, first_seconds, spec, name);
        keep_slowest(again, again_seconds, spec, name);
    }
    head_list_free(&list);
    return 0;
}

/* What the stages of an opening make. */
typedef struct stages {
    fpa_head_list list;
    const fpa_head *head;
    const fpa_backend *backend;
    const fpa_target *target;
    fpa_source source;
    fpa_object object;
    fpa_module module;
} stages;

static fpa_status read_spec(stages *s, const slowest *which, fpa_error *error)
{
    fpa_status status = spec_load_head(which->spec, which->head, &s->list, error);
    if (!status)
        status = head_list_find(&s->list, which->head, which->spec, &s->head, error);
    return status ? status : backend_choose(&options, options.target, &s->backend, &s->target, error);
}

static fpa_status generate(stages *s, const slowest *which, fpa_error *error)
{
    (void)which;
    return source_generate(s->head, s->target->name, &s->source, error);
}

static fpa_status compile(stages *s, const slowest *which, fpa_error *error)
{
    (void)which;
    return builder_of(s->target)->compile(&options, &s->source, &s->object, error);
}

static fpa_status load(stages *s, const slowest *which, fpa_error *error)
{
    (void)which;
    return s->backend->load(&options, &s->object, s->source.facts.name, &s->module, error);
}

static fpa_status verify(stages *s, const slowest *which, fpa_error *error)
{
    fpa_verdict verdict;
    (void)which;
    return verify_module(s->head, &s->source.facts, &s->module, &verdict, error);
}

/* All of them: a first opening. The first, reading and checking the entry, and load: one from the cache. */
static int time_stages(const slowest *which)
{
    static const struct {
        const char *name;
        fpa_status (*run)(stages *s, const slowest *which, fpa_error *error);
    } all[] = {{"spec", read_spec},
               {"generate", generate},
               {"compile", compile},
               {"load", load},
               {"verify", verify}};
    stages s = {0};
    fpa_error error;
    int failed = 0;
    printf("%-28s", which->head);
    for (size_t i = 0; i < sizeof all / sizeof *all && !failed; i++) {
        double start = clock_seconds();
        failed = all[i].run(&s, which, &error) && complain(&error);
        printf("  %s %.1f", all[i].name, 1e3 * (clock_seconds() - start));
    }
    printf(" ms; object %zu bytes\n", s.object.size);
    if (s.module.backend)
        s.module.backend->unload(&s.module);
    free(s.object.bytes);
    source_free(&s.source);
    head_list_free(&s.list);
    return failed;
}

/* The first argument that is no option. */
static int read_options(int count, char **arguments)
{
    int i = 1;
    for (; i < count && strncmp(arguments[i], "--", 2) == 0; i++)
        if (strcmp(arguments[i], "--backward") == 0)
            options.backward = 1;
        else if (strcmp(arguments[i], "--verbose") == 0)
            options.log = say;
        else if (strcmp(arguments[i], "--head") == 0 && i + 1 < count)
            only = arguments[++i];
        else
            return count;
    return i;
}

int main(int count, char **arguments)
{
    fpa_kernel *kernel;
    fpa_error error;
    slowest first = {0}, again = {0};
    int failed = 0;
    const int specs = read_options(count, arguments);
    if (specs >= count)
        return fprintf(
                   stderr,
                   "usage: bench_cuda_open [--backward] [--verbose] [--head NAME] SPEC...  (set "
                   "FPA_CACHE_DIR and CUDA_CACHE_PATH to new folders: NVRTC keeps what it compiled, too)\n"),
               2;
    const fpa_options plain = {.target = options.target};
    if (fpa_open_text("first.lua", "return head { name = 'first', d = 16, terms = linear {} }", NULL, &plain,
                      &kernel, &error))
        return complain(&error);
    for (int i = specs; i < count; i++)
        failed |= open_all(arguments[i], &first, &again);
    if (first.spec && !only && !options.backward)
        failed |= time_stages(&first);
    if (again.spec && !only && !options.backward && strcmp(first.head, again.head) != 0)
        failed |= time_stages(&again);
    fpa_close(kernel);
    return failed;
}
