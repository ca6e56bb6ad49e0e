/* cpu: the table of processors.
 *
 * Sources, by the letter at each figure:
 *   M  bench/results/current/machine-cpu.txt: measured by bench/machine_cpu.c
 *   A  AMD, Software Optimization Guide for the AMD Zen 4 Microarchitecture (57647), for Zen 3 (56665)
 *   I  Intel 64 and IA-32 Architectures Optimization Reference Manual (248966)
 *   R  Arm, Neoverse N1 (PJDOC-466751330-9707) and Neoverse V1 (PJDOC-466751330-9685) Software Optimization Guide
 *   F  A. Fog, Instruction tables, and The microarchitecture of Intel, AMD and VIA CPUs
 *   D  the processor's datasheet: clocks, caches, channels of memory
 *   =  not documented: the figure of Genoa */
#include "cpu.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

enum { KIB = 1024, MIB = 1024 * 1024 };

/* Figures that are not documented, and that depend more on the system than on the processor: measured on Genoa (M), assumed for all
 * others. */
#define AS_GENOA                                                                                             \
    .call = 10, .exponential = 19, .between = 3.7 /* 5.2 read, 2.9 written back */, .region = 0.95e-6,       \
    .wait = 0.14e-6

/* Processors with units for whole vectors, and with single instructions for a multiply-add and for a load into all lanes. */
#define WHOLE_VECTORS .product_instructions = 1, .broadcast_instructions = 1, .passes = 1, .roundings = 1

#define MODEL(vendor_, family_, model)                                                                       \
    .vendor = (vendor_), .family = (family_), .first_model = (model), .last_model = (model)

/* Genoa: 512-bit operations take two passes through 256-bit pipes and ports; caches and clock are the same for all instruction sets. A
 * core that works alone may use a whole third-level cache. */
#define GENOA                                                                                                \
    .vendor = "AuthenticAMD", .family = 25, .first_model = 0x10, .last_model = 0x1f,                         \
    .clock = 3.69e9 /* M */, .instructions = 6 /* A */,                                                      \
    .cache = {{32 * KIB, 64}, {1 * MIB, 31}, {32 * MIB, 27}} /* D, M */, .memory = 26e9 /* M */,             \
    .all_memory = 460e9 /* D: 12 channels of DDR5-4800 */, AS_GENOA

#define MILAN                                                                                                \
    .vendor = "AuthenticAMD", .family = 25, .first_model = 0x00, .last_model = 0x0f,                         \
    .clock = 3.5e9 /* D: EPYC 7763, boost */, .instructions = 6 /* A */,                                     \
    .cache = {{32 * KIB, 64}, {512 * KIB, 32}, {32 * MIB, 27}} /* D, A; the third = Genoa's */,              \
    .memory = 26e9 /* = */, .all_memory = 204e9 /* D: 8 channels of DDR4-3200 */, AS_GENOA

