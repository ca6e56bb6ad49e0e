/* recall: how much a head's state remembers.
 *
 *   recall [FILE] [WORDS]
 *
 * Reads a text and takes its distinct words in the order of their first appearance. Every word
 * has a key (a random unit vector of width d, drawn from a hash of the word) and a code (one of
 * width dv). The head stores, for each word, its key with the code of its successor, the next
 * word of that order; then every word is asked again, and the answer is the word whose code is
 * nearest to o.
 *
 * N pairs in a state of degree p disturb an answer by about sqrt(N (2p-1)!! / d^p): the more
 * features, the more pairs come back. That is why higher degrees exist. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fpa.h"

enum { MANY_WORDS = 1 << 16, WORD_LENGTH = 64, DEFAULT_WORDS = 4096 };

typedef struct text {
    const char *path;
    int count;                  /* distinct words */
    char (*words)[WORD_LENGTH]; /* [count] in order of first appearance; the successor is the next */
} text;

/* The operands of one head: all of [1, count, 1, width]. */
typedef struct memory {
    float *keys, *values, *zeros, *answers, *codes, *state;
} memory;

/* ---- words ---- */

static void add_word(text *book, const char *word)
{
    for (int i = 0; i < book->count; i++) {
        if (!strcmp(book->words[i], word))
            return;
    }
    strcpy(book->words[book->count++], word);
}

/* The next run of letters, in lower case; 0 at the end of the file. */
static int read_word(FILE *file, char word[WORD_LENGTH])
{
    int c, length = 0;
    while ((c = getc(file)) != EOF && !isalpha(c))
        ;
    for (; c != EOF && isalpha(c); c = getc(file)) {
        if (length < WORD_LENGTH - 1)
            word[length++] = (char)tolower(c);
    }
    word[length] = 0;
    return length;
}

/* At most limit distinct words; -1: there are not two. */
static int read_text(const char *path, int limit, text *book)
{
    char word[WORD_LENGTH];
    FILE *file = fopen(path, "r");
    book->path = path;
    book->words = calloc((size_t)limit, sizeof *book->words);
    while (file && book->words && book->count < limit && read_word(file, word))
        add_word(book, word);
    if (file)
        fclose(file);
    return book->count > 1 ? 0 : -1;
}

/* ---- embeddings ---- */

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t hash_word(const char *word, uint64_t seed) /* FNV-1a */
{
    uint64_t hash = 0xcbf29ce484222325u ^ seed;
    for (; *word; word++)
        hash = (hash ^ (unsigned char)*word) * 0x100000001b3u;
    return hash;
}

/* A unit vector in a random direction: the word's own, always the same. */
static void embed_word(const char *word, uint64_t seed, int width, float *vector)
{
    uint64_t state = hash_word(word, seed);
    double square = 0;
    for (int i = 0; i < width; i++) {
        double sum = -6; /* twelve uniform numbers: nearly normal */
        for (int j = 0; j < 12; j++)
            sum += (double)(next_random(&state) >> 11) * 0x1p-53;
        vector[i] = (float)sum;
        square += sum * sum;
    }
    for (int i = 0; i < width; i++)
        vector[i] = (float)(vector[i] / sqrt(square));
}

/* ---- the head ---- */

static DLTensor tensor(float *data, int64_t *shape)
{
    return (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = 4, .dtype = {kDLFloat, 32, 1}, .shape = shape};
}

/* One call of the head over all words: o = phi(q)' (S + what k and v add). */
static fpa_status apply(const fpa_kernel *kernel, int count, const memory *m, float *k, float *v,
                        float *state_in, float *state_out, fpa_error *error)
{
    const fpa_description *about = fpa_describe(kernel);
    int64_t wide[4] = {1, count, 1, about->d}, narrow[4] = {1, count, 1, about->dv};
    int64_t whole[4] = {1, 1, about->features, about->dv};
    DLTensor q_tensor = tensor(m->keys, wide), k_tensor = tensor(k, wide), v_tensor = tensor(v, narrow);
    DLTensor o_tensor = tensor(m->answers, narrow), in = tensor(state_in, whole),
             out = tensor(state_out, whole);
    fpa_tensors tensors = {.q = &q_tensor, .k = &k_tensor, .v = &v_tensor, .o = &o_tensor};
    tensors.state_in = state_in ? &in : NULL;
    tensors.state_out = state_out ? &out : NULL;
    size_t size;
    fpa_status status = fpa_workspace_size(kernel, FPA_FORM_CHUNKED, &tensors, &size, error);
    if (status)
        return status;
    void *workspace = aligned_alloc(64, (size + 64) / 64 * 64);
    if (!workspace) {
        snprintf(error->message, sizeof error->message, "out of memory");
        return error->code = FPA_NO_MEMORY;
    }
    status = fpa_forward(kernel, FPA_FORM_CHUNKED, &tensors, workspace, size, error);
    free(workspace);
    return status;
}

