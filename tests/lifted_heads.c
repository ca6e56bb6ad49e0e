#include "lifted_heads.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "claims.h"
#include "reference_bench.h"

void lifted_add(lifted_text *to, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int more = vsnprintf(to->all + to->used, sizeof to->all - to->used, format, list);
    va_end(list);
    assert_true(more >= 0 && (size_t)more < sizeof to->all - to->used);
    to->used += (size_t)more;
}

/* As heads write their numbers: an integer and a power of two. */
static void add_number(lifted_text *to, double value)
{
    int exponent = 0;
    long long integer = (long long)ldexp(frexp(fabs(value), &exponent), 53);
    for (exponent -= 53; integer != 0 && integer % 2 == 0; exponent++)
        integer /= 2;
    lifted_add(to, "%s0x%llxp%+d", signbit(value) ? "-" : "", integer, integer ? exponent : 0);
}

/* The lines up to the matrices; options: any of "causal", "gate", "sum". */
void lifted_begin(lifted_text *to, int d, const char *options)
{
    *to = (lifted_text){0};
    lifted_add(to, "fpac head 1\nname lifted\nd %d\ndv %d\nblock 0\nchunk 0\ncausal %d\nscale 0x3p-2\n", d,
               DV, strstr(options, "causal") != NULL);
    lifted_add(to, "normalize %s\neps %s\n", strstr(options, "sum") ? "sum" : "none",
               strstr(options, "sum") ? "0x1p-20" : "0x0p+0");
    lifted_add(to, "gate %d\ndtype f32\nstate_dtype f32\n", strstr(options, "gate") != NULL);
}

/* One factor a part: its maps, inner, square, shift, gains, and position line. */
void lifted_part(lifted_text *to, int rows, const char *maps, const char *inner, const char *gain,
                 const char *position, const char *factor)
{
    lifted_add(to, "part real %d factors 1\nmap %s\ninner %s\ngain %s\nposition %s\nfactor %s\n", rows, maps,
               inner, gain, position, factor);
}

const char lifted_as_is[] = "0x1p+0 0x0p+0 0x0p+0", lifted_ones[] = "0x1p+0 0x1p+0";

/* The sum over all coordinates, to the power of the number of branches. */
fpa_head *lifted_finish(lifted_text *to, int d, int power)
{
    fpa_head *head = NULL;
    fpa_error error = {0};
    lifted_add(to, "terms 1\nterm 1 branches %d\n", power);
    for (int l = 0; l < power; l++)
        lifted_add(to, d > 1 ? "branch coordinates input 1-%d\n" : "branch coordinates input %d\n", d);
    lifted_add(to, "end\n");
    if (head_parse(to->all, to->used, &head, &error))
        fail_msg("%s: %s\n%s", error.where, error.message, to->all);
    return head;
}

fpa_head *lifted_elu(const char *options)
{
    lifted_text to;
    lifted_begin(&to, WIDTH, options);
    lifted_add(&to, "matrices 0\nlift width %d positions 0 key_mask %d parts 1\n", WIDTH,
               strstr(options, "mask") != NULL);
    lifted_part(&to, WIDTH, "elu_plus_one elu_plus_one", lifted_as_is, lifted_ones, "0 0 0", "input 1-4");
    return lifted_finish(&to, WIDTH, 1);
}

fpa_head *lifted_fourier(bool with_one, const char *options)
{
    const int d = (with_one ? 3 : 2) * WIDTH;
    const char *maps = with_one ? "exp exp" : "softplus softplus";
    lifted_text to;
    lifted_begin(&to, d, options);
    lifted_add(&to, "matrices %d\ntrainable a %d %d per_head\ntrainable b %d 1 per_head\n", with_one ? 2 : 3,
               WIDTH, SPACE, WIDTH);
    if (!with_one)
        lifted_add(&to, "trainable c %d 1 per_head\n", WIDTH);
    lifted_add(&to, "lift width %d positions %d key_mask %d parts %d\n", WIDTH, SPACE,
               strstr(options, "mask") != NULL, with_one ? 2 : 1);
    lifted_part(&to, WIDTH, maps, lifted_as_is, lifted_ones, with_one ? "1 2 0" : "1 2 3", "input 1-4");
    if (with_one)
        lifted_part(&to, WIDTH, maps, lifted_as_is, lifted_ones, "0 0 0", "input 1-4");
    return lifted_finish(&to, d, 1);
}

