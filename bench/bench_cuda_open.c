/* bench_cuda_open: how long the first fpa_open of each head of a spec takes on a GPU, and how long one
 * from the cache: bench_cuda_open SPEC... One kernel stays open meanwhile, as the GPU's context does in a
 * program that uses it. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../gen/gen.h"
#include "../runtime/fpa.h"

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double open_once(const char *spec, const char *head, int *cached)
{
    const fpa_options options = {.target = "cuda"};
    fpa_kernel *kernel;
    fpa_error error;
    double start = now();
    if (fpa_open(spec, head, &options, &kernel, &error)) {
        fprintf(stderr, "bench_cuda_open: %s: %s\n", error.where, error.message);
        return -1;
    }
    double seconds = now() - start;
    *cached = fpa_describe(kernel)->from_cache;
    fpa_close(kernel);
    return seconds;
}

static int open_all(const char *spec)
{
    fpa_head_list list;
    fpa_error error;
    if (spec_load(spec, &list, &error))
        return fprintf(stderr, "bench_cuda_open: %s: %s\n", error.where, error.message), 1;
    for (int i = 0; i < list.count; i++) {
        int first_cached, again_cached;
        double first = open_once(spec, list.heads[i]->name, &first_cached);
        double again = open_once(spec, list.heads[i]->name, &again_cached);
        if (first < 0 || again < 0)
            return 1;
        printf("%-28s d %3d  first %6.2f s%s  from the cache %6.1f ms%s\n", list.heads[i]->name,
               list.heads[i]->d, first, first_cached ? " (was cached)" : "", 1e3 * again,
               again_cached ? "" : " (was not cached)");
        fflush(stdout);
    }
    head_list_free(&list);
    return 0;
}

int main(int count, char **arguments)
{
    const fpa_options options = {.target = "cuda"};
    fpa_kernel *kernel;
    fpa_error error;
    int failed = 0;
    if (count < 2)
        return fprintf(stderr, "usage: bench_cuda_open SPEC...  (set FPA_CACHE_DIR to a new folder)\n"), 2;
    if (fpa_open_text("first.lua", "return head { name = 'first', d = 16, terms = linear {} }", NULL,
                      &options, &kernel, &error))
        return fprintf(stderr, "bench_cuda_open: %s: %s\n", error.where, error.message), 1;
    for (int i = 1; i < count; i++)
        failed |= open_all(arguments[i]);
    fpa_close(kernel);
    return failed;
}
