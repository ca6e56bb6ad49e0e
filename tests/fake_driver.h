/* fake_driver: a libcuda.so.1 that records what it is asked, for programs that load it in children of their
 * own. */
#ifndef FPAC_TESTS_FAKE_DRIVER_H
#define FPAC_TESTS_FAKE_DRIVER_H

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/backend.h"
#include "driver/fake_libcuda.h"

/* A process finds its driver once. So each claim is a function that a child runs, with FPA_LIBCUDA as the
 * claim wants it; it ends with 0, or at the line that does not hold. */
#define HOLDS(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

extern char fake_folder[64], fake_path[128]; /* where the library lies, and itself */

/* Group fixtures: the library is compiled and removed. */
int compile_fake(void **state);
int remove_fake(void **state);

/* Fails the test when the claim does not hold. */
void in_child(const char *library, int (*claim)(void));

/* What the library in this process records; with_geometry: and a module's sizes that it gives. */
struct fake_state *fake(void);
struct fake_state *fake_with_geometry(void);
bool nothing_is_held(const struct fake_state *f);

/* The least that looks like a cubin. */
typedef struct image {
    Elf64_Ehdr header;
    Elf64_Shdr sections[2];
    char text[16];
} image;

image make_image(void);

/* Module "toy" of one such image. */
fpa_status load(int device, fpa_module *module, fpa_error *error);

#endif