fpa_head *lifted_constant(const char *options)
{
    lifted_text to;
    lifted_begin(&to, WIDTH + 1, options);
    lifted_add(&to, "matrices 0\nlift width %d positions 0 key_mask 1 parts 2\n", WIDTH);
    lifted_part(&to, 1, "one one", lifted_as_is, lifted_ones, "0 0 0", "input 1");
    lifted_part(&to, WIDTH, "identity identity", lifted_as_is, lifted_ones, "0 0 0", "input 1-4");
    return lifted_finish(&to, WIDTH + 1, 2);
}

const int lifted_bucket[SKETCH_DEGREE][WIDTH] = {{3, 1, 4, 1}, {0, 2, 2, 4}};
const int lifted_sign[SKETCH_DEGREE][WIDTH] = {{1, -1, -1, 1}, {-1, 1, -1, -1}};

/* Row n of the discrete Fourier transform of a count sketch; part 0: real, 1: imaginary. */
static void add_transform(lifted_text *to, int l, int imaginary)
{
    lifted_add(to, "constant %d %d\n", SKETCH, WIDTH);
    for (int n = 0; n < SKETCH; n++)
        for (int c = 0; c < WIDTH; c++) {
            const double angle = -2 * 3.14159265358979323846 * n * lifted_bucket[l][c] / SKETCH;
            add_number(to, lifted_sign[l][c] * (imaginary ? sin(angle) : cos(angle)));
            lifted_add(to, c + 1 < WIDTH ? " " : "\n");
        }
}

fpa_head *lifted_sketch(const char *options)
{
    lifted_text to;
    lifted_begin(&to, 2 * SKETCH, options);
    lifted_add(&to, "matrices 4\n");
    for (int l = 0; l < SKETCH_DEGREE; l++) {
        add_transform(&to, l, 0);
        add_transform(&to, l, 1);
    }
    lifted_add(&to, "lift width %d positions 0 key_mask 0 parts 1\npart complex %d factors 2\n", WIDTH,
               SKETCH);
    lifted_add(&to, "map identity identity\ninner %s\ngain 0x1p+0 ", lifted_as_is);
    add_number(&to, 1.0 / SKETCH);
    lifted_add(&to, "\nposition 0 0 0\n");
    lifted_add(&to, "factor matrix 1 2\nfactor matrix 3 4\n");
    return lifted_finish(&to, 2 * SKETCH, 1);
}

fpa_head *lifted_products(const char *options)
{
    lifted_text to;
    lifted_begin(&to, WIDTH, options);
    lifted_add(&to, "matrices 3\ntrainable_diagonal g 4 4 per_head\nconstant 4 4 heads 2\n"
                    "0x1p+0 0x1p+1 0x0p+0 0x0p+0\n0x0p+0 0x1p+0 0x0p+0 -0x1p+0\n"
                    "0x3p+0 0x0p+0 0x1p+0 0x0p+0\n0x0p+0 0x0p+0 0x0p+0 0x1p+0\n"
                    "0x0p+0 0x0p+0 0x1p+0 0x0p+0\n0x1p+1 0x0p+0 0x0p+0 0x0p+0\n"
                    "0x0p+0 -0x1p+0 0x0p+0 0x0p+0\n0x0p+0 0x0p+0 0x0p+0 -0x1p+1\n"
                    "trainable w 4 4 shared\nlift width 4 positions 0 key_mask 0 parts 1\n");
    lifted_add(&to, "part real 4 factors 3\nmap identity identity\ninner %s\ngain %s\nposition 0 0 0\n",
               lifted_as_is, lifted_ones);
    lifted_add(&to, "factor matrix 1\nfactor matrix 2\nfactor matrix 3\n");
    return lifted_finish(&to, WIDTH, 1);
}
