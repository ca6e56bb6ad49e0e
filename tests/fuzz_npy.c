/* Mutated arrays against the reader of NumPy's format. */
#include "fuzz.h"

#include "base/npy.h"

static void read_array(const char *path, const unsigned char *bytes, size_t size)
{
    fpa_array array = {0};
    fpa_error error;
    int64_t rows, cols;
    double *matrix = NULL;
    (void)bytes, (void)size;
    if (npy_read(path, &array, &error) == FPA_OK)
        npy_free(&array);
    if (npy_read_matrix(path, &rows, &cols, &matrix, &error) == FPA_OK)
        free(matrix);
}

int main(int count, char **arguments)
{
    return fuzz_main(count, arguments, "npy", ".npy", read_array);
}