static const fpa_cpu cpus[] = {
    {.name = "epyc-genoa-avx512",
     GENOA,
     .targets = "c:avx512 c:avx512bf16",
     .serves = "c:avx512 c:avx512bf16",
     .multiply_adds = 1 /* M, A */,
     .product_instructions = 1,
     .broadcast_instructions = 1,
     .passes = 2 /* A */,
     .arithmetic = 1 /* A: two pipes that multiply, two that add */,
     .shuffles = 1 /* F */,
     .roundings = 0.75 /* M */,
     .loads = 1 /* M */,
     .stores = 0.5 /* M */,
     .latency = 4 /* M */,
     .forward = 8 /* F */,
     .registers = 32},
    {.name = "epyc-genoa-avx2",
     GENOA,
     .targets = "c:avx2",
     .serves = "",
     .multiply_adds = 2 /* M */,
     WHOLE_VECTORS,
     .arithmetic = 2 /* A */,
     .shuffles = 2 /* F */,
     .loads = 2 /* M */,
     .stores = 1 /* M */,
     .latency = 4 /* M */,
     .forward = 8 /* F */,
     .registers = 16},
    /* a multiply-add is two instructions, each with two pipes */
    {.name = "epyc-genoa-sse2",
     GENOA,
     .targets = "c:sse2",
     .serves = "c:sse2",
     .multiply_adds = 2 /* M */,
     .product_instructions = 3 /* copy, product, sum: no instruction has three operands */,
     .broadcast_instructions = 2,
     .passes = 1,
     .arithmetic = 2 /* A */,
     .shuffles = 2 /* F */,
     .roundings = 1,
     .loads = 2 /* M */,
     .stores = 1 /* M */,
     .latency = 6 /* M: product and sum */,
     .forward = 8 /* F */,
     .registers = 16},
    {.name = "epyc-milan-avx2",
     MILAN,
     .targets = "c:avx2",
     .serves = "c:avx2",
     .multiply_adds = 2 /* A */,
     WHOLE_VECTORS,
     .arithmetic = 2 /* A */,
     .shuffles = 2 /* F */,
     .loads = 2 /* A */,
     .stores = 1 /* A */,
     .latency = 4 /* A */,
     .forward = 8 /* F */,
     .registers = 16},
    {.name = "xeon-skylake-avx512",
     MODEL("GenuineIntel", 6, 0x55),
     .targets = "c:avx512 c:avx512bf16", /* Cooper Lake has the same model number, and pairs of bf16 */
     .serves = "",
     .clock = 2.4e9 /* D: Platinum 8180, turbo of AVX-512 on all cores 2.3, on one 3.5 */,
     .multiply_adds = 2 /* I: ports 0 and 5 */,
     WHOLE_VECTORS,
     .arithmetic = 2 /* I */,
     .shuffles = 1 /* I: port 5 */,
     .loads = 2 /* I */,
     .stores = 1 /* I */,
     .instructions = 4 /* I */,
     .latency = 4 /* I */,
     .forward = 8 /* F */,
     .registers = 32,
     .cache = {{32 * KIB, 128}, {1 * MIB, 48}, {38.5 * MIB, 10}} /* I: L2 64 at peak, 48 sustained; L3 F */,
     .memory = 12e9 /* 12 lines in flight (I: 12 fill buffers), 64 ns */,
     .all_memory = 128e9 /* D: 6 channels of DDR4-2666 */,
     AS_GENOA},
    {.name = "xeon-sapphire-rapids-avx512",
     MODEL("GenuineIntel", 6, 0x8f),
     .targets = "c:avx512 c:avx512bf16",
     .serves = "",
     .clock = 3.0e9 /* D: Platinum 8480+, turbo of all cores */,
     .multiply_adds = 2 /* I */,
     WHOLE_VECTORS,
     .arithmetic = 2 /* I */,
     .shuffles = 1 /* I: port 5 */,
     .loads = 2 /* I */,
     .stores = 1 /* I */,
     .instructions = 6 /* I */,
     .latency = 4 /* I */,
     .forward = 8 /* F */,
     .registers = 32,
     .cache = {{48 * KIB, 128}, {2 * MIB, 48}, {105 * MIB, 10}} /* D, I; L3 = */,
     .memory = 12e9 /* = */,
     .all_memory = 307e9 /* D: 8 channels of DDR5-4800 */,
     AS_GENOA},
    {.name = "neoverse-n1-neon",
     MODEL("ARM", 8, 0xd0c),
     .targets = "c:neon",
     .serves = "c:neon",
     .clock = 2.5e9 /* D: Graviton 2 */,
     .multiply_adds = 2 /* R */,
     WHOLE_VECTORS,
     .arithmetic = 2 /* R */,
     .shuffles = 2 /* R */,
     .loads = 2 /* R */,
     .stores = 1 /* R */,
     .instructions = 4 /* R */,
     .latency = 4 /* R */,
     .forward = 8 /* F */,
     .registers = 32,
     .cache = {{64 * KIB, 32}, {1 * MIB, 32}, {32 * MIB, 16}} /* D, R */,
     .memory = 20e9 /* 20 lines in flight (R), 64 ns */,
     .all_memory = 204e9 /* D: 8 channels of DDR4-3200 */,
     AS_GENOA},
    {.name = "neoverse-v1-neon",
     MODEL("ARM", 8, 0xd40),
     .targets = "c:neon",
     .serves = "",
     .clock = 2.6e9 /* D: Graviton 3 */,
     .multiply_adds = 4 /* R */,
     WHOLE_VECTORS,
     .arithmetic = 4 /* R */,
     .shuffles = 4 /* R */,
     .loads = 3 /* R */,
     .stores = 2 /* R */,
     .instructions = 8 /* R */,
     .latency = 4 /* R */,
     .forward = 8 /* F */,
     .registers = 32,
     .cache = {{64 * KIB, 48}, {1 * MIB, 32}, {32 * MIB, 16}} /* D, R; L3 = */,
     .memory = 20e9 /* = */,
     .all_memory = 307e9 /* D: 8 channels of DDR5-4800 */,
     AS_GENOA},
};

