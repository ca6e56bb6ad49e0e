/* float32's range: scales, weights and matrices far from 1, whose product is not, give what the formula gives for
 * ordinary inputs; others are refused by that name. */
#include "runtime/api/fpa.h"
#include "claims.h"
#include "far_heads.h"
#include "random_head.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { D = 6, DV = 3, L = 70 };

static float q[L * D], k[L * D], v[L * DV], o[L * DV];

static void fill(float *x, int count, uint64_t seed)
{
    random_source random = {seed};
    for (int i = 0; i < count; i++)
        x[i] = (float)random_normal(&random);
}

static fpa_status open_fields(const char *fields, fpa_kernel **kernel, fpa_error *error)
{
    char text[1024];
    snprintf(text, sizeof text, "return head { name = 'far', d = %d, dv = %d, chunk = 48, %s }", D, DV,
             fields);
    return fpa_open_text("far.lua", text, NULL, NULL, kernel, error);
}

/* What the formula gives, and what it would give if nothing cancelled. */
static void expect(const struct far_head *head, int t, int c, double *value, double *size)
{
    double sum = 0, magnitude = 0, den = 0, den_magnitude = 0;
    for (int j = 0; j <= t; j++) {
        double dot = 0, absolute = 0;
        for (int i = 0; i < D; i++) {
            dot += (double)q[t * D + i] * k[j * D + i];
            absolute += fabs((double)q[t * D + i] * k[j * D + i]);
        }
        const double score = head->weight * pow(dot, head->degree);
        const double most = fabs(head->weight) * pow(absolute, head->degree);
        sum += score * v[j * DV + c];
        magnitude += most * fabs(v[j * DV + c]);
        den += score;
        den_magnitude += most;
    }
    *value = head->normalized ? sum / den : sum;
    *size = head->normalized ? magnitude / den + fabs(*value) * den_magnitude / den : magnitude;
}

static void check_form(const struct far_head *head, const fpa_kernel *kernel, fpa_form form)
{
    int64_t qk[4] = {1, L, 1, D}, values[4] = {1, L, 1, DV};
    DLTensor tensors[4];
    float *const data[4] = {q, k, v, o};
    for (int i = 0; i < 4; i++)
        tensors[i] = (DLTensor){.data = data[i],
                                .device = {kDLCPU, 0},
                                .ndim = 4,
                                .dtype = {kDLFloat, 32, 1},
                                .shape = i < 2 ? qk : values};
    fpa_tensors call = {.q = &tensors[0], .k = &tensors[1], .v = &tensors[2], .o = &tensors[3]};
    fpa_error error = {0};
    size_t size = 0;
    void *workspace = NULL;
    assert_ok(fpa_workspace_size(kernel, form, &call, &size, &error) ||
                  posix_memalign(&workspace, 64, size) ||
                  fpa_forward(kernel, form, &call, workspace, size, &error),
              &error);
    free(workspace);
    for (int t = 0; t < L; t++)
        for (int c = 0; c < DV; c++) {
            double value, most;
            expect(head, t, c, &value, &most);
            if (!(fabs(o[t * DV + c] - value) <= 1e-5 * most))
                fail_msg("%s, form %d: o[%d][%d] is %g, the formula gives %g", head->fields, form, t, c,
                         (double)o[t * DV + c], value);
        }
}

static void factors_whose_product_is_harmless_are_harmless(void **state)
{
    for (size_t i = 0; i < COUNT_OF(harmless_heads); i++) {
        fpa_kernel *kernel = NULL;
        fpa_error error = {0};
        if (open_fields(harmless_heads[i].fields, &kernel, &error))
            fail_msg("%s: %s", harmless_heads[i].fields, error.message);
        for (int form = 0; form < 3; form++)
            check_form(&harmless_heads[i], kernel, form);
        fpa_close(kernel);
    }
}

static void products_beyond_float32_are_refused_by_that_name(void **state)
{
    for (size_t i = 0; i < COUNT_OF(heads_beyond); i++) {
        fpa_kernel *kernel = NULL;
        fpa_error error = {0};
        const fpa_status status = open_fields(heads_beyond[i], &kernel, &error);
        if (status != FPA_UNSUPPORTED || !strstr(error.message, "kernels compute in float32"))
            fail_msg("%s: status %d, %s", heads_beyond[i], status, error.message);
    }
}

static int make_inputs(void **state)
{
    fill(q, L * D, 1);
    fill(k, L * D, 2);
    fill(v, L * DV, 3);
    return setenv("FPA_CFLAGS", "-Og", 0); /* compile time is what these tests cost */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_whose_product_is_harmless_are_harmless),
        cmocka_unit_test(products_beyond_float32_are_refused_by_that_name),
    };
    return cmocka_run_group_tests(tests, make_inputs, NULL);
}
