/* report: the contents of a page: one head on its machines, as the options want it. */
#ifndef FPAC_COMMAND_REPORT_H
#define FPAC_COMMAND_REPORT_H

#include "measured.h"
#include "page.h"

typedef struct report_options {
    const char *head, *target, *dtype, *output;
    const char *measured[PAGE_MACHINES]; /* files of lines that fpac bench --tsv wrote; NULL: none */
    bool verify, measure;
} report_options;

/* Data that all pages of a command share. Freed by report_sources_free. */
typedef struct report_sources {
    const report_options *options;
    const fpa_target *target[PAGE_MACHINES];
    fpa_measured_list lines[PAGE_MACHINES];
} report_sources;

/* Open the sources. INVALID: the target is not a CPU's, or a line is not one of measurements. */
fpa_status report_sources_open(const report_options *options, report_sources *sources, fpa_error *error);
void report_sources_free(report_sources *sources);

/* Make one head of a spec for a machine: planned and, if the options want it, compiled, verified and timed. That a
 * plan is impossible, a kernel is refused or a machine is missing is no error, but shown by the page. *loaded owns
 * the head, with the dtype in which the machine is shown; report_machine_free frees both. */
fpa_status report_machine_make(const report_sources *sources, int machine, const char *spec, const char *name,
                               fpa_head_list *loaded, page_machine *made, fpa_error *error);
void report_machine_free(fpa_head_list *loaded, page_machine *made);

/* Write the index of the pages, page by page. */
void index_begin(FILE *out);
void index_add_spec(FILE *out, const char *spec, bool first);
void index_add(const page *p);
void index_end(FILE *out);

#endif
