/* kernels: an emitted text of CUDA with some of its kernels alone, so that compilers spend no time on the others. */
#ifndef FPAC_TESTS_KERNELS_H
#define FPAC_TESTS_KERNELS_H

#include "dear.h"

/* All return a copy of `code` (malloc'ed), in which a kernel that is left out is a template of which nothing is made.
 * NULL: kernels cannot be told apart, or memory has ended. */

/* With the kernels that reach anything in which the text differs from `base`. What is wrongly left out would run as in
 * `base`: a fault that is not found. */
char *kernels_changed(const char *base, const char *code);

/* With the kernels that reach any function which is not in the set, to which they are added; with the longest where none does. */
char *kernels_new(const char *code, const char *head, function_set *set);

/* With the head's kernel of that name alone, or with the longest one where the name is empty; what it reaches is added to the set. NULL also where there is
 * none. */
char *kernels_one(const char *code, const char *head, const char *which, function_set *set);

/* Without the head's kernels whose names begin so, which whoever has the text launches never. */
char *kernels_without(const char *code, const char *head, const char *beginning);

/* The set's share of that: all functions that kernels of a text reach, left out ones not counted. */
bool kernels_reach(const char *code, const char *head, function_set *set);

#endif
