/* view: one DLTensor, checked by itself: axes, type, device, strides, sizes, address. */
#ifndef FPAC_RUNTIME_API_VIEW_H
#define FPAC_RUNTIME_API_VIEW_H

#include "base/error.h"
#include "head/head.h"
#include "fpa.h"

enum { VIEW_MAX_AXES = 4 };

typedef struct fpa_view {
    const char *name; /* of the tensor, for messages */
    const DLTensor *tensor;
    DLDevice device;               /* wanted */
    fpa_dtype dtype;               /* wanted, */
    bool is_mask;                  /* unless it is a mask: bool or uint8, a byte an element; */
    bool is_index, may_be_wide;    /* or int32, and int64 as well */
    int axes;                      /* wanted */
    bool with_data;                /* the address matters too */
    char *data;                    /* first element; NULL without data */
    int64_t shape[VIEW_MAX_AXES];  /* elements */
    int64_t stride[VIEW_MAX_AXES]; /* elements; 0 on axes of length 0 or 1 */
    int64_t low, high;             /* bytes from data: first, and one past the last; equal when empty */
} fpa_view;

/* The checks of one call: the first failure is kept, and later checks do nothing. */
typedef struct fpa_checks {
    fpa_error *error;
    fpa_status status;
} fpa_checks;

void checks_fail(fpa_checks *c, fpa_status code, const char *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* name, tensor, device, dtype or is_mask or is_index, axes and with_data are given, the rest is filled. */
void view_check(fpa_checks *c, fpa_view *view);

/* Bytes of an element. */
size_t view_item(const fpa_view *view);

/* Where it begins; a tensor without memory (empty, or only its shape counts) still has to look given. NULL: it is not given. */
void *view_address(const fpa_view *view);

/* Length of an axis; of names the measure ("heads", "tokens"), why what asks for it ("k has"). */
void view_axis(fpa_checks *c, const fpa_view *view, int axis, int64_t wanted, const char *of,
               const char *why);

/* The axes from `first` on are in C order without gaps. */
void view_contiguous(fpa_checks *c, const fpa_view *view, int first);

/* An output: no two of its elements may share memory. */
void view_distinct(fpa_checks *c, const fpa_view *view);

/* An output and another tensor: one behind the other, or side by side in rows of one larger array. */
void view_apart(fpa_checks *c, const fpa_view *output, const fpa_view *other);

/* A workspace: it has so many bytes, and is aligned as memory of the device is, or to a line of the cache. query: the function that tells how
 * many, for the message. Gives it as an output. */
fpa_view view_workspace(fpa_checks *c, void *workspace, size_t size, size_t needed, bool on_device,
                        const char *query);

#endif
