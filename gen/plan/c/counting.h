/* counting: functions that count the panels, register tiles and features of a C kernel.
 *
 * Counts become loops and data of machine/cpu_cost.h. They follow the templates in templates/c: whoever changes
 * the printed code changes the count. */
#ifndef FPAC_GEN_PLAN_C_COUNTING_H
#define FPAC_GEN_PLAN_C_COUNTING_H

#include "gen/plan/plan.h"
#include "machine/cpu_cost.h"

/* Where counts are added. */
typedef struct fpa_counting {
    const fpa_plan *plan;
    const fpa_forming *forming; /* operations to form the plan's features */
    fpa_cpu_work *work;
    double times; /* how often the counted code is executed */
} fpa_counting;

fpa_counting counting_begin(const fpa_plan *plan, fpa_cpu_work *work);
/* Adds a loop, `to->times` times. */
void counting_loop(const fpa_counting *to, fpa_cpu_loop loop);
/* Adds a loop whose runs have one step each. */
void counting_once(const fpa_counting *to, fpa_cpu_loop loop);

/* A product of register tiles (templates/c/products.c.in). */
typedef struct fpa_product {
    const char *name;
    int rows, columns;      /* rows and columns of the result, in numbers */
    fpa_register_tile tile; /* register tile into which it is divided */
    double steps;           /* steps of the inner index */
    double times;           /* how often it is computed */
    bool clears;            /* sums begin with 0; else with the numbers in memory */
    bool fetches;           /* it prefetches the next chunk's rows */
} fpa_product;

void counting_product(const fpa_counting *to, fpa_product p);
/* Counts a projection: a matrix times `count` tokens, in whole panels (templates/c/project_rows.c.in). */
void counting_projection(const fpa_counting *to, const char *name, const fpa_matrix *matrix, int count);
/* Counts the conversion of `rows` rows of so many vectors to pairs of bf16 (templates/c/pairs.c.in: pair_rows). */
void counting_pairing(const fpa_counting *to, const char *name, double rows, double width_vectors);

/* Sizes. */
int counting_lanes(const fpa_plan *plan);                     /* lanes of a vector */
double counting_vectors(const fpa_plan *plan, int count);     /* vectors for `count` numbers */
int counting_whole_vectors(const fpa_plan *plan, int tokens); /* tokens, rounded up to whole vectors */
int counting_whole_rows(int tokens, fpa_register_tile tile);  /* tokens, rounded up to whole register tiles */
/* steps of an inner index of `count`: half as many in pairs */
double counting_steps(const fpa_plan *plan, double count);
bool counting_normalizes(const fpa_plan *plan);
/* The number of vectors that contain a row of values: whole ones, then narrower ones. */
double counting_row_vectors(const fpa_plan *plan);
double counting_row_rests(const fpa_plan *plan);

/* Bytes. */
double counting_rows_bytes(const fpa_plan *plan);    /* packed rows of a panel */
double counting_read_bytes(const fpa_counting *of);  /* packed rows that all tiles read */
double counting_values_bytes(const fpa_plan *plan);  /* values of a panel */
double counting_outputs_bytes(const fpa_plan *plan); /* outputs of a panel */
double counting_state_bytes(const fpa_plan *plan);   /* the state in float32 */

#endif
