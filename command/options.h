/* options: the command line of a subcommand, described by a table that also prints its help. */
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
    void *value;         /* bool *, const char **, int64_t *, fpa_texts *: set when given */
    const char *operand; /* "NAME" in the help; NULL for a flag */
    const char *help;
    int64_t least, most; /* OPTION_COUNT */
} fpa_option;

/* What a subcommand takes. */
typedef struct fpa_syntax {
    const char *usage;   /* "explain SPEC [options]" */
    const char *purpose; /* a sentence or a few, for --help */
    const fpa_option *options;
    int option_count;
    int least, most;   /* operands that are not options; most < 0: any number */
    const char *notes; /* the end of --help, or NULL */
} fpa_syntax;

/* Parse arguments[1..count). *operands is filled with what is not an option. True: go on. False:
 * stop with *code: help was printed (EXIT_OK), or the line is wrong and was told so (EXIT_USAGE). */
bool options_parse(const fpa_syntax *syntax, int count, char **arguments, fpa_texts *operands, int *code);

/* Say that the option is needed. The exit code. */
int option_missing(const fpa_syntax *syntax, const char *name);

/* Say that the one contradicts the other. The exit code. */
int option_conflict(const fpa_syntax *syntax, const char *name, const char *other);

/* Say that the one means nothing without the other. The exit code. */
int option_needs(const fpa_syntax *syntax, const char *name, const char *other);

/* The row of --verbose, for subcommands that open kernels; command.h says what it shows. */
#define OPTION_VERBOSE                                                                                       \
    {                                                                                                        \
        "--verbose", OPTION_FLAG, verbose_flag(), NULL,                                                      \
            "tell on stderr what is compiled, chosen and cached", 0, 0                                       \
    }

#define OPTION_TABLE(table) (table), (int)(sizeof(table) / sizeof *(table))

#endif
