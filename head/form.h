/* form: the three ways to evaluate a head, whose results agree up to rounding. */
#ifndef FPAC_HEAD_FORM_H
#define FPAC_HEAD_FORM_H

typedef enum fpa_form_index { FORM_PARALLEL, FORM_CHUNKED, FORM_RECURRENT, FORMS } fpa_form_index;

const char *form_name(fpa_form_index form); /* "parallel", "chunked", "recurrent" */

#endif
