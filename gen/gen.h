/* gen: everything that the runtime may know of the generator.
 *
 * spec -> head -> simplify -> plan -> emit. Given: a spec's text, or a head and a target's name. Gives:
 * heads, or the source text with the facts that describe it. It touches no GPU and loads no code; the same
 * input gives the same bytes. */
#ifndef FPAC_GEN_GEN_H
#define FPAC_GEN_GEN_H

#include "abi/source.h"
#include "machine/target.h"
#include "gen/spec/spec.h"

/* head -> simplify -> plan -> emit. target is a name that target_find knows. */
fpa_status source_generate(const fpa_head *head, const char *target, fpa_source *source, fpa_error *error);
/* The same by one mechanism of the target (docs/glossary.md), NULL: what is fastest. UNSUPPORTED with the
 * reason when it does not suit the head, INVALID with all names when there is none of that name. */
fpa_status source_generate_as(const fpa_head *head, const char *target, const char *mechanism,
                              fpa_source *source, fpa_error *error);
/* For a head whose forward passes are gradients of another one (source_passes): without the recurrent form, and
 * only by the mechanism that stores what those gradients need. */
fpa_status source_generate_pass(const fpa_head *head, const char *target, fpa_pass pass, fpa_source *source,
                                fpa_error *error);
/* Whether there are gradients of the head for a target: UNSUPPORTED, with what is missing. And their text, a module of its
 * own. */
fpa_status source_check_backward(const fpa_head *head, const char *target, fpa_error *error);
fpa_status source_generate_backward(const fpa_head *head, const char *target, fpa_source *source,
                                    fpa_error *error);
/* Heads whose forward passes are gradients of the head for a target (plan/passes.h). One of values alone: its kernels
 * contract its states (NAME_chunk_contraction). */
fpa_status source_passes(const fpa_head *head, const char *target, fpa_passes *passes, fpa_error *error);
void source_free(fpa_source *source);

/* SHA-256 of the generator's own files, templates included. A head as written, a target and this decide
 * the emitted text, as nothing else goes into it. */
extern const char generator_digest[];

#endif
