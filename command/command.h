/* command: the subcommands of `fpac`, one file each, and what they share. */
#ifndef FPAC_COMMAND_H
#define FPAC_COMMAND_H

#include "gen/gen.h"
#include "machine/gpu.h"
#include "runtime/backend.h"

/* Exit codes, part of the command's contract. */
enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,  /* the request failed: a spec, a file, the compiler */
    EXIT_USAGE = 2,   /* the command line is wrong */
    EXIT_REFUSED = 3, /* a kernel was compared with the formula and found wrong */
};

/* One row a subcommand: arguments[0] is its name. */
typedef struct fpa_command {
    const char *name;
    const char *purpose; /* one line for `fpac --help` */
    int (*run)(int count, char **arguments);
} fpa_command;

int command_new(int count, char **arguments);
int command_design(int count, char **arguments);
int command_explain(int count, char **arguments);
int command_gen(int count, char **arguments);
int command_verify(int count, char **arguments);
int command_run(int count, char **arguments);
int command_bench(int count, char **arguments);
int command_plot(int count, char **arguments);
int command_report(int count, char **arguments);
int command_list(int count, char **arguments);
int command_prelude(int count, char **arguments);
int command_cache(int count, char **arguments);

/* Print `fpac: where: message` on stderr, after --json {"error": {"code", "where", "message"}} in one line; the
 * exit code that the error stands for. */
int report(const fpa_error *error);

/* Whether it is an option of the command line that is wrong (`--dtype: soup is no dtype`), whatever the spec is. */
bool is_of_line(const fpa_error *error);

void report_as_json(bool wanted);
bool json_errors(void);

/* A line on stderr: `fpac: ...`. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, where --verbose asks for it. */
void detail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* fpa_options.log of the subcommands: with --verbose a line on stderr, without it progress; warnings always are a
 * line. verbose_flag: what --verbose sets. */
void say_log(void *user, const char *line);
bool *verbose_flag(void);

/* Flush stdout; EXIT_FAILED with a message when a write to it failed, else code. */
int finish_output(int code);

/* One line on stderr that replaces itself, only when stderr is a terminal. */
void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void progress_end(void); /* wipe it */

/* Heads of one spec file to work on: all, or the one named. *first and *end index list. dtype, unless
 * NULL, stands for what the heads say of q, k, v and o; unknown: INVALID. */
fpa_status select_heads(const char *spec, const char *name, const char *dtype, fpa_head_list *list,
                        int *first, int *end, fpa_error *error);

/* The same, where name may be a layer's, which is the caller's to find: *first and *end are equal then. */
fpa_status select_with_layers(const char *spec, const char *name, const char *dtype, fpa_head_list *list,
                              int *first, int *end, fpa_error *error);

/* The target by name, to write code for: NULL or "c": the best that this machine runs; "cuda": the
 * best for the GPU here, DEVICE without one. Unknown: INVALID with the list. */
fpa_status select_target(const char *name, const fpa_target **target, fpa_error *error);

/* A row of the table of GPUs by its name, for a target of theirs; name NULL: NULL, the target's usual one. */
fpa_status select_gpu(const char *name, const fpa_target *target, const fpa_gpu **gpu, fpa_error *error);

/* The back end of a target; NULL: "c". Unknown: INVALID with the list. */
fpa_status select_backend(const char *name, const fpa_backend **backend, fpa_error *error);

/* options->target to compute on, with its back end. UNSUPPORTED or DEVICE: it does not run here. */
fpa_status select_running(const fpa_options *options, const fpa_backend **backend, const fpa_target **target,
                          fpa_error *error);

/* Help of --target and --device where something runs, and of --dtype. */
extern const char target_help[], device_help[], dtype_help[];
enum { MOST_DEVICES = 1023 };

/* The form named auto, parallel, chunked or recurrent as an fpa_form (-1, 0, 1, 2). */
fpa_status select_form(const char *name, int *form, fpa_error *error);

/* The dtype named f32, bf16 or f16. */
fpa_status select_dtype(const char *name, fpa_dtype *dtype, fpa_error *error);

/* "2304", "576.0 KiB": for people. text has SIZE_TEXT bytes. */
enum { SIZE_TEXT = 32 };
const char *size_text(char text[SIZE_TEXT], double bytes);

#endif
