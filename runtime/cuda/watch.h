/* watch: a callback for each kernel that the calling thread launches. `fpac bench --breakdown` records an event
 * there. */
#ifndef FPAC_RUNTIME_CUDA_WATCH_H
#define FPAC_RUNTIME_CUDA_WATCH_H

/* kernel: its name, a constant of the table. */
typedef void cuda_watcher(void *user, const char *kernel);

/* Sets the calling thread's callback; NULL: none, as at first. */
void cuda_watch(cuda_watcher *watcher, void *user);

/* Calls it. Internal to grid.c. */
void cuda_tell(const char *kernel);

#endif
