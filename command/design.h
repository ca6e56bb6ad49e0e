/* design: heads whose states fit into a given size, ranked. Declarations that the files of `fpac design` share. */
#ifndef FPAC_COMMAND_DESIGN_H
#define FPAC_COMMAND_DESIGN_H

#include "capacity.h"
#include "command.h"
#include "gen/plan/candidates.h"

/* The request of the command line. */
typedef struct design_request {
    int64_t d, dv, length, heads, batch, threads, recalled, measured, rows, chosen, device;
    const char *state_text, *target_name, *dtype_name, *normalize_name, *output, *plot, *gpu_name;
    bool gate, json;
    double state; /* the most bytes of the state of one (batch, head) */
    fpa_normalize normalize;
    fpa_dtype dtype;
    const fpa_target *target;
    fpa_machine machine;      /* machine for which times are predicted */
    const char *machine_name; /* its name in the table */
} design_request;

/* A head; the second half is known after it was planned. */
typedef struct design_row {
    char label[64];    /* "tspow 3, block 4" */
    char terms[256];   /* text after `terms =` */
    char before[640];  /* lines before the head; may be empty */
    const char *about; /* a sentence about the family */
    int function;      /* rows with the same number are the same function of q and k */
    int degree;        /* n if the kernel is (q.k)^n, else 0 */
    double scale;      /* scale of the head */
    double least;      /* least number of its features */

    bool fits;
    fpa_facts facts;
    double prefill, decode; /* predicted ns per token and head */
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
    double smallest; /* bytes of the smallest state that does not fit; 0: all fit */
    char smallest_label[64];
    fpa_error refusal; /* reason for the last head that the target cannot serve; code FPA_OK: it serves all */
} design_list;

/* List all heads of that d and dv whose state may have at most so many features; others are recorded in
 * `smallest`. */
fpa_status design_enumerate(const design_request *request, design_list *list, fpa_error *error);
void design_free(design_list *list);

/* Load the row's head, as a list of one. */
fpa_status design_load(const design_request *request, const design_row *row, fpa_head_list *list,
                       fpa_error *error);
/* Write the spec of row request->chosen to request->output, with its predictions as comments. */
fpa_status design_write_chosen(const design_request *request, const design_list *list, fpa_error *error);

/* Print the tables, and write the pictures, of rows that are planned and sorted. */
void design_print(const design_request *request, const design_list *list);
void design_write_json(const design_request *request, const design_list *list);
fpa_status design_plot(const design_request *request, const design_list *list, fpa_error *error);

#endif
