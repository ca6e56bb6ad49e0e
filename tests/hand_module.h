/* hand_module: a module written by hand that computes any head feature by feature, or with one fault. */
#ifndef FPAC_TESTS_HAND_MODULE_H
#define FPAC_TESTS_HAND_MODULE_H

#include "runtime/kernel.h"

/* What the module does wrong. */
typedef enum fault {
    NO_FAULT,
    FAULT_WEIGHT,         /* one feature has half its weight */
    FAULT_MASK,           /* a token does not see its own key */
    FAULT_GATE,           /* the gate reaches the token's own key */
    FAULT_GROUP,          /* query heads are dealt out instead of grouped */
    FAULT_STRIDES,        /* q is read as if it were contiguous */
    FAULT_FUTURE,         /* the next token leaks in, far below the bound */
    FAULT_UNWRITTEN,      /* the last token is forgotten */
    FAULT_NAN,            /* one result is not finite */
    FAULT_PAST_END,       /* one element behind o is written */
    FAULT_WORKSPACE,      /* one byte behind the workspace is written */
    FAULT_TOO_SMALL,      /* the module calls its own workspace too small */
    FAULT_REPEAT,         /* results depend on what ran before */
    FAULT_STATE_MISSING,  /* the last element of the state is not written */
    FAULT_STATE_OLD,      /* the state misses the last token */
    FAULT_STATE_PLACE,    /* state_out is cleared before state_in is read */
    FAULT_STATE_EMPTY,    /* a call of no tokens clears the state */
    FAULT_STATE_PAST_END, /* one element behind the state is written */
    FAULT_NOISE,          /* within the bound, but far noisier than single precision */
    FAULT_LATE,           /* wrong from the third chunk on */
    FAULT_FORM,           /* only the chunked form is wrong */
    /* Of heads with a lift (hand_lift.c) */
    FAULT_MAP,             /* keys have the map of queries */
    FAULT_AMPLITUDE,       /* keys have the amplitude of queries */
    FAULT_CONJUGATE,       /* a key's complex coordinates are conjugate */
    FAULT_CONSTANT_HEADS,  /* the first head's constants are every head's */
    FAULT_POSITION,        /* the token's number stands for its position */
    FAULT_PHASE,           /* phases are summed in float */
    FAULT_POSITION_STRIDE, /* positions are read as if their numbers were contiguous */
    FAULT_RECENT_POSITION, /* a query behind recent tokens has the first one's position */
    FAULT_FUTURE_POSITION, /* queries have the next token's position */
    FAULT_NO_KEY_MASK,     /* all keys take part */
    FAULT_MASK_BIT,        /* one bit of the mask counts alone */
    FAULT_MASKED_VALUE,    /* a masked key's coordinates are 0, and multiply its value */
    FAULT_MASKED_GATE,     /* a masked key's gate does not count */
} fault;

/* How often the module ran since it was made, and how often it was unloaded in all. */
extern int module_calls, module_unloads;

/* A test has one module at a time: the head and the fault of the module made last count. */
fpa_module hand_module(const fpa_head *head, fault kind);

/* The same on a device: it computes on addresses that only the device's memory operations give out, and
 * fails the test on any other. */
fpa_module hand_device_module(const fpa_head *head, fault kind);
enum { HAND_DEVICE = 3 }; /* its number */

/* Of the device, since its module was made. */
extern struct hand_device {
    int allocations; /* that were not released */
    int entered;     /* and not left */
    int calls;       /* that may fail */
    int failing;     /* the call that does, from 1; 0: none */
    int asked;       /* allocations, with those that failed */
    int lacking;     /* the one that there is no memory for, from 1; 0: none */
} hand_device;

fpa_facts hand_facts(const fpa_head *head);

/* verify_module of hand_module and hand_facts; the second of hand_device_module. */
fpa_status hand_verify(const fpa_head *head, fault kind, fpa_verdict *verdict, fpa_error *error);
fpa_status hand_device_verify(const fpa_head *head, fault kind, fpa_verdict *verdict, fpa_error *error);

/* One term of the TSPOW of degree 2 for each block, the later blocks with weight 2. */
fpa_head *tspow_head(int d, int dv, int block);

#endif
