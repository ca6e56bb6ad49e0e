/* view: one DLTensor, checked by itself: axes, type, device, strides, sizes, address. */
#ifndef FPAC_RUNTIME_API_VIEW_H
#define FPAC_RUNTIME_API_VIEW_H

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

/* name, tensor, device, dtype or is_mask or is_index, axes and with_data are given, the rest is filled. */
fpa_status view_check(fpa_view *view, fpa_error *error);

/* Bytes of an element. */
size_t view_item(const fpa_view *view);

/* Length of an axis; of names the measure ("heads", "tokens"), why what asks for it ("k has"). */
fpa_status view_axis(const fpa_view *view, int axis, int64_t wanted, const char *of, const char *why,
                     fpa_error *error);

/* The axes from `first` on are in C order without gaps. */
fpa_status view_contiguous(const fpa_view *view, int first, fpa_error *error);

/* An output: no two of its elements may share memory. */
fpa_status view_distinct(const fpa_view *view, fpa_error *error);

/* The byte ranges of an output and another tensor. */
fpa_status view_apart(const fpa_view *output, const fpa_view *other, fpa_error *error);

#endif
