#include "verify_backward.h"

#include <stdlib.h>

#include "gen/gen.h"
#include "runtime/api/open.h"
#include "runtime/builder.h"

fpa_status verify_gradients(const fpa_head *head, const char *target, const fpa_options *options,
                            const fpa_module *forward, char text[GRADIENT_TEXT], fpa_error *error)
{
    fpa_object object = {0};
    fpa_module module = {0};
    fpa_kernel *passes[PASSES] = {NULL};
    fpa_source source;
    char *folder = NULL;
    fpa_status status = source_generate_backward(head, target, &source, error);
    if (status)
        return status;
    status = builder_of(target_find(target))->compile(options, &source, &object, error);
    if (!status)
        status = forward->backend->load(options, &object, source.facts.name, &module, error);
    if (!status)
        status = open_passes(head, target, options, forward, passes, module.passes, error);
    if (!status)
        status = verify_backward(head, &source.facts, &module, forward, text, error);
    if (!status)
        status = open_remember_backward(head, options, &source.facts, &object, text, &folder, error);
    if (module.backend)
        module.backend->unload(&module);
    for (int i = 0; i < PASSES; i++)
        fpa_close(passes[i]);
    free(folder);
    free(object.bytes);
    source_free(&source);
    return status;
}
