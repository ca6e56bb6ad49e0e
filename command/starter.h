/* starter: the specs that `fpac new` writes, a family a row. */
#ifndef FPAC_COMMAND_STARTER_H
#define FPAC_COMMAND_STARTER_H

#include <stdbool.h>

/* Run-time matrices of a starter, one a key/value head. */
enum { STARTER_WEIGHTS = 3 };
typedef struct starter_weight {
    const char *name; /* NULL: there is none */
    int rows, cols;
} starter_weight;

typedef struct starter_family {
    const char *name;    /* as --family gives it */
    const char *kernel;  /* a line: the formula, and when one would take it */
    const char *terms;   /* what stands behind `terms =` */
    const char *scale;   /* as the spec writes it: 1 / sqrt(d) */
    const char *why;     /* half a sentence, above the terms */
    int d, dv, features; /* D after simplification */
    bool normalized, gate;
    int positions; /* numbers of a token's position; 0: none is given */
    starter_weight weight[STARTER_WEIGHTS];
} starter_family;

/* The family of that name (NULL: tspow), or NULL. */
const starter_family *starter_find(const char *name);
/* Row i; NULL: there are no more. */
const starter_family *starter_at(int i);

/* The spec of a head called name, malloc'ed; NULL: no memory. */
char *starter_text(const starter_family *family, const char *name);

#endif
