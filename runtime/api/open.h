/* open: a head that is parsed already -> kernel. What fpa_open does with each head of a file. */
#ifndef FPAC_RUNTIME_API_OPEN_H
#define FPAC_RUNTIME_API_OPEN_H

#include "abi/source.h"
#include "head/layer.h"
#include "runtime/backend.h"
#include "fpa.h"

/* Generate, compile (or take from the cache), load, verify. Takes ownership of head, also on failure. */
fpa_status open_parsed_head(fpa_head *head, const fpa_options *options, fpa_kernel **kernel,
                            fpa_error *error);

/* The same by one mechanism of the target (gen/gen.h: source_generate_as); NULL: what is fastest. */
fpa_status open_parsed_head_as(fpa_head *head, const char *mechanism, const fpa_options *options,
                               fpa_kernel **kernel, fpa_error *error);

/* Kernels whose forward passes are gradients of the head, the caller's (fpa_close), and their modules for the module of
 * gradients; forward: the head's own, where that is one of them. All NULL: there are none. */
fpa_status open_passes(const fpa_head *head, const char *target, const fpa_options *options,
                       const fpa_module *forward, fpa_kernel *kernels[PASSES],
                       const fpa_module *modules[PASSES], fpa_error *error);

/* Keep a module that was compiled and verified outside (fpac verify) as an open would have, so that the next one takes it
 * from the cache. *folder, malloc'ed: where it is; NULL: there is no cache, which the log says. An entry that cannot
 * be written is no error either; NO_MEMORY, and what identifies compiler or device, is. */
fpa_status open_remember(const fpa_head *head, const fpa_options *options, const fpa_facts *facts,
                         const fpa_object *object, const char *verdict, char **folder, fpa_error *error);
/* The same of the head's gradients. */
fpa_status open_remember_backward(const fpa_head *head, const fpa_options *options, const fpa_facts *facts,
                                  const fpa_object *object, const char *verdict, char **folder,
                                  fpa_error *error);

/* A layer of a list, with a kernel for each of its heads; the list stays as it is. */
fpa_status open_layer_of(const fpa_head_list *list, const fpa_layer_spec *layer, const fpa_options *options,
                         fpa_layer **opened, fpa_error *error);

#endif
