/* gpu_problem: the operands of one call, the same on the CPU and on a GPU, for tests. */
#ifndef FPAC_TESTS_GPU_PROBLEM_H
#define FPAC_TESTS_GPU_PROBLEM_H

#include "abi/launch.h"
#include "gen/gen.h"
#include "runtime/cuda/driver.h"
#include "runtime/api/fpa.h"

/* ---- a GPU ---- */

typedef struct test_gpu {
    const fpa_driver *driver;
    int number;        /* in the driver's count */
    CUcontext context; /* its primary one, current in the thread that opened it */
    CUstream stream;   /* one that waits for no other */
} test_gpu;

/* Stops the test when the driver refuses a call. */
#define CUDA(gpu, call) gpu_check((gpu)->driver, (gpu)->driver->call, #call)
void gpu_check(const fpa_driver *driver, CUresult result, const char *call);

/* Whether a test that needs this GPU can run. Where $FPA_REQUIRE_CUDA is 1, the lack of one ends the
 * program with a message instead. */
bool gpu_open(test_gpu *gpu, int number);
void gpu_close(test_gpu *gpu);

/* The C target that other kernels are compared with: the best one here whose products are float32 for every
 * storage type. */
const char *float_target(void);

/* ---- operands ---- */

typedef enum operand_index { IN_Q, IN_K, IN_V, IN_GATE, IN_STATE, OUT_O, OUT_STATE, OPERANDS } operand_index;

typedef struct gpu_operand {
    DLTensor tensor; /* ndim 0: not given */
    int64_t shape[4];
    fpa_dtype dtype;
    int64_t count;       /* elements */
    size_t size;         /* bytes */
    unsigned char *host; /* [size], C order */
    CUdeviceptr device;  /* its copy there; 0: there is none */
} gpu_operand;

typedef struct problem_shape {
    int64_t batch, length, query_heads, heads;
} problem_shape;

typedef struct gpu_problem {
    gpu_operand operand[OPERANDS];
    const test_gpu *gpu; /* NULL: on the CPU */
    fpa_tensors tensors;
} gpu_problem;

/* Random inputs for a kernel without run-time matrices, a state wanted; the same
 * values for the same shape and seed. gpu NULL: for a C kernel. The memory of outputs holds 0xa5. */
void problem_make(gpu_problem *problem, const fpa_description *is, const problem_shape *shape, uint64_t seed,
                  const test_gpu *gpu);
void problem_free(gpu_problem *problem);

/* Go on from the state that another problem of the same kind of kernel ended with. */
void problem_resume(gpu_problem *problem, const gpu_problem *before);

/* Forward in the GPU's stream, wait, and fetch the outputs into their host copies; stops the test
 * when anything fails. Outputs are poisoned first. */
void problem_run(gpu_problem *problem, const fpa_kernel *kernel, fpa_form form);
void problem_poison(gpu_problem *problem);
void problem_fetch(gpu_problem *problem);

/* max |x - y| / max |y|; not a number counts as infinitely wrong. */
double operand_distance(const gpu_operand *x, const gpu_operand *y);

/* Device memory that a kernel may work in; *size says how much it asks for. */
CUdeviceptr problem_workspace(const gpu_problem *problem, const fpa_kernel *kernel, fpa_form form,
                              size_t *size);

#endif
