/* parallel: independent jobs of one caller on the machine's cores. */
#ifndef FPAC_BASE_PARALLEL_H
#define FPAC_BASE_PARALLEL_H

/* Call job(0, user) .. job(count - 1, user), each once, in any order and several at once, on at most as many
 * threads as this process may use cores. Returns when all calls have returned. If threads cannot be created, the
 * calling thread does the remaining jobs. New threads block all signals. */
void parallel_run(int count, void (*job)(int index, void *user), void *user);

#endif
