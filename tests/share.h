/* share: one of N shares of what a program tries one after the other, by FPA_TEST_SHARE=I/N: what takes an hour in one process takes
 * minutes in each of several, on as many machines. Each share tells how much it has, and the sum of its numbers:
 * tools/run-tests.sh adds those of all shares up, and nothing is left out where they give what 1 + 2 + ... + all is. */
#ifndef FPAC_TESTS_SHARE_H
#define FPAC_TESTS_SHARE_H

#include <stdbool.h>

typedef struct share {
    int count;     /* of what was taken */
    long long sum; /* of its numbers, from 1 */
} share;

/* Whether `number`, from 0, belongs to this process's share, which has it then; every number does where there is no FPA_TEST_SHARE. */
bool share_take(share *taken, int number);

/* For the log, where there are shares: "share 2 of 8: 41 of 327 faults, numbers that sum up to 6683". */
void share_report(const share *taken, const char *what, int all);

/* True where FPA_TEST_SHARE is set: a process need not have something of each kind. */
bool share_is_part(void);

#endif
