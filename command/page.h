/* page: what is known of one head, as a page of HTML.
 *
 * Given: a head, what it becomes on a CPU and on a GPU, and, where somebody asked for them, a verdict and times.
 * Gives: one self-contained page: no script, nothing from elsewhere, the same bytes for the same input. All text is
 * escaped (markup.h). page.c has the order of the sections; each page_*.c is one of them. */
#ifndef FPAC_COMMAND_PAGE_H
#define FPAC_COMMAND_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "gen/plan/candidates.h"
#include "gen/plan/plan.h"
#include "gen/simplify/simplify.h"
#include "runtime/verify/verify.h"

/* What is known of a kernel's verification. */
typedef enum page_proof {
    PROOF_NONE,     /* nobody asked */
    PROOF_VERIFIED, /* with a verdict */
    PROOF_REFUSED,  /* it was compared with the formula, and why says how it failed */
    PROOF_MISSING,  /* there is no kernel, or nothing that runs it; why */
} page_proof;

/* A time that was measured. */
typedef struct page_point {
    int form;
    int64_t length;
    double nanoseconds; /* per token and head */
} page_point;

enum { PAGE_POINTS = 64 };

/* The head on one machine. */
typedef struct page_machine {
    const char *title;        /* "CPU", "GPU" */
    const fpa_target *target; /* what its kernels are for */
    const fpa_head *head;     /* as written, but for the dtype that it is shown with */
    bool other_dtype;         /* that is not the head's own */
    int64_t heads, tokens;    /* of the calls that are shown: batch = max(1, tokens / length), */
    int64_t sequences;        /* or that many in the recurrent form, a step */
    bool planned;
    fpa_simplified simple;
    fpa_plan plan;       /* of simple; both only where planned, */
    fpa_error unplanned; /* and else why not */
    page_proof proof;
    fpa_verdict verdict; /* PROOF_VERIFIED */
    char why[sizeof((fpa_error *)0)->message];
    int point_count, points_left; /* left: lines of other sizes, which the chart does not show */
    page_point point[PAGE_POINTS];
} page_machine;

enum { PAGE_CPU, PAGE_GPU, PAGE_MACHINES };

typedef struct page {
    const fpa_head *head;         /* as written */
    const fpa_simplified *simple; /* of head */
    fpa_facts facts;              /* of a plan, where there is one: features, state */
    page_machine machine[PAGE_MACHINES];
    FILE *out;
} page;

/* The whole page into p->out. Errors of the stream are ferror's. */
fpa_status page_write(page *p, fpa_error *error);

/* The beginning of a page up to its body, and its end. */
void page_begin(FILE *out, const char *title);
void page_end(FILE *out);

/* ---- the sections, in their order ---- */

void page_formula(const page *p);
void page_terms(const page *p);
void page_features(const page *p); /* D: simplification, before and after */
void page_state(const page *p);
void page_visible(const page *p);
fpa_status page_cost(const page *p, fpa_error *error);
fpa_status page_kernels(const page *p, fpa_error *error);
void page_verdict(const page *p);

/* ---- what they share ---- */

/* The size of a call of that many tokens on the machine. */
fpa_call_size page_call(const page_machine *machine, int form, int64_t length);

/* The name of a matrix: a trainable one's own, A, B ... of constant ones; escaped text. */
void matrix_letter(const fpa_head *head, int source, FILE *out);

/* The same as a variable of a formula; nothing for the input itself. */
void page_source(const fpa_head *head, int source, FILE *out);

/* <section id> with a heading; page_section_end. */
void page_section(const page *p, const char *id, const char *title);
void page_section_end(const page *p);

/* The product map: which products of coordinates the features of a head of two factors a term are; small: for an
 * index, without words. False: the head's terms are no such products. */
bool page_map(FILE *out, const fpa_head *head, const char *title, bool small);

/* One behind the last of the rows of a branch that from `first` on take consecutive columns with one weight. */
int page_run_end(const fpa_branch *branch, int first);

#endif