enum { CPUS = sizeof cpus / sizeof *cpus };

int cpu_count(void)
{
    return CPUS;
}

const fpa_cpu *cpu_at(int index)
{
    return index >= 0 && index < CPUS ? &cpus[index] : NULL;
}

/* Whether the name is one of a list's words. */
static bool lists(const char *list, const char *name)
{
    const size_t size = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += size)
        if ((at == list || at[-1] == ' ') && (at[size] == ' ' || at[size] == 0))
            return true;
    return false;
}

const fpa_cpu *cpu_of_target(const fpa_target *target)
{
    for (int i = 0; i < CPUS; i++)
        if (lists(cpus[i].serves, target->name))
            return &cpus[i];
    return NULL;
}

/* ---- this machine ---- */

/* The processor's identification. */
typedef struct signature {
    char vendor[16];
    int family, model;
} signature;

#if defined(__x86_64__)
static signature read_signature(void)
{
    signature s = {0};
    unsigned a, vendor[3], b, c, d;
    if (!__get_cpuid(0, &a, &vendor[0], &vendor[2], &vendor[1]) || !__get_cpuid(1, &a, &b, &c, &d))
        return s;
    memcpy(s.vendor, vendor, sizeof vendor);
    s.family = a >> 8 & 15;
    s.model =
        (int)(a >> 4 & 15) |
        (int)(a >> 12 & 0xf0); /* both vendors of x86 have extended model numbers in families 6 and 15 */
    if (s.family == 15)
        s.family += a >> 20 & 255;
    return s;
}
#elif defined(__aarch64__) && defined(__linux__)
static signature read_signature(void)
{
    enum { CAN_READ = 1 << 11, ARM = 0x41 }; /* HWCAP_CPUID: the system emulates reads of MIDR_EL1 */
    signature s = {0};
    uint64_t midr = 0;
    if (!(getauxval(AT_HWCAP) & CAN_READ))
        return s;
    __asm__("mrs %0, MIDR_EL1" : "=r"(midr));
    if ((midr >> 24 & 255) == ARM)
        s = (signature){.vendor = "ARM", .family = 8, .model = (int)(midr >> 4 & 0xfff)};
    return s;
}
#else
static signature read_signature(void)
{
    return (signature){0};
}
#endif

static bool is_of(const fpa_cpu *cpu, const signature *s)
{
    return strcmp(cpu->vendor, s->vendor) == 0 && cpu->family == s->family && s->model >= cpu->first_model &&
           s->model <= cpu->last_model;
}

const fpa_cpu *cpu_here(const fpa_target *target)
{
    const signature here = read_signature();
    for (int i = 0; i < CPUS; i++)
        if (is_of(&cpus[i], &here) && lists(cpus[i].targets, target->name))
            return &cpus[i];
    return cpu_of_target(target);
}
