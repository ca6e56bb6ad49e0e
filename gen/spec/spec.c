#include "spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain_locale.h"
#include "gen/embedded.h"
#include "script.h"
#include "value.h"

enum { MAX_TEXT = 16 * 1024 * 1024 /* bytes of a spec */ };

const char *const *spec_preludes(void)
{
    static const char *const texts[] = {fpa_embedded_prelude_lua, fpa_embedded_sketches_lua, NULL};
    return texts;
}

/* ---- the text ---- */

/* The bytes of the UTF-8 character at text; 0: there is none. Overlong forms and surrogates are accepted, since
 * Lua's strings are bytes: the check only distinguishes text from other files. */
static size_t character_size(const unsigned char *text, size_t left)
{
    size_t size = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;

    if (size > left || text[0] > 0xf4 || text[0] == 0)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return size;
}

static bool is_blank(const char *text, size_t size)
{
    while (size && (*text == ' ' || *text == '\t' || *text == '\r' || *text == '\n'))
        text++, size--;
    return size == 0;
}

/* The line number of the byte text[at]. */
static int line_at(const char *text, size_t at)
{
    int line = 1;
    for (size_t i = 0; i < at; i++)
        line += text[i] == '\n';
    return line;
}

/* The line number of the last line that is not blank. */
static int last_line(const char *text, size_t size)
{
    while (size && is_blank(text + size - 1, 1))
        size--;
    return line_at(text, size);
}

static fpa_status check_text(const char *name, const char *text, size_t size, fpa_error *error)
{
    char where[256];

    snprintf(where, sizeof where, "%.240s:1", name);
    if (size > MAX_TEXT)
        return fail(error, FPA_INVALID, where, "has more than %d bytes, the limit for a spec", MAX_TEXT);
    if (is_blank(text, size))
        return fail(error, FPA_INVALID, where, "the file is empty; a spec ends with: return head {...}");
    if (text[0] == '\033')
        return fail(error, FPA_INVALID, where, "the file is compiled Lua (bytecode); a spec is Lua text");
    for (size_t at = 0, step; at < size; at += step) {
        step = character_size((const unsigned char *)text + at, size - at);
        if (step)
            continue;
        snprintf(where, sizeof where, "%.240s:%d", name, line_at(text, at));
        return fail(error, FPA_INVALID, where, "byte 0x%02x is not UTF-8 text",
                    (unsigned)(unsigned char)text[at]);
    }
    return FPA_OK;
}

static fpa_status fail_file(const char *path, const char *what, fpa_error *error)
{
    return errno == ENOMEM ? fail_memory(error) : fail(error, FPA_IO, path, "%s: %s", what, strerror(errno));
}

/* The rest of the file, malloc'ed, with a terminating NUL. */
static fpa_status read_all(FILE *file, const char *path, char **text, size_t *size, fpa_error *error)
{
    size_t capacity = 64 * 1024, used = 0;
    char *bytes = malloc(capacity);

    while (bytes) {
        used += fread(bytes + used, 1, capacity - 1 - used, file);
        if (used < capacity - 1 || used > MAX_TEXT)
            break;
        capacity *= 2;
        char *more = realloc(bytes, capacity);
        if (!more)
            free(bytes);
        bytes = more;
    }
    if (!bytes)
        return fail_memory(error);
    if (ferror(file)) {
        const bool is_folder = errno == EISDIR;
        free(bytes);
        if (is_folder)
            return fail(error, FPA_IO, path,
                        "is a folder, but a spec is a Lua file; the folder of a bundle has manifest.fpa");
        return fail_file(path, "cannot be read", error);
    }
    bytes[used] = '\0';
    *text = bytes;
    *size = used;
    return FPA_OK;
}

/* ---- loading ---- */

typedef struct load {
    const char *name, *folder, *text, *wanted;
    size_t size;
    fpa_head_list *list;
} load;

/* Defines every function that a spec may call, those of the prelude included. */
static void open_vocabulary(lua_State *L)
{
    static const luaL_Reg *const files[] = {
        spec_number_functions, spec_field_functions,   spec_branch_functions, spec_coordinates_functions,
        spec_matrix_functions, spec_drawing_functions, spec_draw_functions,   spec_term_functions,
        spec_head_functions,   spec_layer_functions};
    luaL_Reg functions[64] = {{NULL, NULL}};
    size_t count = 0;

    for (size_t f = 0; f < sizeof files / sizeof *files; f++)
        for (const luaL_Reg *function = files[f]; function->name; function++)
            functions[count++] = *function;
    spec_number_open(L);
    spec_head_open(L);
    spec_coordinates_open(L);
    script_vocabulary(L, functions, spec_preludes());
}

/* The index of the head of that name; -1: there is none, or `wanted` is NULL. */
static int place_of(const fpa_head_list *list, const char *wanted)
{
    for (int h = 0; wanted && h < list->count; h++)
        if (strcmp(list->heads[h]->name, wanted) == 0)
            return h;
    return -1;
}

static int load_heads(lua_State *L)
{
    const load *request = lua_touserdata(L, 1);

    spec_set_file(L, request->name);
    if (request->folder)
        spec_set_folder(L, request->folder);
    open_vocabulary(L);
    int count = script_run(L, request->text, request->size);
    spec_take_heads(L, count, last_line(request->text, request->size), request->list);
    const int only = place_of(request->list, request->wanted);
    spec_draw_heads(L, request->list, only);
    if (only >= 0)
        head_list_keep(request->list, only);
    return 0;
}

fpa_status spec_load_text_head(const char *name, const char *folder, const char *text, size_t size,
                               const char *wanted, fpa_head_list *list, fpa_error *error)
{
    load request = {
        .name = name, .folder = folder, .text = text, .wanted = wanted, .size = size, .list = list};
    fpa_script *script = NULL;
    const locale_t before = locale_plain();

    *list = (fpa_head_list){0};
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        request.text += 3; /* a byte order mark, which some editors write */
        request.size -= 3;
    }
    fpa_status status = check_text(name, text, size, error);
    if (status == FPA_OK)
        status = script_new(name, &script, error);
    if (status == FPA_OK)
        status = script_protect(script, load_heads, &request, error);
    script_free(script);
    locale_restore(before);
    if (status != FPA_OK)
        head_list_free(list);
    return status;
}

fpa_status spec_load_text(const char *name, const char *folder, const char *text, size_t size,
                          fpa_head_list *list, fpa_error *error)
{
    return spec_load_text_head(name, folder, text, size, NULL, list, error);
}

/* The folder of a path, "." if it has none; malloc'ed. NULL: no memory. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

fpa_status spec_load_head(const char *path, const char *wanted, fpa_head_list *list, fpa_error *error)
{
    char *text = NULL, *folder = NULL;
    size_t size = 0;
    fpa_status status;
    FILE *file = fopen(path, "rb");

    *list = (fpa_head_list){0};
    if (!file)
        return fail_file(path, "cannot be opened", error);
    status = read_all(file, path, &text, &size, error);
    if (status != FPA_OK)
        goto out;
    folder = folder_of(path);
    status = folder ? spec_load_text_head(path, folder, text, size, wanted, list, error) : fail_memory(error);
out:
    fclose(file);
    free(folder);
    free(text);
    return status;
}

fpa_status spec_load(const char *path, fpa_head_list *list, fpa_error *error)
{
    return spec_load_head(path, NULL, list, error);
}
