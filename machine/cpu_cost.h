/* cpu_cost: seconds of a CPU's work, from counts.
 *
 * Given: what one thread does, as loops whose steps have so many operations of each kind, and bytes that come from
 * behind the first-level cache; a row of cpu.h. Gives: seconds, and what takes most of them. It knows no head and no
 * kernel: gen/plan/c/work.c counts. */
#ifndef FPAC_MACHINE_CPU_COST_H
#define FPAC_MACHINE_CPU_COST_H

#include "candidate.h"
#include "cpu.h"

/* Operations on vectors, or on single numbers. */
typedef struct fpa_cpu_operations {
    double multiply_adds;
    double arithmetic; /* other products and sums, and combinations of bits */
    double shuffles;
    double roundings;  /* of two vectors to one of halves */
    double broadcasts; /* numbers that are loaded into all lanes */
    double loads, stores;
} fpa_cpu_operations;

/* A loop and how often it runs. The operations of a run overlap, so that the busiest kind of them decides. */
typedef struct fpa_cpu_loop {
    const char *name;
    double runs;               /* times that it is entered */
    double steps;              /* of a run */
    fpa_cpu_operations step;   /* of one step, on whole vectors */
    fpa_cpu_operations narrow; /* of one step, on half a vector at most */
    double others;             /* instructions of a step beside those and beside loads */
    double calls;              /* of a step: of memset and its like, for a vector */
    double exponentials;       /* of a step: exp of a double */
    double chain;              /* of a step: sums that each need the one before */
    double forwards;           /* of a step: stores that the next step waits for to load */
    double come, gone, set;    /* of a step: bytes, as read, written and set of fpa_cpu_data */
    double first, last;        /* of a run: sums that are loaded before its steps, and stored after them */
} fpa_cpu_loop;

/* Data that are walked again and again: what was walked since decides which cache still has them. */
typedef struct fpa_cpu_data {
    const char *name;
    double read, written; /* bytes in all */
    double set;           /* bytes that lie between two visits */
} fpa_cpu_data;

enum { CPU_LOOPS = 256, CPU_DATA = 16 };

typedef struct fpa_cpu_work {
    int loop_count, data_count;
    fpa_cpu_loop loop[CPU_LOOPS];
    fpa_cpu_data data[CPU_DATA];
    double exchanged; /* bytes that come from another core's cache, or that it gives back */
    double regions;   /* parallel regions of several threads */
    double waits;     /* of a team for its slowest member */
    int threads;      /* that share the memory */
} fpa_cpu_work;

/* Nothing is added that runs never. Where there is no more room a loop is one with another of its name, or with the
 * last, whose steps then have the mean of both counts; data are one with the last. */
void cpu_work_loop(fpa_cpu_work *work, fpa_cpu_loop loop);
void cpu_work_data(fpa_cpu_work *work, fpa_cpu_data data);

/* For a thread that has the memory for itself. */
double cpu_loop_cycles(const fpa_cpu *cpu, const fpa_cpu_loop *loop);
/* Cycles until the data have come, and gone where they are written. */
double cpu_data_cycles(const fpa_cpu *cpu, const fpa_cpu_data *data, int threads);

fpa_cost cpu_cost(const fpa_cpu *cpu, const fpa_cpu_work *work);

#endif
