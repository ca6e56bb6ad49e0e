/* new: a spec to begin with, and arrays to apply it to. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/npy.h"
#include "base/file.h"
#include "base/text.h"
#include "command.h"
#include "options.h"

/* The head that the spec below has, and calls of it. */
enum { WIDTH = 64, SEQUENCES = 1, TOKENS = 256, HEADS = 2 };

/* NAME stands for the head's name. */
static const char starter[] =
    "-- NAME: a head of Factorized Polynomial Attention. Try:\n"
    "--   fpac explain NAME.lua        what it is, what it becomes, what it costs\n"
    "--   fpac verify NAME.lua         compile it, compare it with the formula\n"
    "--   fpac run NAME.lua --q NAME.q.npy --k NAME.k.npy --v NAME.v.npy -o NAME.o.npy\n"
    "--   fpac prelude                 what else may stand behind `terms =`\n"
    "--\n"
    "--   k(q, k) = sum over terms  weight * product over branches  (W q) . (W k)\n"
    "--   o_t     = sum over j <= t of  k(scale q_t, k_j) v_j  / normaliser\n"
    "return head {\n"
    "  name = \"NAME\",\n"
    "  d = 64,             -- width of q and k\n"
    "  dv = 64,            -- width of v and o\n"
    "  scale = 1 / 8,      -- multiplies q: 1 / sqrt(d), as softmax has it\n"
    "  normalize = \"sum\",  -- o / (sum of the weights + eps); or \"none\", \"max\", \"one_plus_sum\"\n"
    "  -- (q.k)^2. Others: linear {}, power { degree = 3 }, taylor { degree = 2 }, or terms of your own:\n"
    "  --   { term { select(range(1, 8)), identity(), weight = 2 }, term { identity() } }\n"
    "  terms = tspow { d = 64, degree = 2, block = 8 },\n"
    "  -- gate = true,     -- a log-gate a step: fpac run --log-gate FILE\n"
    "  -- dtype = \"bf16\",  -- how q, k, v and o are stored\n"
    "}\n";

/* The files, in the order in which they are written. */
enum { FILE_Q, FILE_K, FILE_V, FILE_SPEC, FILES };

static const char *const endings[FILES] = {".q.npy", ".k.npy", ".v.npy", ".lua"};

/* What a spec takes as a head's name. */
static bool is_name(const char *text)
{
    size_t length = strlen(text);
    bool fits = length > 0 && length <= HEAD_MAX_NAME && !isdigit((unsigned char)text[0]);
    for (size_t i = 0; i < length; i++)
        fits = fits && (isalnum((unsigned char)text[i]) || text[i] == '_');
    return fits;
}

/* The starter with its head's name; malloc'ed, or NULL. */
static char *starter_named(const char *name)
{
    text_buffer buffer;
    FILE *out = text_open(&buffer);
    if (!out)
        return NULL;
    const char *from = starter;
    for (const char *at; (at = strstr(from, "NAME")); from = at + strlen("NAME"))
        fprintf(out, "%.*s%s", (int)(at - from), from, name);
    fputs(from, out);
    return text_finish(&buffer);
}

/* Numbers between -1 and 1, the same on every machine. */
static void fill_numbers(fpa_array *array, uint64_t seed)
{
    for (int64_t i = 0; i < array->count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        array->data[i] = (float)((double)(seed >> 40) / (double)(1 << 23) - 1);
    }
}

static fpa_status write_array(const char *path, uint64_t seed, fpa_error *error)
{
    fpa_array array = {
        .axes = 4, .shape = {SEQUENCES, TOKENS, HEADS, WIDTH}, .count = SEQUENCES * TOKENS * HEADS * WIDTH};
    array.data = malloc((size_t)array.count * sizeof *array.data);
    if (!array.data)
        return fail_memory(error);
    fill_numbers(&array, seed);
    fpa_status status = npy_write(path, &array, error);
    npy_free(&array);
    return status;
}

