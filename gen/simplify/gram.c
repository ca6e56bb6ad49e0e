#include "gram.h"

#include <math.h>
#include <string.h>

/* Four partial sums, so that additions do not depend on each other. */
static double dot(const double *a, const double *b, size_t count)
{
    double sum[4] = {0};
    size_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (size_t j = 0; j < 4; j++)
            sum[j] += a[i + j] * b[i + j];
    for (; i < count; i++)
        sum[0] += a[i] * b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

double *dense_products(arena *memory, const fpa_dense *dense)
{
    size_t rows = (size_t)dense->rows, cols = (size_t)dense->cols;
    double *products = arena_array(memory, rows * rows, sizeof *products);
    for (size_t i = 0; products && i < rows; i++)
        for (size_t j = 0; j <= i; j++) {
            double product = dot(dense->w + i * cols, dense->w + j * cols, cols);
            products[i * rows + j] = products[j * rows + i] = product;
        }
    return products;
}

static bool transpose(arena *memory, const fpa_dense *dense, fpa_dense *transposed)
{
    size_t rows = (size_t)dense->rows, cols = (size_t)dense->cols;
    double *w = arena_array(memory, rows * cols, sizeof *w);
    if (!w)
        return false;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            w[c * rows + r] = dense->w[r * cols + c];
    *transposed = (fpa_dense){dense->cols, dense->rows, w};
    return true;
}

double *dense_gram(arena *memory, const fpa_dense *dense)
{
    fpa_dense columns;
    return transpose(memory, dense, &columns) ? dense_products(memory, &columns) : NULL;
}

bool products_regular(arena *memory, const double *products, int n, bool *regular)
{
    size_t rows = (size_t)n;
    double *lower = arena_array(memory, rows * rows, sizeof *lower), largest = 0;
    if (!lower)
        return false;
    *regular = true;
    for (size_t i = 0; i < rows; i++)
        largest = fmax(largest, products[i * rows + i]);
    for (size_t i = 0; *regular && i < rows; i++) {
        double *row = lower + i * rows;
        for (size_t j = 0; j < i; j++)
            row[j] = (products[i * rows + j] - dot(row, lower + j * rows, j)) / lower[j * rows + j];
        double pivot = products[i * rows + i] - dot(row, row, i);
        *regular = pivot > RANK_TOLERANCE * largest;
        row[i] = *regular ? sqrt(pivot) : 0;
    }
    return true;
}

bool columns_orthogonal(const fpa_dense *dense)
{
    size_t cols = (size_t)dense->cols;
    for (size_t c = 0; c + 1 < cols; c++) {
        double product = 0, first = 0, second = 0;
        for (size_t r = 0; r < (size_t)dense->rows; r++) {
            const double *pair = dense->w + r * cols + c;
            product += pair[0] * pair[1];
            first += pair[0] * pair[0];
            second += pair[1] * pair[1];
        }
        if (product * product > 1e-16 * first * second)
            return false;
    }
    return true;
}

double gram_residual(const double *a, const double *b, double scale, size_t count)
{
    double difference = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        difference = fmax(difference, fabs(a[i] - scale * b[i]));
        largest = fmax(largest, fabs(a[i]));
    }
    return largest > 0 ? difference / largest : 0;
}

double gram_scaled_residual(const double *a, const double *b, int n)
{
    const size_t size = (size_t)n;
    double largest = 0;
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j < size; j++) {
            const double unit = sqrt(a[i * size + i] * a[j * size + j]);
            const double off = fabs(a[i * size + j] - b[i * size + j]);
            largest = off > 0 ? fmax(largest, off / unit) : largest;
        }
    return largest;
}

double gram_off_diagonal(const double *gram, int n)
{
    double off = 0, largest = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double element = fabs(gram[(size_t)i * (size_t)n + (size_t)j]);
            largest = fmax(largest, element);
            off = i == j ? off : fmax(off, element);
        }
    return largest > 0 ? off / largest : 0;
}

static int largest_index(const double *values, int n)
{
    int largest = 0;
    for (int i = 1; i < n; i++)
        if (values[i] > values[largest])
            largest = i;
    return largest;
}

