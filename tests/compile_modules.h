/* compile_modules: heads and targets that CUDA tests compile, in groups, each of which one test judges. Needs
 * no GPU.
 *
 * make test compiles the modules of the table `module_fixed`, which have every target, kind of head and type,
 * every function that is emitted for any module, and in each group at least one; make test-all compiles all. */
#ifndef FPAC_TESTS_COMPILE_MODULES_H
#define FPAC_TESTS_COMPILE_MODULES_H

#include "compile_job.h"
#include "shipped_heads.h"

enum { MOST_MODULES = 1024, MODULE_KINDS = 10, MODULE_FIXED = 33 };

extern const char *const module_kinds[MODULE_KINDS];

typedef struct module_name {
    const char *head, *dtype, *target;
} module_name;

extern const module_name module_fixed[MODULE_FIXED];

/* Tests that compile; modules that take long come first. */
typedef enum module_group {
    STATES,
    LIFTS,
    NARROW,
    WARPGROUPS,
    TARGETS,
    SHIPPED,
    WIDTHS,
    MODULE_GROUPS
} module_group;

typedef struct compile_fixture {
    bool ready; /* there is an NVRTC */
    shipped_heads heads;
    shipped_heads narrow[2];         /* the same as bf16 and f16 */
    fpa_head_list widths, states;    /* of this file */
    fpa_head_list lifts[FPA_DTYPES]; /* so are these, in each type */
    int count, running;
    compile_job jobs[MOST_MODULES]; /* of all groups, those that run first */
} compile_fixture;

/* For cmocka: *state becomes the fixture; nothing is compiled yet. */
int modules_setup(void **state);
int modules_teardown(void **state);

/* The test is skipped where there is no NVRTC. */
void modules_need_nvrtc(const compile_fixture *f);

/* In make test, of the modules of the table those kernels alone that reach functions which none before them in it
 * reaches; of some modules one kernel, optimised. For targets with
 * kernels of warpgroups or for the others. */
void modules_choose_kernels(compile_fixture *f, bool warpgroups);

/* Compile those that are to run, for targets with kernels of warpgroups or for the others; all at once. */
void modules_compile(compile_fixture *f, bool warpgroups);

/* The test fails when a module of the group went wrong, each of which is named, or none was compiled. */
void modules_expect(const compile_fixture *f, module_group group);

const fpa_head *module_head(const shipped_heads *heads, const char *name);
bool is_module(const compile_job *job, const module_name *name);
bool is_fixed_module(const compile_job *job);

#endif