static fpa_status write_spec(const char *folder, const char *name, const char *file, fpa_error *error)
{
    char *text = starter_named(name);
    if (!text)
        return fail_memory(error);
    const fpa_bytes bytes = {text, strlen(text)};
    fpa_status status = file_write(folder, file, 0666, &bytes, 1, error);
    free(text);
    return status;
}

/* A path as a person would write it. */
static const char *plain(const char *path)
{
    return strncmp(path, "./", 2) ? path : path + 2;
}

static fpa_status refuse_to_overwrite(char *const *paths, fpa_error *error)
{
    struct stat facts;
    for (int i = 0; i < FILES; i++) {
        if (lstat(paths[i], &facts) == 0)
            return fail(error, FPA_INVALID, plain(paths[i]),
                        "is there already; take another name, or remove it");
    }
    return FPA_OK;
}

/* All of them, or none is left. */
static fpa_status write_files(const char *folder, const char *name, char *const *paths, fpa_error *error)
{
    fpa_status status = FPA_OK;
    int written = 0;
    for (; written < FILES && !status; written++) {
        if (written == FILE_SPEC)
            status = write_spec(folder, name, strrchr(paths[written], '/') + 1, error);
        else
            status = write_array(paths[written], (uint64_t)written + 1, error);
    }
    for (int i = 0; status && i < written - 1; i++) /* a write that fails leaves nothing itself */
        unlink(paths[i]);
    return status;
}

/* paths[i]: folder/name with the file's ending, malloc'ed. */
static fpa_status name_files(const char *folder, const char *name, char **paths, fpa_error *error)
{
    for (int i = 0; i < FILES; i++) {
        char file[HEAD_MAX_NAME + 16];
        snprintf(file, sizeof file, "%s%s", name, endings[i]);
        paths[i] = file_path(folder, file);
        if (!paths[i])
            return fail_memory(error);
    }
    return FPA_OK;
}

static void print_files(char *const *paths)
{
    printf("%s: a head of d = dv = %d, to edit\n", plain(paths[FILE_SPEC]), WIDTH);
    for (int i = FILE_Q; i <= FILE_V; i++)
        printf("%s: [%d, %d, %d, %d], float32\n", plain(paths[i]), SEQUENCES, TOKENS, HEADS, WIDTH);
}

static fpa_status make_files(const char *folder, const char *name, fpa_error *error)
{
    char *paths[FILES] = {NULL};
    fpa_status status = FPA_OK;
    if (!is_name(name))
        status =
            fail(error, FPA_INVALID, name,
                 "is no name of a head: letters, digits and _, at most %d, no digit first", HEAD_MAX_NAME);
    if (!status && !folder_create(folder, 0777))
        status = fail(error, FPA_IO, folder, "cannot be made: %s", strerror(errno));
    if (!status)
        status = name_files(folder, name, paths, error);
    if (!status)
        status = refuse_to_overwrite(paths, error);
    if (!status)
        status = write_files(folder, name, paths, error);
    if (!status)
        print_files(paths);
    for (int i = 0; i < FILES; i++)
        free(paths[i]);
    return status;
}

int command_new(int count, char **arguments)
{
    const char *folder = ".";
    const fpa_option table[] = {
        {"-o", OPTION_TEXT, &folder, "DIR", "write there (.); made when it is missing", 0, 0},
    };
    const fpa_syntax syntax = {
        "new NAME [-o DIR]",
        "Write NAME.lua, the spec of a head to begin with, and NAME.q.npy, NAME.k.npy and\n"
        "NAME.v.npy, arrays that fpac run applies it to. A file that is there is never overwritten.",
        OPTION_TABLE(table),
        1,
        1,
        NULL};
    fpa_texts operands;
    fpa_error error;
    int code;
    if (!options_parse(&syntax, count, arguments, &operands, &code))
        return code;
    if (make_files(folder, operands.text[0], &error))
        return report(&error);
    return finish_output(EXIT_OK);
}
