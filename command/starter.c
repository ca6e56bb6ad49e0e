#include "starter.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Families that are small enough to be compiled in seconds: D is at most 2112. Only kernels that are never
 * negative have a normaliser, since for others the sum of scores may be 0. */
static const starter_family families[] = {
    {.name = "tspow",
     .kernel = "(q.k)^2, each of its symmetric features kept once, by blocks of 8",
     .terms = "tspow { d = 64, degree = 2, block = 8 }",
     .why = "the block decides how the state is laid out, and how fast",
     .scale = "1 / 8",
     .d = 64,
     .dv = 64,
     .features = 2112,
     .normalized = true},
    {.name = "linear",
     .kernel = "q.k, linear attention: the smallest state",
     .terms = "linear {}",
     .why = "q.k may be negative, so that there is no normaliser",
     .scale = "1 / 8",
     .d = 64,
     .dv = 64,
     .features = 64},
    {.name = "gated",
     .kernel =
         "q.k with a gate, as in gated linear attention: what came before fades by exp(log-gate) a step",
     .terms = "linear {}",
     .why = "q.k may be negative, so that there is no normaliser",
     .scale = "1 / 8",
     .d = 64,
     .dv = 64,
     .features = 64,
     .gate = true},
    {.name = "power",
     .kernel = "(q.k)^3: few coordinates of a high degree, simplified from 16^3",
     .terms = "power { degree = 3 }",
     .why = "the compiler chooses the block; spow and tspow name it",
     .scale = "1 / 4",
     .d = 16,
     .dv = 64,
     .features = 960},
    {.name = "spow",
     .kernel = "(q.k)^2 by single coordinates: the fewest exact features",
     .terms = "spow { d = 32, degree = 2 }",
     .why = "it is tspow with a block of 1",
     .scale = "1 / sqrt(32)",
     .d = 32,
     .dv = 64,
     .features = 528,
     .normalized = true},
    {.name = "taylor",
     .kernel = "1 + q.k + (q.k)^2 / 2, the Taylor series of softmax's exp, as in BASED",
     .terms = "taylor { degree = 2 }",
     .why = "it is never negative, as taylor of every even degree",
     .scale = "1 / 4",
     .d = 16,
     .dv = 64,
     .features = 161,
     .normalized = true},
    {.name = "inhomogeneous",
     .kernel = "(1 + q.k)^2: all monomials up to degree 2",
     .terms = "inhomogeneous { degree = 2, constant = 1 }",
     .why = "the constant weighs low degrees against high ones",
     .scale = "1 / sqrt(32)",
     .d = 32,
     .dv = 64,
     .features = 577,
     .normalized = true},
    {.name = "product",
     .kernel = "(W1 q.W1 k) (W2 q.W2 k), a product of two learned projections",
     .terms = "{ term { trainable { name = \"W1\", rows = 12 }, trainable { name = \"W2\", rows = 16 } } }",
     .why = "D is the product of the rows",
     .scale = "1 / 8",
     .d = 64,
     .dv = 64,
     .features = 192,
     .weight = {{"W1", 12, 64}, {"W2", 16, 64}}},
    {.name = "elu",
     .kernel = "(elu(q) + 1) . (elu(k) + 1), linear attention with a map: never negative",
     .terms = "{ term { identity():map(elu_plus_one) } }",
     .why = "the map is one of relu, elu_plus_one, softplus, exp, silu; q and k may have different ones",
     .scale = "1 / 8",
     .d = 64,
     .dv = 64,
     .features = 64,
     .normalized = true},
    {.name = "fourier",
     .kernel = "the sum over r of s(q_r) s(k_r) c_r cos(b_r + a_r (p - p')), s softplus: p, p' are positions",
     .terms = "fourier { map = softplus }",
     .why = "a, b and c are given at run time, and a position for each token",
     .scale = "1 / 8",
     .d = 32,
     .dv = 64,
     .features = 64,
     .positions = 1,
     .weight = {{"a", 32, 1}, {"b", 32, 1}, {"c", 32, 1}}},
};

enum { FAMILIES = sizeof families / sizeof *families };

const starter_family *starter_at(int i)
{
    return i < FAMILIES ? &families[i] : NULL;
}

const starter_family *starter_find(const char *name)
{
    for (int i = 0; i < FAMILIES; i++)
        if (!name || !strcmp(name, families[i].name))
            return &families[i];
    return NULL;
}

static void write_call(FILE *out, const starter_family *family, const char *name)
{
    fprintf(out, "--   fpac run %s.lua --q %s.q.npy --k %s.k.npy --v %s.v.npy", name, name, name, name);
    if (family->gate)
        fprintf(out, " --log-gate %s.log_gate.npy", name);
    if (family->positions)
        fprintf(out, " --positions %s.positions.npy", name);
    for (int i = 0; i < STARTER_WEIGHTS && family->weight[i].name; i++)
        fprintf(out, " --weights %s=%s.%s.npy", family->weight[i].name, name, family->weight[i].name);
    fprintf(out, " -o %s.o.npy\n", name);
}

static void write_comment(FILE *out, const starter_family *family, const char *name)
{
    fprintf(out, "-- %s: a head of Factorized Polynomial Attention. Try:\n", name);
    fprintf(out, "--   fpac explain %s.lua        what it is, what it becomes, what it costs\n", name);
    fprintf(out, "--   fpac verify %s.lua         compile it, compare it with the formula\n", name);
    write_call(out, family, name);
    fputs("--   fpac prelude                 what else may stand behind `terms =`\n"
          "--\n"
          "--   k(q, k) = sum over terms  weight * product over branches  (W q) . (W k)\n"
          "--   o_t     = sum over j <= t of  k(scale q_t, k_j) v_j  / normaliser\n"
          "--\n",
          out);
    fprintf(out, "-- This one: %s. D = %d.\n", family->kernel, family->features);
}

static void write_head(FILE *out, const starter_family *family, const char *name)
{
    fprintf(out,
            "return head {\n"
            "  name = \"%s\",\n"
            "  d = %d,             -- width of q and k\n"
            "  dv = %d,            -- width of v and o\n"
            "  scale = %s,      -- multiplies q: 1 / sqrt(d), as softmax has it\n",
            name, family->d, family->dv, family->scale);
    fprintf(out,
            "  normalize = \"%s\",%s -- \"sum\": o / (sum of the weights + eps); or \"none\", \"max\", "
            "\"one_plus_sum\"\n",
            family->normalized ? "sum" : "none", family->normalized ? " " : "");
    fputs("  -- Others: linear {}, power { degree = 3 }, taylor { degree = 2 }, or terms of your own:\n"
          "  --   { term { select(range(1, 8)), identity(), weight = 2 }, term { identity() } }\n",
          out);
    fprintf(out, "  -- Here %s.\n  terms = %s,\n", family->why, family->terms);
    fprintf(out, "  %sgate = true,     -- a log-gate a step: fpac run --log-gate FILE\n",
            family->gate ? "" : "-- ");
    if (family->positions)
        fprintf(out, "  positions = %d,      -- numbers of a token's position: fpac run --positions FILE\n",
                family->positions);
    fputs("  -- dtype = \"bf16\",  -- how q, k, v and o are stored\n"
          "}\n",
          out);
}

char *starter_text(const starter_family *family, const char *name)
{
    text_buffer buffer;
    FILE *out = text_open(&buffer);
    if (!out)
        return NULL;
    write_comment(out, family, name);
    write_head(out, family, name);
    return text_finish(&buffer);
}
