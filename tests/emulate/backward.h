/* backward: emulated gradients, and jobs that compare them with the formula, several at once. */
#ifndef FPAC_TESTS_EMULATE_BACKWARD_H
#define FPAC_TESTS_EMULATE_BACKWARD_H

#include "gen/gen.h"
#include "runtime/verify/verify.h"
#include "module.h"

enum { BACKWARD_MOST_HEADS = 128 };

typedef struct backward_fixture {
    bool ready; /* there is what it takes */
    char folder[64];
    fpa_head_list list;
    fpa_source source[BACKWARD_MOST_HEADS]; /* gradients, of CUDA: backward_source */
    fpa_module states[BACKWARD_MOST_HEADS]; /* of heads that jobs have had: states.h */
} backward_fixture;

/* For cmocka: *state becomes the fixture. */
int backward_setup(void **state);
int backward_teardown(void **state);
const char *backward_target(const fpa_head *head);
int backward_head_named(const backward_fixture *f, const char *name);
/* The head's gradients as CUDA, which are written when they are first asked for. */
const fpa_source *backward_source(const backward_fixture *f, int head);

/* What is done with the module of a job's gradients once it is verified. */
typedef fpa_status backward_check(const fpa_head *head, const fpa_facts *facts, const fpa_module *module,
                                  fpa_error *error);

typedef struct backward_job {
    const backward_fixture *fixture;
    int head;
    const char *code;         /* of the head, or a fault in it; */
    const char *base;         /* then the head's */
    int number;               /* of its own */
    bool passes;              /* gradients are forward passes of other heads, where a call allows it, */
    const char *pass[PASSES]; /* text of a pass, with a fault; NULL: as it is */
    size_t pass_limit;        /* of so many bytes of workspace; 0: as many as they need */
    int late;                 /* what is late; 0: copies or products, by the number */
    int multiprocessors;      /* that the GPU has; 0: one, so that nothing is walked in segments */
    int64_t longest;          /* tokens; 0: three chunks and some, in make test two where nothing is faulty */
    int half; /* of the shapes, in make test, where nothing is faulty: 1 or 2, as long ones are of 2; 0: all */
    backward_check *check; /* NULL: nothing more */
    /* what became of it */
    fpa_status status;
    fpa_error error;
    char text[GRADIENT_TEXT];
    double seconds;
    uint64_t launched, passed; /* kernels (bits as in cuda_kernel), of gradients and of passes */
} backward_job;

void backward_run(int count, backward_job *jobs);
void backward_report(const backward_job *j, const char *what);

#endif
