#include "heads.h"

#include <stdio.h>
#include <stdlib.h>

#include "output.h"

static fpa_status measure_all(const head_experiment *experiment, const char *spec, const fpa_head_list *list,
                              char *found, fpa_error *error)
{
    fpa_status status = FPA_OK;
    for (int i = 0; i < list->count && !status; i++) {
        void *its = found + (size_t)i * experiment->size;
        status = experiment->measure(spec, list->heads[i], its, error);
        if (!status)
            experiment->tell(its);
        fflush(stdout);
    }
    return status;
}

int measure_heads(const head_experiment *experiment, const char *spec, const char *folder)
{
    fpa_head_list list = {0};
    fpa_error error = {0};
    char *found = NULL;
    if (!output_folder(folder))
        return 1;
    fpa_status status = spec_load(spec, &list, &error);
    if (!status) {
        found = calloc((size_t)list.count, experiment->size);
        status = found ? measure_all(experiment, spec, &list, found, &error) : fail_memory(&error);
    }
    if (status)
        fprintf(stderr, "%s: %s\n", error.where, error.message);
    const bool written = !status && experiment->write(folder, found, list.count);
    free(found);
    head_list_free(&list);
    return written ? 0 : 1;
}
