#include "form.h"

const char *form_name(fpa_form_index form)
{
    static const char *const names[FORMS] = {"parallel", "chunked", "recurrent"};
    return names[form];
}
