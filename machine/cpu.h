/* cpu: what processors do in a cycle, a row for each processor and instruction set.
 *
 * Given: a C target, or this machine. Gives: the row whose figures cpu_cost.h makes seconds of. Each target has
 * a default row, since emitted code depends on no device; a prediction for this machine takes the row of its
 * own processor. Every figure has its source in cpu.c. */
#ifndef FPAC_MACHINE_CPU_H
#define FPAC_MACHINE_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "target.h"

/* The caches of a core, nearest first. Behind the last of them is memory. */
typedef enum fpa_cache_level { CACHE_FIRST, CACHE_SECOND, CACHE_THIRD, CACHES } fpa_cache_level;

typedef struct fpa_cache {
    double bytes;     /* that a core may have of it */
    double bandwidth; /* bytes a cycle that come from it, and as many that go there meanwhile */
} fpa_cache;

typedef struct fpa_cpu {
    const char *name; /* processor and instruction set: "epyc-genoa-avx512" */
    const char *vendor;
    int family, first_model, last_model; /* as cpuid has them; aarch64: 8 and the part's number */
    const char *targets;                 /* that its figures are of */
    const char *serves;                  /* of these: whose default row it is */
    double clock;                        /* cycles a second of a core that multiplies vectors */
    double multiply_adds;                /* vectors a cycle */
    double product_instructions;         /* that a multiply-add takes: 1, or a copy, a product and a sum */
    double broadcast_instructions;       /* that bring a number into all lanes */
    double passes;                       /* of a vector through units and ports; one of half a vector */
    double arithmetic;    /* vectors a cycle that are multiplied, added or combined bit by bit */
    double shuffles;      /* vectors a cycle whose lanes move */
    double roundings;     /* vectors of bf16 a cycle, each of two of floats; no matter without pairs */
    double loads, stores; /* vectors, or numbers, a cycle */
    double instructions;  /* a cycle */
    double latency;       /* cycles until a sum can be added to again */
    double forward;       /* cycles until what was stored can be loaded */
    double call;          /* cycles of a call of memset for a vector */
    double exponential;   /* cycles of exp of a double */
    int registers;        /* vectors */
    fpa_cache cache[CACHES];
    double between;    /* bytes a cycle that come from another core's cache, or are taken back from it */
    double memory;     /* bytes a second that one core moves */
    double all_memory; /* bytes a second that all cores move */
    double region;     /* seconds of a parallel region of several threads */
    double wait;       /* seconds until threads of a team have met */
} fpa_cpu;

int cpu_count(void);
const fpa_cpu *cpu_at(int index);
/* The target's default row; NULL of CUDA targets. */
const fpa_cpu *cpu_of_target(const fpa_target *target);
/* The row of this machine's processor for the target; the default row where it has none. */
const fpa_cpu *cpu_here(const fpa_target *target);

#endif
