/* trials: calls of emulated heads, and jobs that compare them with the formula, several at once; for the
 * tests that run emitted kernels on the CPU. */
#ifndef FPAC_TESTS_EMULATE_TRIALS_H
#define FPAC_TESTS_EMULATE_TRIALS_H

#include "gen/gen.h"
#include "runtime/verify/check.h"
#include "heads.h"
#include "module.h"

/* Lengths are times * chunk + more + windows * (the window). */
typedef struct emulated_call {
    int times, more;
    int batch, heads, query_heads;
    fpa_layout layout;
    int checks;
    int multiprocessors; /* 1: kernels of large calls, several items a block; many: segments */
    bool threads;        /* fetch, not the copy engine */
    int cluster; /* blocks of a sequence that take turns; 0: none do; MOST_SEGMENTS: none, and the call is by segments; SEGMENTS_AHEAD: of one pass, the first one ahead; SEGMENTS_OF_CHUNKS: of several chunks */
    int windows; /* not 0: of heads that have one */
    int clusters; /* that share sequences of one length; less than 0: so many that take whole ones in turn; 0: each has one */
} emulated_call;

/* As many as there are candidates of: long sequences have them, which an emulated call has none of. */
enum { MOST_SEGMENTS = -1, SEGMENTS_AHEAD = -2, SEGMENTS_OF_CHUNKS = -3 };

/* Numbers of calls, from which on others of their kind follow. */
enum {
    TOKEN_CALL = 1,
    HEADS_CALL = 6,   /* of several heads */
    LONG_CALL = 12,   /* by segments; the next: by one */
    STRONG_CALL = 15, /* gated heads */
    TOTALS_CALL = 16,
    AHEAD_CALL = 17,  /* likewise, the first segment ahead */
    ROUNDS_CALL = 18, /* blocks take a second walk */
    THREADS_CALL = 19,
    CLUSTER_CALL = 21,
    SHARED_CALL = 26, /* by clusters that are fewer than sequences */
    WINDOW_CALL = 27,
    SEQUENCES_CALL = 32,   /* of faults alone: test_cuda_emulated_sequences.c has the others */
    SEGMENTS_CALL = 34,    /* of faults alone, too */
    SCANNED_CALL = 35,     /* SEQUENCES_CALL by clusters, of faults alone, too */
    WHOLE_CALL = 36,       /* and by such that take whole ones in turn */
    ENTRIES_CALL = 37,     /* pieces of several batch entries, of faults alone, too */
    RINGS_CALL = 38,       /* more panels by one block than there are places for, of faults alone, too */
    CHUNKS_CALL = 39,      /* segments of several chunks behind a state, slow gates, of faults alone, too */
    HEADS_AHEAD_CALL = 40, /* AHEAD_CALL of several heads, of faults alone, too */
    RECENT_CALL = 41,      /* many recent tokens of one block, of faults alone, too */
    EMULATED_CALLS
};

typedef struct emulated_fixture {
    bool ready; /* there is what it takes */
    char folder[64];
    fpa_head_list list;                     /* emulated_heads */
    fpa_source source[EMULATED_MOST_HEADS]; /* see emulated_source */
} emulated_fixture;

/* For cmocka: *state becomes the fixture. */
int emulated_setup(void **state);
int emulated_teardown(void **state);
/* By which the head has its kernels for sm_90a: NULL, or what no plan takes unasked. */
const char *emulated_mechanism(const fpa_head *head);

/* sm_90a; of heads that are to have portable kernels sm_90. */
const char *emulated_target(const fpa_head *head);

/* Its text, generated when it is asked for first; of one thread. */
const fpa_source *emulated_source(const emulated_fixture *f, int head);
int emulated_head_named(const emulated_fixture *f, const char *name);

/* The call's device, and by which candidates the trial's forms are carried out. */
void emulated_choose(const emulated_call *c, emulated_module *emulated, fpa_trial *trial);

typedef struct emulated_job {
    const emulated_fixture *fixture;
    int head;
    const char *code; /* of the head, or a fault in it; */
    const char *base; /* then the head's */
    int first, end;   /* calls */
    int step;         /* to the next; 0 is 1 */
    int number;       /* of its own */
    /* what became of it */
    fpa_status status;
    fpa_error error;
    double seconds[2]; /* that the compiler took, and the calls; of a busy machine */
    uint64_t called;   /* bit i: call i concerned it and was made, */
    uint64_t launched;
    unsigned forms; /* kernels (bits as in cuda_kernel), forms */
} emulated_job;

void emulated_run(int count, emulated_job *jobs);
void emulated_report(const emulated_job *j, const char *what);

#endif
