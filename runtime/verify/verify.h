/* verify: module -> kernel. The only place that can make an fpa_kernel (docs/numerics.md).
 *
 * Given: a module, its facts, and the head as written. Gives: a kernel, when trials of it agree with the
 * reference within bounds from the head's own operation count, with a verdict in words; else REFUSED. */
#ifndef FPAC_RUNTIME_VERIFY_VERIFY_H
#define FPAC_RUNTIME_VERIFY_VERIFY_H

#include "runtime/backend.h"

/* What was measured; also printed by `fpac verify`. Errors are relative to the bound: above
 * 1 is refused. */
typedef struct fpa_form_verdict {
    bool checked;
    double worst;     /* max over elements of |o - ref| / (tau * magnitude) */
    double tau;       /* the bound's factor, derived from the head's operation count */
    double error;     /* max |o - ref| / max |ref| */
    double rms_ratio; /* RMS error over that of the plain evaluation; above 2 is refused */
} fpa_form_verdict;

typedef struct fpa_verdict {
    fpa_form_verdict form[FORMS];
    int problems;   /* shapes checked in all */
    char text[512]; /* one line */
} fpa_verdict;

/* SHA-256 of the text of what decides a verdict: this folder, the reference and what both are built on. A verdict
 * that another text gave is asked for again. */
extern const char verifier_digest[];

/* Check a loaded module against the reference of head (as written) in every form that facts
 * name. On success *verdict says what was found; REFUSED names form, shape, element and figures. */
fpa_status verify_module(const fpa_head *head, const fpa_facts *facts, const fpa_module *module,
                         fpa_verdict *verdict, fpa_error *error);

/* The same in two steps, of which the first, most of the formula's part, needs no module: it can be done while one is compiled. Head and facts must
 * stay. The problems are the caller's, also on failure: they are put to one module, and freed before it is unloaded. */
typedef struct fpa_module_problems fpa_module_problems;
fpa_status module_problems_pose(const fpa_head *head, const fpa_facts *facts, fpa_module_problems **problems,
                                fpa_error *error);
fpa_status verify_module_of(fpa_module_problems *problems, const fpa_module *module, fpa_verdict *verdict,
                            fpa_error *error);
void module_problems_free(fpa_module_problems *problems);

/* Take ownership of module and head (also on failure) and make a kernel of them. stored is the
 * text of a verdict that holds for these very bytes on this very device, or NULL: then the
 * module is verified now. */
fpa_status verify_kernel(fpa_head *head, const fpa_facts *facts, fpa_module *module, const char *stored,
                         bool from_cache, fpa_kernel **kernel, fpa_error *error);

/* ---- gradients: a module of its own, which belongs to a kernel only after it agreed with the formula ---- */

enum {
    GRADIENT_TEXT = 512,
    GRADIENT_SHAPES = 12 /* calls that they are tried in: rows of runtime/verify/gradient.c */
};

/* Both are of the head as written; forward makes states. text: what was found, one line. REFUSED names form, shape,
 * gradient, element and figures. */
fpa_status verify_backward(const fpa_head *head, const fpa_facts *facts, const fpa_module *backward,
                           const fpa_module *forward, char text[GRADIENT_TEXT], fpa_error *error);

/* The same, of sequences of at most so many tokens, in those of the shapes whose bits are set (runtime/verify/gradient.c); 0: in all. */
fpa_status verify_backward_up_to(const fpa_head *head, const fpa_facts *facts, const fpa_module *backward,
                                 const fpa_module *forward, int64_t longest, unsigned shapes,
                                 char text[GRADIENT_TEXT], fpa_error *error);

/* The same in two steps, of which the first, the formula's part, needs no module: it can be done while one is compiled. Head and facts must
 * stay; longest: 0: as long as they are. The problems are the caller's, also on failure: once they have been put to a module they are freed before it
 * is unloaded. */
typedef struct fpa_gradient_problems fpa_gradient_problems;
fpa_status gradient_problems_pose(const fpa_head *head, const fpa_facts *facts, int64_t longest,
                                  fpa_gradient_problems **problems, fpa_error *error);
fpa_status verify_gradients_of(fpa_gradient_problems *problems, const fpa_module *backward,
                               const fpa_module *forward, char text[GRADIENT_TEXT], fpa_error *error);
void gradient_problems_free(fpa_gradient_problems *problems);

/* Take ownership of the module (also on failure) and make it the kernel's. stored: the text of a verdict that holds for
 * these very bytes on this very device, or NULL: then it is verified now. */
fpa_status verify_add_backward(fpa_kernel *kernel, const fpa_facts *facts, fpa_module *module,
                               const char *stored, fpa_error *error);

#endif
