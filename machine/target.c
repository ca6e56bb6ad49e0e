/* target: the table of targets: instruction sets of CPUs, best last for each machine, and generations of GPUs, newest last. */
#include "target.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#define THIS_MACHINE "x86_64"
#elif defined(__aarch64__)
#define THIS_MACHINE "aarch64"
#else
#define THIS_MACHINE "unknown"
#endif

/* march is a level, never "native", so that the same name means the same code everywhere. Sources: bf16_product, the PTX ISA's "mul";
 * window_blocks, docs/decisions/0053-coordinates-by-warpgroups.md; halves, docs/decisions/0123-outputs-from-registers-on-cpus.md. */
static const fpa_target targets[] = {
    {BACKEND_C, "c:sse2", "-march=x86-64", "x86_64", .vector = 4, .registers = 16},
    {BACKEND_C, "c:avx2", "-march=x86-64-v3", "x86_64", .vector = 8, .registers = 16, .converts = true},
    {BACKEND_C, "c:avx512", "-march=x86-64-v4", "x86_64", .vector = 16, .registers = 32, .halves = true,
     .converts = true},
    {BACKEND_C, "c:avx512bf16", "-march=x86-64-v4 -mavx512bf16", "x86_64", .vector = 16, .registers = 32,
     .pairs = true, .halves = true, .converts = true},
    {BACKEND_C, "c:neon", "-march=armv8-a", "aarch64", .vector = 4, .registers = 32},
    {BACKEND_CUDA, "cuda:sm_80", "sm_80", "cuda", .capability = 80, .shared_memory = 163 * 1024,
     .window_blocks = 3},
    {BACKEND_CUDA, "cuda:sm_86", "sm_86", "cuda", .capability = 86, .shared_memory = 99 * 1024,
     .window_blocks = 3},
    {BACKEND_CUDA, "cuda:sm_89", "sm_89", "cuda", .capability = 89, .shared_memory = 99 * 1024,
     .window_blocks = 3},
    {BACKEND_CUDA, "cuda:sm_90", "sm_90", "cuda", .capability = 90, .shared_memory = 227 * 1024,
     .clusters = true, .bf16_product = true, .window_blocks = 4},
    {BACKEND_CUDA, "cuda:sm_90a", "sm_90a", "cuda", .capability = 90, .shared_memory = 227 * 1024,
     .clusters = true, .bf16_product = true, .window_blocks = 4, .warpgroups = true},
    {BACKEND_CUDA, "cuda:sm_100", "sm_100", "cuda", .capability = 100, .shared_memory = 227 * 1024,
     .clusters = true, .bf16_product = true, .window_blocks = 4},
    {BACKEND_CUDA, "cuda:sm_103", "sm_103", "cuda", .capability = 103, .shared_memory = 227 * 1024,
     .clusters = true, .bf16_product = true, .window_blocks = 4},
    {BACKEND_CUDA, "cuda:sm_120", "sm_120", "cuda", .capability = 120, .shared_memory = 99 * 1024,
     .clusters = true, .bf16_product = true, .window_blocks = 4},
};

enum { TARGETS = sizeof targets / sizeof *targets };

int target_count(void)
{
    return TARGETS;
}

const fpa_target *target_at(int index)
{
    return index >= 0 && index < TARGETS ? &targets[index] : NULL;
}

const fpa_target *target_find(const char *name)
{
    if (strcmp(name, "c") == 0)
        return target_best();
    for (int i = 0; i < TARGETS; i++)
        if (strcmp(targets[i].name, name) == 0 ||
            (targets[i].backend == BACKEND_CUDA && strcmp(targets[i].march, name) == 0))
            return &targets[i];
    return NULL;
}

/* Machine code of one generation runs on later devices of the same major number, unless it uses features of one architecture only
 * (sm_90a). */
bool target_fits(const fpa_target *target, int capability)
{
    if (target->backend != BACKEND_CUDA || target->capability > capability)
        return false;
    return target->capability == capability ||
           (!target->warpgroups && target->capability / 10 == capability / 10);
}

bool target_fits_beside(const fpa_target *target, const fpa_target *best)
{
    if (best->backend != BACKEND_CUDA)
        return target_runs(target);
    return target == best || (!target->warpgroups && target_fits(target, best->capability));
}

bool target_is_better(const fpa_target *a, const fpa_target *b)
{
    if (a->capability != b->capability)
        return a->capability > b->capability;
    if (a->vector != b->vector)
        return a->vector > b->vector;
    return (a->pairs && !b->pairs) || (a->warpgroups && !b->warpgroups);
}

const fpa_target *target_for_capability(int capability)
{
    const fpa_target *best = NULL;
    for (int i = 0; i < TARGETS; i++)
        if (target_fits(&targets[i], capability))
            best = &targets[i];
    return best;
}

const fpa_target *target_best(void)
{
    const fpa_target *best = NULL;
    for (int i = 0; i < TARGETS; i++)
        if (target_runs(&targets[i]) && (!best || targets[i].vector >= best->vector))
            best = &targets[i];
    return best;
}

#if defined(__x86_64__)
/* The parts of x86-64-v3 for which some compilers have no __builtin_cpu_supports. */
static bool cpu_has_v3_scalars(void)
{
    enum { MOVBE = 1 << 22, F16C = 1 << 29, LZCNT = 1 << 5 };
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & MOVBE) || !(c & F16C))
        return false;
    return __get_cpuid(0x80000001u, &a, &b, &c, &d) && (c & LZCNT);
}

static bool cpu_has_v3(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && cpu_has_v3_scalars();
}

static bool cpu_has_v4(void)
{
    return cpu_has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

/* AVX512_BF16: leaf 7, subleaf 1. A system that saves AVX-512's registers needs nothing more for it. */
static bool cpu_has_bf16(void)
{
    enum { AVX512_BF16 = 1 << 5 };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & AVX512_BF16);
}

static bool cpu_runs(const fpa_target *target)
{
    __builtin_cpu_init();
    if (target->vector == 16)
        return cpu_has_v4() && (!target->pairs || cpu_has_bf16());
    return target->vector == 8 ? cpu_has_v3() : true;
}
#else
static bool cpu_runs(const fpa_target *target)
{
    (void)target; /* every aarch64 has NEON */
    return true;
}
#endif

bool target_runs(const fpa_target *target)
{
    return strcmp(target->machine, THIS_MACHINE) == 0 && cpu_runs(target);
}
