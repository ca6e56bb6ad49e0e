/* starter: the specs that `fpac new` writes, a row for each family. */
#ifndef FPAC_COMMAND_STARTER_H
#define FPAC_COMMAND_STARTER_H

#include <stdbool.h>

/* The run-time matrices of a starter, one for each key/value head. */
enum { STARTER_WEIGHTS = 3 };
typedef struct starter_weight {
    const char *name; /* NULL: there is none */
    int rows, cols;
} starter_weight;

typedef struct starter_family {
    const char *name;    /* as --family gives it */
    const char *kernel;  /* a line: the formula, and when one would use it */
    const char *terms;   /* text after `terms =` */
    const char *scale;   /* as the spec writes it: 1 / sqrt(d) */
    const char *why;     /* half a sentence, as a comment above the terms */
    int d, dv, features; /* D after simplification */
    bool normalized, gate;
    int positions; /* numbers of a token's position; 0: there are no positions */
    starter_weight weight[STARTER_WEIGHTS];
} starter_family;

/* The family of that name (NULL: tspow); NULL: there is none. */
const starter_family *starter_find(const char *name);
/* Family i; NULL: there are no more. */
const starter_family *starter_at(int i);

/* The text of a spec for a head called `name`, malloc'ed; NULL: no memory. */
char *starter_text(const starter_family *family, const char *name);

#endif
