/* bench: the options of `fpac bench`, and how it prints its results. */
#ifndef FPAC_COMMAND_BENCH_H
#define FPAC_COMMAND_BENCH_H

#include "machine/candidate.h"
#include "runtime/api/fpa.h"
#include "bound.h"
#include "ceiling.h"
#include "json.h"
#include "measured.h"
#include "timing.h"

typedef struct bench_options {
    const char *head, *form, *target, *dtype, *tsv; /* tsv: file to which lines are appended, or NULL */
    int64_t recent, layers;                         /* 0: not given */
    int64_t length, batch, heads, repeats, threads, device; /* repeats, threads 0: not given */
    bool graph, candidates, json, backward, breakdown;
} bench_options;

/* The results for a head that was timed. */
typedef struct bench_row {
    const fpa_description *about;
    fpa_timing timing;
    fpa_bound bound;         /* the least time of this forward on this machine */
    fpa_cost cost;           /* the model's prediction */
    fpa_breakdown breakdown; /* on a GPU, if wanted */
} bench_row;

/* Print the title of rows, or a row, for kernels on the CPU. */
void bench_print_title(const bench_options *options);
void bench_print(const bench_row *row);
void bench_write(fpa_json *json, const bench_options *options, const bench_row *row);
/* Print a head that cannot be timed, as JSON. */
void bench_write_error(fpa_json *json, const char *head, const fpa_error *error);

/* Make a line of measurements of a row; ceiling NULL: on the CPU. */
void bench_describe(const fpa_description *about, const bench_options *options, const fpa_ceiling *ceiling,
                    const fpa_timing *timing, fpa_measured *item);

/* The same for a GPU, with rates relative to the device's ceilings. */
void bench_print_device_title(const bench_options *options, const fpa_device *device,
                              const fpa_ceiling *ceiling);
void bench_print_device(const bench_row *row, const fpa_ceiling *ceiling);
void bench_write_device(fpa_json *json, const bench_options *options, const fpa_device *device,
                        const fpa_ceiling *ceiling, const bench_row *row);

#endif
