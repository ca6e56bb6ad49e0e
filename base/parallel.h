/* parallel: independent jobs of one caller on the machine's cores. */
#ifndef FPAC_BASE_PARALLEL_H
#define FPAC_BASE_PARALLEL_H

/* Call job(0, user) .. job(count - 1, user), each once, in any order and several at once, on no more
 * threads than the process may use cores; returns when all are through. Threads that cannot be had only
 * cost time: the caller's own does what is left. Signals stay with the caller's threads. */
void parallel_run(int count, void (*job)(int index, void *user), void *user);

#endif
