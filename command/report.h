/* report: what a page is made of: one head on its machines, as options ask for it. */
#ifndef FPAC_COMMAND_REPORT_H
#define FPAC_COMMAND_REPORT_H

#include "measured.h"
#include "page.h"

typedef struct report_options {
    const char *head, *target, *dtype, *output;
    const char *measured[PAGE_MACHINES]; /* files of lines that fpac bench --tsv wrote, or NULL */
    bool verify, measure;
} report_options;

/* What all pages of a command share. report_sources_free. */
typedef struct report_sources {
    const report_options *options;
    const fpa_target *target[PAGE_MACHINES];
    fpa_measured_list lines[PAGE_MACHINES];
} report_sources;

/* INVALID: the target is none of a CPU's, or a line is none of measurements. */
fpa_status report_sources_open(const report_options *options, report_sources *sources, fpa_error *error);
void report_sources_free(report_sources *sources);

/* One head of a spec on a machine: planned, and compiled, verified and timed where the options say so. A plan that is
 * not possible, a kernel that is refused and a machine that is not there are what the page tells, and no errors.
 * *loaded owns the head, which has the dtype that the machine is shown with; report_machine_free frees both. */
fpa_status report_machine_make(const report_sources *sources, int machine, const char *spec, const char *name,
                               fpa_head_list *loaded, page_machine *made, fpa_error *error);
void report_machine_free(fpa_head_list *loaded, page_machine *made);

/* Writes the index of the pages beside it, page by page. */
void index_begin(FILE *out);
void index_add_spec(FILE *out, const char *spec, bool first);
void index_add(const page *p);
void index_end(FILE *out);

#endif
