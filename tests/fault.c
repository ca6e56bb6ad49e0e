#include "fault.h"

#include "claims.h"
#include "dear.h"

#include <stdlib.h>
#include <string.h>

static char *make(const struct fault *fault, const fpa_head *head, const char *target, fpa_fault how)
{
    const fpa_fault made = {fault->point, fault->wrong, how.backward, how.values, how.rows, how.right};
    fpa_source source;
    fpa_error error;
    if (source_generate_faulty(head, target, &made, &source, &error))
        fail_msg("%s: %s: %s", fault->what, error.where, error.message);
    free(source.header);
    return source.code;
}

char *fault_make(const struct fault *fault, const fpa_head *head, const char *target)
{
    return make(fault, head, target, (fpa_fault){0});
}

char *fault_make_in(const struct fault *fault, const fpa_head *head, const char *target, const char *right)
{
    return make(fault, head, target, (fpa_fault){.right = right});
}

char *fault_make_values(const struct fault *fault, const fpa_head *head, const char *target)
{
    return make(fault, head, target, (fpa_fault){.values = true});
}

char *fault_make_rows(const struct fault *fault, const fpa_head *head, const char *target)
{
    return make(fault, head, target, (fpa_fault){.rows = true});
}

char *fault_make_backward(const struct fault *fault, const fpa_head *head, const char *target)
{
    return make(fault, head, target, (fpa_fault){.backward = true});
}

/* Whether the parts of `words`, between which stands " ... ", come in a message one after the other. */
static bool says(const char *message, const char *words)
{
    while (*words) {
        const char *end = strstr(words, " ... "), *behind = end ? end + 5 : words + strlen(words);
        const size_t size = (size_t)((end ? end : behind) - words);
        message = memmem(message, strlen(message), words, size);
        if (!message)
            return false;
        message += size;
        words = behind;
    }
    return true;
}

bool fault_refused(const struct fault *fault, const char *head, fpa_status status, const char *message)
{
    const bool refused = status == FPA_REFUSED || status == FPA_DEVICE;
    const bool said = refused && says(message, fault->says);
    print_message("%-10s %-48s %s\n", head, fault->what, status ? message : "ACCEPTED");
    if (refused && !said)
        print_message("%-10s %-48s NOT SAID: %s\n", head, fault->what, fault->says);
    return said;
}

bool fault_is_fixed(const struct fault *list, size_t number)
{
    bool said = false;
    for (size_t i = 0; i < number; i++)
        said = said || strcmp(list[i].says, list[number].says) == 0;
    return dear_tests() || !said;
}
