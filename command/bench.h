/* bench: what `fpac bench` was asked for and how it shows what it found. */
#ifndef FPAC_COMMAND_BENCH_H
#define FPAC_COMMAND_BENCH_H

#include "runtime/api/fpa.h"
#include "ceiling.h"
#include "json.h"
#include "measured.h"
#include "timing.h"

typedef struct bench_options {
    const char *head, *form, *target, *dtype, *tsv;         /* tsv: append lines there, or NULL */
    int64_t recent, layers;                                 /* 0: not given */
    int64_t length, batch, heads, repeats, threads, device; /* repeats, threads 0: not given */
    bool graph, candidates, json;
} bench_options;

/* One row, of a kernel on the CPU. */
void bench_print_title(const bench_options *options);
void bench_print(const fpa_description *about, const fpa_timing *timing);
void bench_write(fpa_json *json, const fpa_description *about, const bench_options *options,
                 const fpa_timing *timing);

/* A row as a line of measurements; ceiling NULL: on the CPU. */
void bench_describe(const fpa_description *about, const bench_options *options, const fpa_ceiling *ceiling,
                    const fpa_timing *timing, fpa_measured *item);

/* The same on a GPU: rates beside what the device does at best. */
void bench_print_device_title(const bench_options *options, const fpa_device *device,
                              const fpa_ceiling *ceiling);
void bench_print_device(const fpa_description *about, const fpa_ceiling *ceiling, const fpa_timing *timing);
void bench_write_device(fpa_json *json, const fpa_description *about, const bench_options *options,
                        const fpa_device *device, const fpa_ceiling *ceiling, const fpa_timing *timing);

#endif
