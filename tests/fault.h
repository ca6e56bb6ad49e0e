/* fault: one mistake in emitted code, made at a point of a template, and how it has to be refused. */
#ifndef FPAC_TESTS_FAULT_H
#define FPAC_TESTS_FAULT_H

#include "gen/fault.h"

struct fault {
    const char *what;
    const char *says;  /* parts of the message that it is refused with, between them " ... " */
    const char *point; /* name of template lines (gen/fault.h) */
    const char *wrong; /* template lines in their place; NULL: none */
};

/* What most are refused with: a wrong number, found by the bound of its element. */
#define SAYS_WRONG "but the formula gives"

/* The head's code with the fault; stops the test where it cannot be made. */
char *fault_make(const struct fault *fault, const fpa_head *head, const char *target);
/* The same; right: its text without the fault. */
char *fault_make_in(const struct fault *fault, const fpa_head *head, const char *target, const char *right);
/* The same of a pass of values, and of rows. */
char *fault_make_values(const struct fault *fault, const fpa_head *head, const char *target);
char *fault_make_rows(const struct fault *fault, const fpa_head *head, const char *target);
/* The same of the head's gradients. */
char *fault_make_backward(const struct fault *fault, const fpa_head *head, const char *target);
/* Whether a list's fault belongs to the part that make test refuses: the first with its words. That the
 * others can be made is asked by tests/test_fault_points.c. */
bool fault_is_fixed(const struct fault *list, size_t number);
/* Whether a refusal is the one that is wanted; prints it. */
bool fault_refused(const struct fault *fault, const char *head, fpa_status status, const char *message);

#endif
