#include "launch_backward_rows.h"

int64_t row_group_of(const struct fpa_launch *f)
{
    return f->heads ? f->query_heads / f->heads : 1;
}

int64_t row_tokens_of(const struct fpa_launch *f)
{
    return f->cu_seqlens ? f->total : f->length;
}

void *rows_before(void *rows, int64_t first, int64_t bytes)
{
    return (void *)((uintptr_t)rows - (uintptr_t)(first * bytes));
}

void set_row_strides(long long *stride, const struct fpa_launch *f, int64_t heads, int64_t width)
{
    stride[0] = f->cu_seqlens ? width : heads * row_tokens_of(f) * width;
    stride[1] = width;
    stride[2] = row_tokens_of(f) * width;
}
