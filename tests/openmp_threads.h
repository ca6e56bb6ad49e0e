/* openmp_threads: how many threads kernels in C take, of the OpenMP that they are linked with. */
#ifndef FPA_TEST_OPENMP_THREADS_H
#define FPA_TEST_OPENMP_THREADS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

/* Of a library; NULL: of the program itself, which has one for `make tsan` (tests/threads/openmp.c). */
static inline bool openmp_set(void *library, int threads)
{
    void (*set)(int) = (void (*)(int))dlsym(library ? library : RTLD_DEFAULT, "omp_set_num_threads");
    if (set)
        set(threads);
    return set != NULL;
}

/* Kernels bring gcc's or clang's along, which dlopen keeps from the program's names: each that is loaded is told, and before
 * the first kernel gcc's. False: there is none. */
static inline bool openmp_threads(int threads)
{
    static const char *const libraries[] = {"libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so"};
    bool told = openmp_set(NULL, threads);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_NOW | RTLD_NOLOAD);
        told = (library && openmp_set(library, threads)) || told;
    }
    void *usual = told ? NULL : dlopen(libraries[0], RTLD_NOW);
    return told || (usual && openmp_set(usual, threads));
}

#endif
