/* watch: who is told of each kernel that the calling thread puts into a stream. `fpac bench --breakdown` records an event then. */
#ifndef FPAC_RUNTIME_CUDA_WATCH_H
#define FPAC_RUNTIME_CUDA_WATCH_H

/* kernel: its name in the table, which stays. */
typedef void cuda_watcher(void *user, const char *kernel);

/* NULL: nobody is told, as at first. */
void cuda_watch(cuda_watcher *watcher, void *user);

/* Tells. Internal to grid.c. */
void cuda_tell(const char *kernel);

#endif
