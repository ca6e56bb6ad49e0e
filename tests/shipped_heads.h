/* shipped_heads: every head of specs/, for tests that walk them all. */
#ifndef FPAC_TESTS_SHIPPED_HEADS_H
#define FPAC_TESTS_SHIPPED_HEADS_H

#include "gen/gen.h"

enum { SHIPPED_PATH = 300, SHIPPED_MANY = 256 };

typedef struct shipped_head {
    char spec[SHIPPED_PATH]; /* its file */
    fpa_head *head;          /* may be changed: nobody else sees it */
} shipped_head;

typedef struct shipped_heads {
    int count;
    shipped_head item[SHIPPED_MANY];
} shipped_heads;

/* Read them, in the order of their files' names. Ends the test program with a message when a spec
 * cannot be read. */
void shipped_load(shipped_heads *all);
void shipped_free(shipped_heads *all);

#endif