/* Row k of the factor, for pivot p: the part of row p of the Gram that the rows before k do not explain. */
static void factor_row(fpa_dense *factor, const double *gram, int n, int k, int p, double *left)
{
    double *row = factor->w + (size_t)k * (size_t)n;
    double root = sqrt(left[p]);
    memcpy(row, gram + (size_t)p * (size_t)n, (size_t)n * sizeof *row);
    for (int above = 0; above < k; above++) {
        const double *other = factor->w + (size_t)above * (size_t)n;
        double amount = other[p];
        for (int i = 0; i < n; i++)
            row[i] -= amount * other[i];
    }
    for (int i = 0; i < n; i++) {
        row[i] /= root;
        left[i] -= row[i] * row[i];
    }
    left[p] = 0;
}

bool gram_factor(arena *memory, const double *gram, int n, fpa_dense *factor, int *pivots)
{
    /* the part of the diagonal that no row explains yet */
    double *left = arena_array(memory, (size_t)n, sizeof *left);
    *factor = (fpa_dense){0, n, arena_array(memory, (size_t)n * (size_t)n, sizeof *factor->w)};
    if (!left || !factor->w)
        return false;
    for (int i = 0; i < n; i++)
        left[i] = gram[(size_t)i * (size_t)n + (size_t)i];
    double first = left[largest_index(left, n)];
    for (; factor->rows < n; factor->rows++) {
        int p = largest_index(left, n);
        if (!(left[p] > RANK_TOLERANCE * first))
            break;
        factor_row(factor, gram, n, factor->rows, p, left);
        if (pivots)
            pivots[factor->rows] = p;
    }
    return true;
}

/* Rotate rows i and j of an n-column matrix. */
static void rotate_rows(double *matrix, int n, int i, int j, double cosine, double sine)
{
    double *first = matrix + (size_t)i * (size_t)n, *second = matrix + (size_t)j * (size_t)n;
    for (int c = 0; c < n; c++) {
        double x = first[c], y = second[c];
        first[c] = cosine * x - sine * y;
        second[c] = sine * x + cosine * y;
    }
}

/* One rotation that makes element (i, j) zero (Golub and Van Loan, 8.5); false: it was negligible. */
static bool rotate_pair(double *matrix, int n, int i, int j, double *vectors)
{
    size_t size = (size_t)n, row = (size_t)i * size, other = (size_t)j * size;
    double off = matrix[row + (size_t)j], difference = matrix[other + (size_t)j] - matrix[row + (size_t)i];
    if (fabs(off) <= 1e-18 * (fabs(matrix[row + (size_t)i]) + fabs(matrix[other + (size_t)j])))
        return false;
    double ratio = difference / (2 * off);
    double tangent = copysign(1, ratio) / (fabs(ratio) + sqrt(1 + ratio * ratio));
    double cosine = 1 / sqrt(1 + tangent * tangent), sine = tangent * cosine;
    rotate_rows(matrix, n, i, j, cosine, sine);
    for (size_t r = 0; r < size; r++) {
        double x = matrix[r * size + (size_t)i], y = matrix[r * size + (size_t)j];
        matrix[r * size + (size_t)i] = cosine * x - sine * y;
        matrix[r * size + (size_t)j] = sine * x + cosine * y;
    }
    rotate_rows(vectors, n, i, j, cosine, sine);
    return true;
}

void gram_eigenvectors(double *matrix, int n, double *vectors)
{
    enum { SWEEPS = 30 };
    memset(vectors, 0, (size_t)n * (size_t)n * sizeof *vectors);
    for (int i = 0; i < n; i++)
        vectors[(size_t)i * (size_t)n + (size_t)i] = 1;
    for (int sweep = 0, rotated = 1; rotated && sweep < SWEEPS; sweep++) {
        rotated = 0;
        for (int i = 0; i < n; i++)
            for (int j = i + 1; j < n; j++)
                rotated += rotate_pair(matrix, n, i, j, vectors);
    }
}

bool gram_ratio(double value, fpa_number *ratio)
{
    enum { DENOMINATORS = 64 };
    for (int den = 1; den <= DENOMINATORS && fabs(value) < 1e9; den++) {
        double num = nearbyint(value * den);
        if (num != 0 && fabs(value - num / den) <= 1e-14 * fabs(value)) {
            *ratio = number_ratio((int64_t)num, den);
            return true;
        }
    }
    return false;
}

fpa_number gram_number(arena *memory, double value)
{
    fpa_number ratio;
    return gram_ratio(value, &ratio) ? ratio : number_double(memory, value);
}
