/* counting: what the parts of a C kernel are counted in: panels, register tiles, features.
 *
 * Counts become loops and data of machine/cpu_cost.h. They follow the templates in templates/c: whoever changes what
 * those print changes the count. */
#ifndef FPAC_GEN_PLAN_C_COUNTING_H
#define FPAC_GEN_PLAN_C_COUNTING_H

#include "gen/plan/plan.h"
#include "machine/cpu_cost.h"

/* Where counts go. */
typedef struct fpa_counting {
    const fpa_plan *plan;
    const fpa_forming *forming; /* the plan's */
    fpa_cpu_work *work;
    double times; /* that what is counted next is done */
} fpa_counting;

fpa_counting counting_begin(const fpa_plan *plan, fpa_cpu_work *work);
/* Adds a loop, as often as is counted now. */
void counting_loop(const fpa_counting *to, fpa_cpu_loop loop);
/* One whose runs are a step each. */
void counting_once(const fpa_counting *to, fpa_cpu_loop loop);

/* A product of register tiles (templates/c/products.c.in). */
typedef struct fpa_product {
    const char *name;
    int rows, columns;      /* of the result; columns in numbers */
    fpa_register_tile tile; /* that it is cut into */
    double steps;           /* of the inner index */
    double times;           /* that it is done */
    bool clears;            /* sums begin with 0, else with what is there */
    bool fetches;           /* asks for the next chunk's rows in between */
} fpa_product;

void counting_product(const fpa_counting *to, fpa_product p);
/* Rows of a matrix for `count` tokens (templates/c/project_rows.c.in): whole panels, however few are there. */
void counting_projection(const fpa_counting *to, const char *name, const fpa_matrix *matrix, int count);
/* `rows` rows of so many vectors, rounded and brought together two by two (templates/c/pairs.c.in: pair_rows). */
void counting_pairing(const fpa_counting *to, const char *name, double rows, double width_vectors);

/* Sizes. */
int counting_lanes(const fpa_plan *plan);                     /* of a vector */
double counting_vectors(const fpa_plan *plan, int count);     /* that so many numbers take */
int counting_whole_vectors(const fpa_plan *plan, int tokens); /* tokens, filled up to vectors */
int counting_whole_rows(int tokens, fpa_register_tile tile);  /* tokens, filled up to register tiles */
double counting_steps(const fpa_plan *plan, double count);    /* of an inner index: two at once in pairs */
bool counting_normalizes(const fpa_plan *plan);
/* Parts that a row of values is handled in: whole vectors, then narrower ones. */
double counting_row_vectors(const fpa_plan *plan);
double counting_row_rests(const fpa_plan *plan);

/* Bytes. */
double counting_rows_bytes(const fpa_plan *plan);    /* a panel's packed rows */
double counting_read_bytes(const fpa_counting *of);  /* what all tiles read of them */
double counting_values_bytes(const fpa_plan *plan);  /* a panel's values */
double counting_outputs_bytes(const fpa_plan *plan); /* a panel's outputs */
double counting_state_bytes(const fpa_plan *plan);   /* the state, as it runs */

#endif
