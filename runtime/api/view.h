/* view: one DLTensor, checked by itself: axes, type, device, strides, sizes, address. */
#ifndef FPAC_RUNTIME_API_VIEW_H
#define FPAC_RUNTIME_API_VIEW_H

#include "base/error.h"
#include "head/head.h"
#include "fpa.h"

enum { VIEW_MAX_AXES = 4 };

typedef struct fpa_view {
    const char *name; /* name of the tensor, for messages */
    const DLTensor *tensor;
    DLDevice device;               /* the device that is wanted */
    fpa_dtype dtype;               /* the dtype that is wanted */
    bool is_mask;                  /* instead of dtype: a mask, bool or uint8 */
    bool is_index, may_be_wide;    /* instead of dtype: an index, int32; may_be_wide: or int64 */
    int axes;                      /* the number of axes that is wanted */
    bool with_data;                /* the address is checked, too */
    char *data;                    /* first element; NULL without data */
    int64_t shape[VIEW_MAX_AXES];  /* elements */
    int64_t stride[VIEW_MAX_AXES]; /* elements; 0 for axes of length 0 or 1 */
    int64_t low, high; /* range in bytes, relative to data: first, and one past the last; equal if empty */
} fpa_view;

/* The checks of one call: the first error is kept, and later checks do nothing. */
typedef struct fpa_checks {
    fpa_error *error;
    fpa_status status;
} fpa_checks;

void checks_fail(fpa_checks *c, fpa_status code, const char *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Check a tensor and fill its view. The caller sets name, tensor, device, dtype or is_mask or is_index, axes and
 * with_data. */
void view_check(fpa_checks *c, fpa_view *view);

/* Bytes of an element. */
size_t view_item(const fpa_view *view);

/* The address of the first element. For a tensor without memory (empty, or only its shape is checked) an address
 * that is not NULL; NULL: the tensor is not given. */
void *view_address(const fpa_view *view);

/* Check the length of an axis. of: what the length is ("heads", "tokens"), why: what requires it ("k has"), for
 * the message. */
void view_axis(fpa_checks *c, const fpa_view *view, int axis, int64_t wanted, const char *of,
               const char *why);

/* Check that the axes from `first` on are in C order without gaps. */
void view_contiguous(fpa_checks *c, const fpa_view *view, int first);

/* Check that no two elements of an output share memory. */
void view_distinct(fpa_checks *c, const fpa_view *view);

/* Check that an output and another tensor share no memory: one follows the other, or both are interleaved in a
 * larger array. */
void view_apart(fpa_checks *c, const fpa_view *output, const fpa_view *other);

/* Check that a workspace has `needed` bytes and is aligned as device memory is, or on the CPU to a cache line.
 * query: the function that returns the size, for the message. Returns the workspace as a view of an output. */
fpa_view view_workspace(fpa_checks *c, void *workspace, size_t size, size_t needed, bool on_device,
                        const char *query);

#endif
