/* parts: which heads of emulate/heads.h run in which program, and what each part must have done. */
#ifndef FPAC_TESTS_EMULATE_PARTS_H
#define FPAC_TESTS_EMULATE_PARTS_H

#include "trials.h"

/* Programs that share the heads, so that they can run beside each other. */
typedef enum emulated_part {
    PART_FUSED,  /* heads with fused_chunk, and without a cluster that takes turns */
    PART_LIFT,   /* heads whose coordinates are made */
    PART_WINDOW, /* heads with a window */
    PART_OTHERS,
    EMULATED_PARTS
} emulated_part;

/* Whether make test runs it. */
bool emulated_is_fixed(const fpa_head *head);

/* Kernels (bits as in cuda_kernel) that the part must launch, and calls (bits) that it must make. */
uint64_t emulated_part_kernels(emulated_part part);
uint64_t emulated_part_calls(emulated_part part);

/* Run the part's heads in every call that concerns them; the test fails where one disagrees with the formula,
 * or a kernel, call or form was left out. */
void emulated_expect_formula(const emulated_fixture *f, emulated_part part);

#endif
