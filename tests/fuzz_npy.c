/* Mutated arrays against the reader of NumPy's format. */
#include "fuzz.h"

#include "base/npy.h"

static void read_array(const char *path, const unsigned char *bytes, size_t size)
{
    fpa_array array = {0};
    fpa_error error;
    npy_matrices matrices;
    const npy_limit limit = {1 << 10, 1 << 10, 1 << 16};
    (void)bytes, (void)size;
    if (npy_read(path, &array, &error) == FPA_OK)
        npy_free(&array);
    if (npy_read_matrices(path, &limit, &matrices, &error) == FPA_OK)
        free(matrices.data);
}

int main(int count, char **arguments)
{
    return fuzz_main(count, arguments, "npy", ".npy", read_array);
}
