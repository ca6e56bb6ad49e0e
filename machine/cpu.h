/* cpu: throughput and latency of processors, a row for each processor and instruction set. From a C target, or this machine's processor,
 * it gives the row from which cpu_cost.h computes seconds. Each target has a default row, since emitted code does not depend on a device;
 * predictions for this machine use the row of its own processor. The source of every figure is in cpu.c. */
#ifndef FPAC_MACHINE_CPU_H
#define FPAC_MACHINE_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "target.h"

/* The caches of a core, the fastest first; memory follows after the last one. */
typedef enum fpa_cache_level { CACHE_FIRST, CACHE_SECOND, CACHE_THIRD, CACHES } fpa_cache_level;

typedef struct fpa_cache {
    double bytes;     /* that one core may use */
    double bandwidth; /* bytes a cycle that are read from it, while as many are written to it */
} fpa_cache;

typedef struct fpa_cpu {
    const char *name; /* processor and instruction set: "epyc-genoa-avx512" */
    const char *vendor;
    int family, first_model, last_model; /* those of cpuid; aarch64: 8 and the part's number */
    const char *targets;                 /* targets to which its figures apply */
    const char *serves;                  /* those of them whose default row it is */
    double clock;                        /* Hz, while a core multiplies vectors */
    double multiply_adds;                /* vectors a cycle */
    double product_instructions;         /* of a multiply-add: 1, or 3 for a copy, a product and a sum */
    double broadcast_instructions;       /* to load a number into all lanes */
    double passes;        /* passes of a vector through units and ports; half a vector takes one */
    double arithmetic;    /* vectors a cycle: products, sums, bitwise operations */
    double shuffles;      /* vectors a cycle whose lanes are moved */
    double roundings;     /* vectors of bf16 a cycle, each from two of floats; unused without pairs */
    double loads, stores; /* vectors, or numbers, a cycle */
    double instructions;  /* a cycle */
    double latency;       /* cycles from a sum to the next one that needs it */
    double forward;       /* cycles from a store to a load of the same address */
    double call;          /* cycles for a call of memset for one vector */
    double exponential;   /* cycles for exp of a double */
    int registers;        /* vector registers */
    fpa_cache cache[CACHES];
    double between;    /* bytes a cycle that are read from another core's cache, or written back */
    double memory;     /* bytes a second that one core moves */
    double all_memory; /* bytes a second that all cores move */
    double region;     /* seconds of a parallel region of several threads */
    double wait;       /* seconds until threads of a team have met */
} fpa_cpu;

int cpu_count(void);
const fpa_cpu *cpu_at(int index);
/* The target's default row; NULL for CUDA targets. */
const fpa_cpu *cpu_of_target(const fpa_target *target);
/* The row of this machine's processor for the target; the default row if the table lacks the processor. */
const fpa_cpu *cpu_here(const fpa_target *target);

#endif
