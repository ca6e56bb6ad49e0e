/* open: parsed head -> kernel. What fpa_open does with each head of a file. */
#ifndef FPAC_RUNTIME_API_OPEN_H
#define FPAC_RUNTIME_API_OPEN_H

#include "abi/source.h"
#include "head/layer.h"
#include "runtime/backend.h"
#include "fpa.h"

/* Generate, compile (or take from the cache), load, verify. Takes ownership of head, also on failure. The caller
 * closes *kernel (fpa_close). */
fpa_status open_parsed_head(fpa_head *head, const fpa_options *options, fpa_kernel **kernel,
                            fpa_error *error);

/* The same by a given mechanism of the target (gen/gen.h: source_generate_as); NULL: the fastest. */
fpa_status open_parsed_head_as(fpa_head *head, const char *mechanism, const fpa_options *options,
                               fpa_kernel **kernel, fpa_error *error);

/* Open the kernels whose forward passes are gradients of the head, and set their modules for the module of
 * gradients. forward: the head's own module, which may be one of them. The caller closes the kernels (fpa_close).
 * All NULL: there are none. */
fpa_status open_passes(const fpa_head *head, const char *target, const fpa_options *options,
                       const fpa_module *forward, fpa_kernel *kernels[PASSES],
                       const fpa_module *modules[PASSES], fpa_error *error);

/* Store a module that fpac verify has compiled and verified in the cache, as an open would do, so that the next
 * open finds it. *folder, malloc'ed: the cache's folder; NULL: there is no cache, as the log says. That an entry
 * cannot be written is no error; NO_MEMORY is, and a failure to identify compiler or device. */
fpa_status open_remember(const fpa_head *head, const fpa_options *options, const fpa_facts *facts,
                         const fpa_object *object, const char *verdict, char **folder, fpa_error *error);
/* The same for the head's gradients. */
fpa_status open_remember_backward(const fpa_head *head, const fpa_options *options, const fpa_facts *facts,
                                  const fpa_object *object, const char *verdict, char **folder,
                                  fpa_error *error);

/* Open a layer of a list, with a kernel for each of its heads; the list is not changed. */
fpa_status open_layer_of(const fpa_head_list *list, const fpa_layer_spec *layer, const fpa_options *options,
                         fpa_layer **opened, fpa_error *error);

#endif
