/* patience: how long a process may take, whatever else the machine does. What it uses of the cores counts, not a clock: on a
 * busy machine it gets less of them. */
#ifndef FPAC_TESTS_TORTURE_PATIENCE_H
#define FPAC_TESTS_TORTURE_PATIENCE_H

#include <stdbool.h>

/* Seconds by the clock but for used and began, which are of the cores: of the caller's children and theirs. */
struct patience {
    double seconds, start, moved, looked; /* moved: when somebody had used something; looked: the last time */
    double began, used;
};

/* A child that is waited for uses the cores for at most so many seconds, and while it waits others of the case use them. */
struct patience patience_for(double seconds);

/* Whether they are over: used up, or nothing was used for as long, or twenty times as long has passed. */
bool patience_is_over(struct patience *patience);

#endif
