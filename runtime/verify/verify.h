/* verify: makes a kernel of a module; the only place that can (docs/numerics.md).
 *
 * Given: a module, its facts, and the head as written. Gives: a kernel with a verdict, if trials agree with the reference within bounds
 * from the head's operation count; else REFUSED. */
#ifndef FPAC_RUNTIME_VERIFY_VERIFY_H
#define FPAC_RUNTIME_VERIFY_VERIFY_H

#include "runtime/backend.h"

/* The results for one form, also printed by `fpac verify`. */
typedef struct fpa_form_verdict {
    bool checked;
    double worst;     /* max over elements of |o - ref| / (tau * magnitude); above 1 is refused */
    double tau;       /* the bound's factor, derived from the head's operation count */
    double error;     /* max |o - ref| / max |ref| */
    double rms_ratio; /* RMS error over that of the plain evaluation; above 2 is refused */
} fpa_form_verdict;

typedef struct fpa_verdict {
    fpa_form_verdict form[FORMS];
    int problems;   /* shapes checked in all */
    char text[512]; /* one line */
} fpa_verdict;

/* SHA-256 of the source text on which verdicts depend: this folder, the reference, and what both use. Verdicts of another text are not
 * reused. */
extern const char verifier_digest[];

/* Checks a loaded module against the reference of the head as written, in every form of facts. Fills *verdict on success; REFUSED names
 * form, shape, element and figures. */
fpa_status verify_module(const fpa_head *head, const fpa_facts *facts, const fpa_module *module,
                         fpa_verdict *verdict, fpa_error *error);

/* The same in two steps. The first, most of the reference's part, needs no module, so that it can run while one is compiled. Head and
 * facts must outlive the problems. The caller frees these, also after an error, and before the module is unloaded; they are for one
 * module. */
typedef struct fpa_module_problems fpa_module_problems;
fpa_status module_problems_pose(const fpa_head *head, const fpa_facts *facts, fpa_module_problems **problems,
                                fpa_error *error);
fpa_status verify_module_of(fpa_module_problems *problems, const fpa_module *module, fpa_verdict *verdict,
                            fpa_error *error);
void module_problems_free(fpa_module_problems *problems);

/* Takes ownership of module and head, also after an error, and makes a kernel of them. stored: the text of a verdict for the same bytes
 * on the same device, or NULL: then the module is verified now. */
fpa_status verify_kernel(fpa_head *head, const fpa_facts *facts, fpa_module *module, const char *stored,
                         bool from_cache, fpa_kernel **kernel, fpa_error *error);

/* ---- gradients: a module of its own, which is added to a kernel after verification ---- */

enum {
    GRADIENT_TEXT = 512,
    GRADIENT_SHAPES = 12 /* number of trials: rows of runtime/verify/gradient.c */
};

/* Checks gradients; both modules are for the head as written, and `forward` computes states. text: the results, one line. REFUSED names
 * form, shape, gradient, element and figures. */
fpa_status verify_backward(const fpa_head *head, const fpa_facts *facts, const fpa_module *backward,
                           const fpa_module *forward, char text[GRADIENT_TEXT], fpa_error *error);

/* The same, for sequences of at most `longest` tokens, and only for the rows whose bits are set in shapes (runtime/verify/gradient.c); 0:
 * all. */
fpa_status verify_backward_up_to(const fpa_head *head, const fpa_facts *facts, const fpa_module *backward,
                                 const fpa_module *forward, int64_t longest, unsigned shapes,
                                 char text[GRADIENT_TEXT], fpa_error *error);

/* The same in two steps. The first, the reference's part, needs no module, so that it can run while one is compiled. longest 0: no limit.
 * Head and facts must outlive the problems. The caller frees these, also after an error, and before a module that was checked is
 * unloaded. */
typedef struct fpa_gradient_problems fpa_gradient_problems;
fpa_status gradient_problems_pose(const fpa_head *head, const fpa_facts *facts, int64_t longest,
                                  fpa_gradient_problems **problems, fpa_error *error);
fpa_status verify_gradients_of(fpa_gradient_problems *problems, const fpa_module *backward,
                               const fpa_module *forward, char text[GRADIENT_TEXT], fpa_error *error);
void gradient_problems_free(fpa_gradient_problems *problems);

/* Takes ownership of the module, also after an error, and adds it to the kernel. stored: the text of a verdict for the same bytes on the
 * same device, or NULL: then the module is verified now. */
fpa_status verify_add_backward(fpa_kernel *kernel, const fpa_facts *facts, fpa_module *module,
                               const char *stored, fpa_error *error);

#endif
