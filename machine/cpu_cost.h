/* cpu_cost: seconds of a CPU's work, from counts. From the loops of one thread, with operations of each kind per step, the bytes that
 * come from beyond the first-level cache, and a row of cpu.h: seconds, and what takes most of them. It knows neither heads nor kernels:
 * gen/plan/c/work.c counts. */
#ifndef FPAC_MACHINE_CPU_COST_H
#define FPAC_MACHINE_CPU_COST_H

#include "candidate.h"
#include "cpu.h"

/* Numbers of operations on vectors, or on single numbers. */
typedef struct fpa_cpu_operations {
    double multiply_adds;
    double arithmetic; /* other products, sums, and bitwise operations */
    double shuffles;
    double roundings;  /* of two vectors of floats to one of 16-bit numbers */
    double broadcasts; /* loads of a number into all lanes */
    double loads, stores;
} fpa_cpu_operations;

/* A loop and how often it runs. Operations of a run overlap, so that the busiest kind of them decides. */
typedef struct fpa_cpu_loop {
    const char *name;
    double runs;               /* how often it is entered */
    double steps;              /* steps of a run */
    fpa_cpu_operations step;   /* of one step, on whole vectors */
    fpa_cpu_operations narrow; /* of one step, on at most half a vector */
    double others;             /* other instructions of a step, except loads */
    double calls;              /* of a step: calls of memset and the like, for one vector */
    double exponentials;       /* of a step: exp of a double */
    double chain;              /* of a step: sums each of which needs the one before it */
    double forwards;           /* of a step: stores that the next step loads */
    double come, gone, set;    /* of a step: bytes, like read, written and set of fpa_cpu_data */
    double first, last;        /* of a run: sums that are loaded before its steps, and stored after these */
} fpa_cpu_loop;

/* Data that are accessed repeatedly: the bytes that are accessed between two accesses decide which cache still holds them. */
typedef struct fpa_cpu_data {
    const char *name;
    double read, written; /* bytes in total */
    double set;           /* bytes accessed between two accesses to the same data */
} fpa_cpu_data;

enum { CPU_LOOPS = 256, CPU_DATA = 16 };

typedef struct fpa_cpu_work {
    int loop_count, data_count;
    fpa_cpu_loop loop[CPU_LOOPS];
    fpa_cpu_data data[CPU_DATA];
    double exchanged; /* bytes that are read from another core's cache, or written back */
    double regions;   /* parallel regions of several threads */
    double waits;     /* of a team's threads for the slowest one */
    int threads;      /* threads that share memory bandwidth */
} fpa_cpu_work;

/* Adds a loop, or data; nothing if they are never accessed. If there is no room, a loop is merged with another one of its name, or with
 * the last one, with the mean of their counts; data are merged with the last ones. */
void cpu_work_loop(fpa_cpu_work *work, fpa_cpu_loop loop);
void cpu_work_data(fpa_cpu_work *work, fpa_cpu_data data);

/* Cycles of a loop for a single thread. */
double cpu_loop_cycles(const fpa_cpu *cpu, const fpa_cpu_loop *loop);
/* Cycles for reading the data, and writing them if they are written. */
double cpu_data_cycles(const fpa_cpu *cpu, const fpa_cpu_data *data, int threads);

fpa_cost cpu_cost(const fpa_cpu *cpu, const fpa_cpu_work *work);

#endif