static float *zeroed(size_t count, size_t width)
{
    return calloc(count * width + 1, sizeof(float));
}

static int make_memory(const fpa_description *about, const text *book, memory *m)
{
    size_t count = (size_t)book->count, d = (size_t)about->d, dv = (size_t)about->dv;
    m->keys = zeroed(count, d);
    m->zeros = zeroed(count, d > dv ? d : dv);
    m->values = zeroed(count, dv);
    m->answers = zeroed(count, dv);
    m->codes = zeroed(count, dv);
    m->state = zeroed((size_t)about->state_elements, 1);
    if (!m->keys || !m->zeros || !m->values || !m->answers || !m->codes || !m->state)
        return -1;
    for (size_t i = 0; i < count; i++) {
        embed_word(book->words[i], 1, about->d, m->keys + i * d);
        embed_word(book->words[i], 2, about->dv, m->codes + i * dv);
    }
    memcpy(m->values, m->codes + dv, (count - 1) * dv * sizeof(float)); /* the last has no successor */
    return 0;
}

static void free_memory(memory *m)
{
    free(m->keys);
    free(m->zeros);
    free(m->values);
    free(m->answers);
    free(m->codes);
    free(m->state);
}

static int nearest_word(const float *codes, int count, int dv, const float *answer)
{
    int best = 0;
    float best_dot = -INFINITY;
    for (int i = 0; i < count; i++) {
        float dot = 0;
        for (int e = 0; e < dv; e++)
            dot += codes[(size_t)i * (size_t)dv + (size_t)e] * answer[e];
        if (dot > best_dot) {
            best_dot = dot;
            best = i;
        }
    }
    return best;
}

/* How many successors come back. Asking is a forward whose keys are zero: phi(0) = 0 for a
 * kernel without a constant term, so that nothing is stored while reading. */
static fpa_status recall(const fpa_kernel *kernel, const text *book, memory *m, int *recalled,
                         fpa_error *error)
{
    int dv = fpa_describe(kernel)->dv;
    fpa_status status = apply(kernel, book->count, m, m->keys, m->values, NULL, m->state, error);
    if (!status)
        status = apply(kernel, book->count, m, m->zeros, m->zeros, m->state, NULL, error);
    *recalled = 0;
    for (int i = 0; i + 1 < book->count && !status; i++)
        *recalled += nearest_word(m->codes, book->count, dv, m->answers + (size_t)i * (size_t)dv) == i + 1;
    return status;
}

static fpa_status show_head(const char *spec, const char *name, const text *book, fpa_error *error)
{
    fpa_kernel *kernel = NULL;
    memory m = {0};
    int recalled, pairs = book->count - 1;
    fpa_status status = fpa_open(spec, name, NULL, &kernel, error);
    if (status)
        return status;
    const fpa_description *about = fpa_describe(kernel);
    if (make_memory(about, book, &m)) {
        snprintf(error->message, sizeof error->message, "out of memory");
        status = error->code = FPA_NO_MEMORY;
    }
    if (!status)
        status = recall(kernel, book, &m, &recalled, error);
    if (!status)
        printf("%-16s %6lld %10.1f KiB %8d of %d  %5.1f %%\n", name, (long long)about->features,
               (double)about->state_elements * sizeof(float) / 1024, recalled, pairs,
               100.0 * recalled / pairs);
    fflush(stdout);
    free_memory(&m);
    fpa_close(kernel);
    return status;
}

int main(int count, char **arguments)
{
    static const char *const heads[] = {"linear_d16",    "linear_d32",    "linear_d64",    "tspow2_d16_b4",
                                        "tspow2_d32_b8", "tspow2_d64_b1", "tspow2_d64_b8", "tspow3_d16_b4"};
    const char *spec = getenv("RECALL_SPEC") ? getenv("RECALL_SPEC") : "examples/recall.lua";
    const char *licence = "/usr/share/common-licenses/GPL-3";
    const char *path = count > 1 ? arguments[1] : access(licence, R_OK) ? "README.md" : licence;
    int limit = count > 2 ? atoi(arguments[2]) : DEFAULT_WORDS;
    text book = {0};
    fpa_error error = {0};
    if (limit < 2 || limit > MANY_WORDS || read_text(path, limit, &book)) {
        fprintf(stderr, "recall: %s: there are no two words to store, of 2 to %d\n", path, MANY_WORDS);
        free(book.words);
        return 1;
    }
    printf("%s: %d distinct words, each stored with the next\n", path, book.count);
    printf("%-16s %6s %14s %s\n", "head", "D", "state", "successors recalled");
    int code = 0;
    for (unsigned i = 0; i < sizeof heads / sizeof *heads && !code; i++) {
        if (show_head(spec, heads[i], &book, &error)) {
            fprintf(stderr, "recall: %s: %s\n", error.where, error.message);
            code = 1;
        }
    }
    free(book.words);
    return code;
}
