/* design: heads that fit into a state, ranked. What the files of `fpac design` share. */
#ifndef FPAC_COMMAND_DESIGN_H
#define FPAC_COMMAND_DESIGN_H

#include "capacity.h"
#include "command.h"
#include "gen/plan/candidates.h"

/* What the command line asks for. */
typedef struct design_request {
    int64_t d, dv, length, heads, batch, threads, recalled, measured, rows, chosen, device;
    const char *state_text, *target_name, *dtype_name, *normalize_name, *output, *plot, *gpu_name;
    bool gate, json;
    double state; /* bytes of one (batch, head) */
    fpa_normalize normalize;
    fpa_dtype dtype;
    const fpa_target *target;
    fpa_machine machine;      /* whose seconds are predicted, */
    const char *machine_name; /* as its table has it */
} design_request;

/* One head that may suit; what is found of it once it was planned. */
typedef struct design_row {
    char label[64];    /* "tspow 3, block 4" */
    char terms[256];   /* what stands behind `terms =` */
    char before[640];  /* lines before the head; may be empty */
    const char *about; /* a sentence on the family */
    int function;      /* rows of one number are the same function of q and k */
    int degree;        /* of (q.k)^degree; 0: of none */
    double scale;      /* of the head */
    double least;      /* features that it has at least */

    bool fits;
    fpa_facts facts;
    double prefill, decode; /* predicted ns a token and head */
    double pairs, worth;    /* capacity.h */
    bool is_negative;
    /* 1: on the Pareto front, no other row has both more recall and less time; 2: on it once the rows of 1 are
     * removed; ... */
    int front;
    bool was_measured;
    double measured_prefill, measured_decode;
} design_row;

typedef struct design_list {
    int count, room;
    design_row *rows;
    double smallest; /* bytes of the smallest state that was looked at and does not fit; 0: all fit */
    char smallest_label[64];
    fpa_error refusal; /* of the last head that the target does not serve; code FPA_OK: it serves all */
} design_list;

/* All heads of that d and dv whose state may be at most so many features; others are counted in smallest. */
fpa_status design_enumerate(const design_request *request, design_list *list, fpa_error *error);
void design_free(design_list *list);

/* The row's head, alone in its list. */
fpa_status design_load(const design_request *request, const design_row *row, fpa_head_list *list,
                       fpa_error *error);
/* The spec of row number request->chosen to request->output, with what is predicted of it. */
fpa_status design_write_chosen(const design_request *request, const design_list *list, fpa_error *error);

/* The tables and pictures of rows that are planned and in their order. */
void design_print(const design_request *request, const design_list *list);
void design_write_json(const design_request *request, const design_list *list);
fpa_status design_plot(const design_request *request, const design_list *list, fpa_error *error);

#endif
