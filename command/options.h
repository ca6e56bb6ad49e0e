/* options: parses the command line of a subcommand by a table, which also gives its help. */
#ifndef FPAC_COMMAND_OPTIONS_H
#define FPAC_COMMAND_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum fpa_option_kind {
    OPTION_FLAG,  /* bool: --json */
    OPTION_TEXT,  /* const char *: --head NAME, --head=NAME */
    OPTION_COUNT, /* int64_t in least..most: --length 4096 */
    OPTION_MANY,  /* fpa_texts: may be given several times */
} fpa_option_kind;

enum { MANY_TEXTS = 256 };
typedef struct fpa_texts {
    int count;
    const char *text[MANY_TEXTS];
} fpa_texts;

typedef struct fpa_option {
    const char *name; /* "--head", "-o" */
    fpa_option_kind kind;
    void *value;         /* bool *, const char **, int64_t * or fpa_texts *; set if the option is given */
    const char *operand; /* "NAME" in the help; NULL for a flag */
    const char *help;
    int64_t least, most; /* range of an OPTION_COUNT */
} fpa_option;

/* The options and operands of a subcommand. */
typedef struct fpa_syntax {
    const char *usage;   /* "explain SPEC [options]" */
    const char *purpose; /* a sentence or a few, for --help */
    const fpa_option *options;
    int option_count;
    int least, most;   /* number of operands; most < 0: any */
    const char *notes; /* the end of --help, or NULL */
} fpa_syntax;

/* Parse arguments[1..count). *operands gets the arguments that are not options. True: continue. False: stop with
 * *code: help was printed (EXIT_OK), or the line has an error that was reported (EXIT_USAGE). */
bool options_parse(const fpa_syntax *syntax, int count, char **arguments, fpa_texts *operands, int *code);

/* Report that the option is required. Returns the exit code. */
int option_missing(const fpa_syntax *syntax, const char *name);

/* Report that the two options contradict each other. Returns the exit code. */
int option_conflict(const fpa_syntax *syntax, const char *name, const char *other);

/* Report that an option needs another one. Returns the exit code. */
int option_needs(const fpa_syntax *syntax, const char *name, const char *other);

/* The row of --verbose, for subcommands that open kernels (see say_log in command.h). */
#define OPTION_VERBOSE                                                                                       \
    {                                                                                                        \
        "--verbose", OPTION_FLAG, verbose_flag(), NULL,                                                      \
            "tell on stderr what is compiled, chosen and cached", 0, 0                                       \
    }

#define OPTION_TABLE(table) (table), (int)(sizeof(table) / sizeof *(table))

#endif
