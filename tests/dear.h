/* dear: which part of the tests runs. `make test` runs a fixed part that has each mechanism, form, target and
 * class of fault at least once; `make test-all` runs everything. Programs that leave something out choose it
 * by a table, say so, and have a test that walks what there is and fails where the fixed part lacks it. */
#ifndef FPAC_TESTS_DEAR_H
#define FPAC_TESTS_DEAR_H

#include <stdbool.h>
#include <stddef.h>

/* Whether what is dear is to run too: FPA_TEST_ALL is set, and neither empty nor 0. */
bool dear_tests(void);

/* Whether `name` is one of a table's. */
bool is_one_of(const char *const *names, size_t count, const char *name);

/* For the log: how much of it runs. */
void dear_report(const char *what, int running, int all);

/* Functions that emitted texts define, by name without the head's; for the question whether a part of the
 * heads has all that is emitted for any. Zeros are an empty set. */
typedef struct function_set {
    char **names;
    size_t count;
} function_set;

void function_set_add(function_set *set, const char *code, const char *head);
/* The same without digits: in C kernels' names they are widths. */
void function_set_add_plain(function_set *set, const char *code, const char *head);
void function_set_free(function_set *set);

/* The first name of `all` that `some` lacks; NULL: none. */
const char *function_set_lacks(const function_set *some, const function_set *all);

#endif
