/* new: writes a first spec, and arrays to apply it to. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/npy.h"
#include "base/file.h"
#include "base/nearest.h"
#include "command.h"
#include "options.h"
#include "starter.h"

/* Sizes of the call for which arrays are written. */
enum { SEQUENCES = 1, TOKENS = 256, HEADS = 2 };

/* An array to write: NAME.KIND.npy. */
typedef struct sample {
    char kind[16];
    int axes;
    int64_t shape[4];
    float low, high; /* range of its numbers */
    bool counted;    /* instead: the tokens' indices, from 0 on */
} sample;

/* The files that are written: the arrays, then the spec. */
enum { MOST_SAMPLES = 5 + STARTER_WEIGHTS, MOST_FILES = MOST_SAMPLES + 1 };
typedef struct beginning {
    const starter_family *family;
    const char *folder, *name;
    int samples;
    sample sample[MOST_SAMPLES];
    char *path[MOST_FILES]; /* [samples + 1]; the last one is the spec's */
} beginning;

/* Whether a text is a valid name of a head. */
static bool is_name(const char *text)
{
    size_t length = strlen(text);
    bool fits = length > 0 && length <= HEAD_MAX_NAME && !isdigit((unsigned char)text[0]);
    for (size_t i = 0; i < length; i++)
        fits = fits && (isalnum((unsigned char)text[i]) || text[i] == '_');
    return fits;
}

/* ---- the arrays ---- */

static void add_sample(beginning *all, const char *kind, int axes, const int64_t *shape, float low,
                       float high)
{
    sample *next = &all->sample[all->samples++];
    *next = (sample){.axes = axes, .low = low, .high = high};
    snprintf(next->kind, sizeof next->kind, "%s", kind);
    memcpy(next->shape, shape, (size_t)axes * sizeof *shape);
}

/* Chooses the arrays: keys and values between -1 and 1; weights such that a projection is about as long as its
 * argument; gates that halve a state in ten tokens or more. */
static void choose_samples(beginning *all)
{
    const starter_family *family = all->family;
    const int64_t narrow[] = {SEQUENCES, TOKENS, HEADS, family->d},
                  wide[] = {SEQUENCES, TOKENS, HEADS, family->dv};
    add_sample(all, "q", 4, narrow, -1, 1);
    add_sample(all, "k", 4, narrow, -1, 1);
    add_sample(all, "v", 4, wide, -1, 1);
    if (family->gate)
        add_sample(all, "log_gate", 3, narrow, -0.07f, 0);
    if (family->positions) {
        const int64_t tokens[] = {SEQUENCES, TOKENS, family->positions};
        add_sample(all, "positions", 3, tokens, 0, 0);
        all->sample[all->samples - 1].counted = true;
    }
    for (int i = 0; i < STARTER_WEIGHTS && family->weight[i].name; i++) {
        const int64_t shape[] = {HEADS, family->weight[i].rows, family->weight[i].cols};
        const float most = 1.7f / sqrtf((float)family->weight[i].cols);
        add_sample(all, family->weight[i].name, 3, shape, -most, most);
    }
}

/* Fills an array with random numbers that are the same on every machine. */
static void fill_numbers(fpa_array *array, const sample *of, uint64_t seed)
{
    for (int64_t i = 0; i < array->count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const double share = (double)(seed >> 40) / (double)(1 << 24);
        array->data[i] = (float)((double)of->low + share * ((double)of->high - (double)of->low));
    }
}

static fpa_status write_array(const char *path, const sample *of, uint64_t seed, fpa_error *error)
{
    fpa_array array = {.axes = of->axes, .count = 1};
    for (int i = 0; i < of->axes; i++) {
        array.shape[i] = of->shape[i];
        array.count *= of->shape[i];
    }
    array.data = malloc((size_t)array.count * sizeof *array.data);
    if (!array.data)
        return fail_memory(error);
    fill_numbers(&array, of, seed);
    for (int64_t i = 0; of->counted && i < array.count; i++)
        array.data[i] = (float)(i / of->shape[2]); // NOLINT(bugprone-integer-division): a token's number
    fpa_status status = npy_write(path, &array, error);
    npy_free(&array);
    return status;
}

/* ---- all files ---- */

static const char *spec_path(const beginning *all)
{
    return all->path[all->samples];
}

static fpa_status write_spec(const beginning *all, fpa_error *error)
{
    char *text = starter_text(all->family, all->name);
    if (!text)
        return fail_memory(error);
    const fpa_bytes bytes = {text, strlen(text)};
    fpa_status status = file_write(all->folder, strrchr(spec_path(all), '/') + 1, 0666, &bytes, 1, error);
    free(text);
    return status;
}

/* A path as a person would write it. */
static const char *plain(const char *path)
{
    return strncmp(path, "./", 2) ? path : path + 2;
}

static fpa_status refuse_to_overwrite(const beginning *all, fpa_error *error)
{
    struct stat facts;
    for (int i = 0; i <= all->samples; i++) {
        if (lstat(all->path[i], &facts) == 0)
            return fail(error, FPA_INVALID, plain(all->path[i]),
                        "is there already; take another name, or remove it");
    }
    return FPA_OK;
}

