/* command: the subcommands of `fpac`, one file each, and functions that they share. */
#ifndef FPAC_COMMAND_H
#define FPAC_COMMAND_H

#include "gen/gen.h"
#include "machine/gpu.h"
#include "runtime/backend.h"

/* Exit codes, part of the command's contract. */
enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,  /* the request failed, by a spec, a file, the compiler or another cause */
    EXIT_USAGE = 2,   /* the command line is wrong */
    EXIT_REFUSED = 3, /* verification has found a kernel wrong */
};

/* A subcommand, a row of the table; run gets its name as arguments[0]. */
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

/* Report an error: print `fpac: where: message` on stderr, or with --json {"error": {"code", "where", "message"}}
 * in one line. Returns the error's exit code. */
int report(const fpa_error *error);

/* Whether an error is about an option of the command line (`--dtype: soup is no dtype`), and thus independent of
 * the spec. */
bool is_of_line(const fpa_error *error);

void report_as_json(bool wanted);
bool json_errors(void);

/* Print a line on stderr: `fpac: ...`. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, only with --verbose. */
void detail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The subcommands' fpa_options.log: with --verbose it prints a line on stderr, without it shows progress; warnings
 * are always a line. verbose_flag: the variable that --verbose sets. */
void say_log(void *user, const char *line);
bool *verbose_flag(void);

/* Flush stdout. Returns code, or EXIT_FAILED, with a message, if a write to stdout failed. */
int finish_output(int code);

/* Show progress: a line on stderr that replaces the previous one, only if stderr is a terminal. */
void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void progress_end(void); /* erase the line */

/* Load a spec and select its heads: all, or the one of that name. *first and *end are indices of list. dtype,
 * unless NULL, replaces the heads' type of q, k, v and o; unknown: INVALID. */
fpa_status select_heads(const char *spec, const char *name, const char *dtype, fpa_head_list *list,
                        int *first, int *end, fpa_error *error);

/* The same, but name may be that of a layer, which the caller finds; then *first and *end are equal. */
fpa_status select_with_layers(const char *spec, const char *name, const char *dtype, fpa_head_list *list,
                              int *first, int *end, fpa_error *error);

/* The target of that name, to generate code for. NULL or "c": the best one that this machine runs; "cuda": the
 * best one for the GPU here, DEVICE if there is none. Unknown: INVALID with the list. */
fpa_status select_target(const char *name, const fpa_target **target, fpa_error *error);

/* The row of the table of GPUs with that name, for a CUDA target; name NULL: NULL, for the target's default row. */
fpa_status select_gpu(const char *name, const fpa_target *target, const fpa_gpu **gpu, fpa_error *error);

/* The back end of a target; name NULL: "c". Unknown: INVALID with the list. */
fpa_status select_backend(const char *name, const fpa_backend **backend, fpa_error *error);

/* The target to compute on, from options->target, with its back end. UNSUPPORTED or DEVICE: it does not run here. */
fpa_status select_running(const fpa_options *options, const fpa_backend **backend, const fpa_target **target,
                          fpa_error *error);

/* Help texts of --target and --device for commands that run kernels, and of --dtype. */
extern const char target_help[], device_help[], dtype_help[];
enum { MOST_DEVICES = 1023 };

/* The form named auto, parallel, chunked or recurrent as an fpa_form (-1, 0, 1, 2). */
fpa_status select_form(const char *name, int *form, fpa_error *error);

/* The dtype named f32, bf16 or f16. */
fpa_status select_dtype(const char *name, fpa_dtype *dtype, fpa_error *error);

/* A number of bytes for people: "2304", "576.0 KiB". text has SIZE_TEXT bytes. */
enum { SIZE_TEXT = 32 };
const char *size_text(char text[SIZE_TEXT], double bytes);

#endif
