/* page: a description of one head, as a page of HTML.
 *
 * Given: a head, its plans for a CPU and for a GPU and, if wanted, a verdict and times. Gives: one self-contained
 * page, without scripts or links to other files, with the same bytes for the same input. All text is escaped
 * (markup.h). page.c has the order of the sections; each page_*.c is one of them. */
#ifndef FPAC_COMMAND_PAGE_H
#define FPAC_COMMAND_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "gen/plan/candidates.h"
#include "gen/plan/plan.h"
#include "gen/simplify/simplify.h"
#include "runtime/verify/verify.h"

/* The state of a kernel's verification. */
typedef enum page_proof {
    PROOF_NONE,     /* not wanted */
    PROOF_VERIFIED, /* verified, with a verdict */
    PROOF_REFUSED,  /* the comparison with the formula failed, as `why` says */
    PROOF_MISSING,  /* there is no kernel, or no device for it, as `why` says */
} page_proof;

/* A measured time. */
typedef struct page_point {
    int form;
    int64_t length;
    double nanoseconds; /* per token and head */
} page_point;

enum { PAGE_POINTS = 64 };

/* The head on one machine. */
typedef struct page_machine {
    const char *title;        /* "CPU", "GPU" */
    const fpa_target *target; /* target of its kernels */
    const fpa_head *head;     /* the head as written, except for the dtype with which it is shown */
    bool other_dtype;         /* that dtype is not the head's own */
    int64_t heads, tokens;    /* of the calls that are shown, with batch = max(1, tokens / length) */
    int64_t sequences;        /* batch of a step in the recurrent form */
    bool planned;
    fpa_simplified simple;
    fpa_plan plan;       /* simple and plan are set only if planned */
    fpa_error unplanned; /* if not planned: the reason */
    page_proof proof;
    fpa_verdict verdict; /* PROOF_VERIFIED */
    char why[sizeof((fpa_error *)0)->message];
    int point_count, points_left; /* points_left: lines of other sizes, which the chart does not show */
    page_point point[PAGE_POINTS];
} page_machine;

enum { PAGE_CPU, PAGE_GPU, PAGE_MACHINES };

typedef struct page {
    const fpa_head *head;         /* the head as written */
    const fpa_simplified *simple; /* `head` simplified */
    fpa_facts facts;              /* from a plan, if there is one: features, state */
    page_machine machine[PAGE_MACHINES];
    FILE *out;
} page;

/* Write the whole page to p->out. Errors of the stream are reported by ferror. */
fpa_status page_write(page *p, fpa_error *error);

/* Write the beginning of a page up to its body; write its end. */
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

/* ---- functions that the sections share ---- */

/* The size of a call with sequences of that length, as shown for the machine. */
fpa_call_size page_call(const page_machine *machine, int form, int64_t length);

/* Write the name of a matrix, escaped: a trainable one's own; A, B ... for constant ones. */
void matrix_letter(const fpa_head *head, int source, FILE *out);

/* Write the name as a variable of a formula; nothing for the input itself. */
void page_source(const fpa_head *head, int source, FILE *out);

/* Begin a <section id> with a heading; page_section_end ends it. */
void page_section(const page *p, const char *id, const char *title);
void page_section_end(const page *p);

/* Write the product map: which products of coordinates the features are, of a head whose terms have two factors.
 * small: for an index, without text. False: the terms have no such products. */
bool page_map(FILE *out, const fpa_head *head, const char *title, bool small);

/* The end of the run of rows, beginning at `first`, that are consecutive columns with equal weights: the index
 * after the last one. */
int page_run_end(const fpa_branch *branch, int first);

#endif