/* Writes all files; if one fails, none remains. */
static fpa_status write_files(const beginning *all, fpa_error *error)
{
    fpa_status status = FPA_OK;
    int written = 0;
    for (; written <= all->samples && !status; written++) {
        if (written == all->samples)
            status = write_spec(all, error);
        else
            status = write_array(all->path[written], &all->sample[written], (uint64_t)written + 1, error);
    }
    for (int i = 0; status && i < written - 1; i++) /* a write that fails leaves no file itself */
        unlink(all->path[i]);
    return status;
}

static fpa_status name_files(beginning *all, fpa_error *error)
{
    for (int i = 0; i <= all->samples; i++) {
        char file[HEAD_MAX_NAME + 32];
        if (i < all->samples)
            snprintf(file, sizeof file, "%s.%s.npy", all->name, all->sample[i].kind);
        else
            snprintf(file, sizeof file, "%s.lua", all->name);
        all->path[i] = file_path(all->folder, file);
        if (!all->path[i])
            return fail_memory(error);
    }
    return FPA_OK;
}

static void print_files(const beginning *all)
{
    printf("%s: a head of d = %d, dv = %d, to edit\n", plain(spec_path(all)), all->family->d,
           all->family->dv);
    for (int i = 0; i < all->samples; i++) {
        const sample *of = &all->sample[i];
        printf("%s: [", plain(all->path[i]));
        for (int a = 0; a < of->axes; a++)
            printf("%s%lld", a ? ", " : "", (long long)of->shape[a]);
        printf("], float32\n");
    }
}

static fpa_status make_files(beginning *all, fpa_error *error)
{
    fpa_status status = FPA_OK;
    if (!folder_create(all->folder, 0777))
        status = fail(error, FPA_IO, all->folder, "cannot be made: %s", strerror(errno));
    if (!status)
        status = name_files(all, error);
    if (!status)
        status = refuse_to_overwrite(all, error);
    if (!status)
        status = write_files(all, error);
    if (!status) {
        detail("%s: %s; D = %d", plain(spec_path(all)), all->family->kernel, all->family->features);
        print_files(all);
    }
    for (int i = 0; i < MOST_FILES; i++)
        free(all->path[i]);
    return status;
}

static fpa_status select_family(const char *name, const starter_family **family, fpa_error *error)
{
    enum { MOST = 32 };
    const char *names[MOST + 1] = {NULL};
    *family = starter_find(name);
    for (int i = 0; i < MOST && starter_at(i); i++)
        names[i] = starter_at(i)->name;
    return *family ? FPA_OK : fail_unknown(error, "--family", name, "family", names);
}

static int refuse_name(const char *name)
{
    fpa_error error;
    fail(&error, FPA_INVALID, "NAME",
         "'%.80s' is no name of a head: letters, digits and _, at most %d, no digit first", name,
         HEAD_MAX_NAME);
    report(&error);
    return EXIT_USAGE;
}

int command_new(int count, char **arguments)
{
    beginning all = {.folder = "."};
    const char *family = NULL;
    bool sampled = false, bare = false;
    const fpa_option table[] = {
        {"--family", OPTION_TEXT, &family, "FAMILY",
         "tspow, linear, gated, power, spow, taylor, inhomogeneous, product, elu, fourier (tspow)", 0, 0},
        {"--sample", OPTION_FLAG, &sampled, NULL, "the spec and arrays to apply it to (the default)", 0, 0},
        {"--no-sample", OPTION_FLAG, &bare, NULL, "only the spec", 0, 0},
        {"-o", OPTION_TEXT, &all.folder, "DIR", "directory to write to (.); created if missing", 0, 0},
        OPTION_VERBOSE,
    };
    const fpa_syntax syntax = {
        "new NAME [--family FAMILY] [--sample | --no-sample] [-o DIR] [--verbose]",
        "Write NAME.lua, the spec of a head to begin with, and NAME.q.npy, NAME.k.npy, NAME.v.npy\n"
        "(gated: also NAME.log_gate.npy; product: NAME.W1.npy, NAME.W2.npy; fourier: NAME.positions.npy,\n"
        "NAME.a.npy, NAME.b.npy, NAME.c.npy), arrays to apply it to with fpac run. Existing files are never\n"
        "overwritten.",
        OPTION_TABLE(table),
        1,
        1,
        NULL};
    fpa_texts operands;
    fpa_error error;
    int code;
    if (!options_parse(&syntax, count, arguments, &operands, &code))
        return code;
    if (sampled && bare)
        return option_conflict(&syntax, "--no-sample", "--sample");
    all.name = operands.text[0];
    if (!is_name(all.name))
        return refuse_name(all.name);
    if (select_family(family, &all.family, &error))
        return report(&error);
    if (!bare)
        choose_samples(&all);
    if (make_files(&all, &error))
        return report(&error);
    return finish_output(EXIT_OK);
}
