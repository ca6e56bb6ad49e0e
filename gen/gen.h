/* gen: all functions of the generator that the runtime may call.
 *
 * spec -> head -> simplify -> plan -> emit. Given: a spec's text, or a head and a target's name. Gives: heads, or
 * the source text with the facts that describe it. It uses no GPU and loads no code; the same input gives the same
 * bytes. */
#ifndef FPAC_GEN_GEN_H
#define FPAC_GEN_GEN_H

#include "abi/source.h"
#include "machine/target.h"
#include "gen/spec/spec.h"

/* Emitted code for the forward pass of a head. target is a name that target_find knows. The caller frees *source
 * (source_free). UNSUPPORTED: the target cannot serve the head, with the reason. */
fpa_status source_generate(const fpa_head *head, const char *target, fpa_source *source, fpa_error *error);
/* The same by a given mechanism of the target (docs/glossary.md); NULL: the fastest one. UNSUPPORTED, with the
 * reason, if it cannot serve the head; INVALID, with all names, if the target has no mechanism of that name. */
fpa_status source_generate_as(const fpa_head *head, const char *target, const char *mechanism,
                              fpa_source *source, fpa_error *error);
/* The same for a head of source_passes, whose forward passes are gradients of another head: without the recurrent
 * form, and only by the mechanism that stores what those gradients need (such as dots of outputs and states). */
fpa_status source_generate_pass(const fpa_head *head, const char *target, fpa_pass pass, fpa_source *source,
                                fpa_error *error);
/* source_check_backward: FPA_OK if gradients of the head are implemented for the target; UNSUPPORTED, with what is
 * missing. source_generate_backward: their text, a module of its own. */
fpa_status source_check_backward(const fpa_head *head, const char *target, fpa_error *error);
fpa_status source_generate_backward(const fpa_head *head, const char *target, fpa_source *source,
                                    fpa_error *error);
/* The heads whose forward passes are gradients of this head on the target (plan/passes.h); none if gradients are
 * not computed that way. If there is a pass of values only, its NAME_chunk_contraction computes the gradients of q
 * and k from its states. The caller frees the heads. */
fpa_status source_passes(const fpa_head *head, const char *target, fpa_passes *passes, fpa_error *error);
void source_free(fpa_source *source);

/* SHA-256 of the generator's own files, templates included. The head as written, the target and this digest
 * determine the emitted text. */
extern const char generator_digest[];

#endif
