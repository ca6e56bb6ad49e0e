/* cuda_kernels: the kernels of an emitted CUDA file, in the order of fpa_cuda_geometry.kernel. Kernel NAME_x
 * of a head NAME has its name x here; cuda_call.h says what each one does. */
#ifndef FPAC_ABI_CUDA_KERNELS_H
#define FPAC_ABI_CUDA_KERNELS_H

#include "cuda_call.h"

typedef enum cuda_kernel {
    CUDA_GATE_SCAN,
    CUDA_LIFT_ROWS,
    CUDA_PAD_ROWS,
    CUDA_PACK_ROWS,
    CUDA_CHUNK_STATE,
    CUDA_CHUNK_STATE_SMALL,
    CUDA_SEGMENT_SCAN,
    CUDA_CHUNK_OUTPUT,
    CUDA_FUSED_CHUNK,
    CUDA_CLUSTER_SCAN,
    CUDA_SEQUENCE_SCAN,
    CUDA_DECODE,
    CUDA_DECODE_RESIDENT,
    CUDA_DECODE_RECENT,
    CUDA_DECODE_DRAFT,
    CUDA_DECODE_WINDOW,
    CUDA_SPLIT_REDUCTION,
    CUDA_STATE_PRODUCT,
    CUDA_CHUNK_CONTRACTION,
    CUDA_BACKWARD_OUTPUTS,
    CUDA_BACKWARD_PADS,
    CUDA_BACKWARD_STATE,
    CUDA_BACKWARD_SEGMENTS,
    CUDA_BACKWARD_QUERIES,
    CUDA_BACKWARD_KEYS,
    CUDA_BACKWARD_GATES,
    CUDA_BACKWARD_PARTS,
    CUDA_BACKWARD_WEIGHTS,
    CUDA_BACKWARD_SPLIT,
    CUDA_BACKWARD_PROJECT,
    CUDA_BACKWARD_UNPROJECT,
    CUDA_BACKWARD_PRODUCTS,
    CUDA_BACKWARD_GATHER,
    CUDA_BACKWARD_SCATTER,
    CUDA_BACKWARD_PASS_GATES,
    CUDA_KERNEL_COUNT
} cuda_kernel;

static const char *const cuda_kernel_names[FPA_CUDA_KERNELS] = {
    [CUDA_GATE_SCAN] = "gate_scan",
    [CUDA_LIFT_ROWS] = "lift_rows",
    [CUDA_PAD_ROWS] = "pad_rows",
    [CUDA_PACK_ROWS] = "pack_rows",
    [CUDA_CHUNK_STATE] = "chunk_state",
    [CUDA_CHUNK_STATE_SMALL] = "chunk_state_small",
    [CUDA_SEGMENT_SCAN] = "segment_scan",
    [CUDA_CHUNK_OUTPUT] = "chunk_output",
    [CUDA_FUSED_CHUNK] = "fused_chunk",
    [CUDA_CLUSTER_SCAN] = "cluster_scan",
    [CUDA_SEQUENCE_SCAN] = "sequence_scan",
    [CUDA_DECODE] = "decode",
    [CUDA_DECODE_RESIDENT] = "decode_resident",
    [CUDA_DECODE_RECENT] = "decode_recent",
    [CUDA_DECODE_DRAFT] = "decode_draft",
    [CUDA_DECODE_WINDOW] = "decode_window",
    [CUDA_SPLIT_REDUCTION] = "split_reduction",
    [CUDA_STATE_PRODUCT] = "state_product",
    [CUDA_CHUNK_CONTRACTION] = "chunk_contraction",
    [CUDA_BACKWARD_OUTPUTS] = "backward_outputs",
    [CUDA_BACKWARD_PADS] = "backward_pads",
    [CUDA_BACKWARD_STATE] = "backward_state",
    [CUDA_BACKWARD_SEGMENTS] = "backward_segments",
    [CUDA_BACKWARD_QUERIES] = "backward_queries",
    [CUDA_BACKWARD_KEYS] = "backward_keys",
    [CUDA_BACKWARD_GATES] = "backward_gates",
    [CUDA_BACKWARD_PARTS] = "backward_parts",
    [CUDA_BACKWARD_WEIGHTS] = "backward_weights",
    [CUDA_BACKWARD_SPLIT] = "backward_split",
    [CUDA_BACKWARD_PROJECT] = "backward_project",
    [CUDA_BACKWARD_UNPROJECT] = "backward_unproject",
    [CUDA_BACKWARD_PRODUCTS] = "backward_products",
    [CUDA_BACKWARD_GATHER] = "backward_gather",
    [CUDA_BACKWARD_SCATTER] = "backward_scatter",
    [CUDA_BACKWARD_PASS_GATES] = "backward_pass_gates",
};

_Static_assert((int)CUDA_KERNEL_COUNT == FPA_CUDA_KERNELS, "cuda_call.h counts them");

#endif
