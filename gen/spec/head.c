/* head {...}: makes an fpa_head of a spec's values. Since d is known here, widths and indices are checked here;
 * messages name the line of the branch. */
#include "builder.h"

#include <stdlib.h>
#include <string.h>

#include "script.h"

static const char *const head_fields[] = {
    "name", "d",    "dv",    "terms",       "block",    "chunk",     "causal",   "scale",  "normalize",
    "eps",  "gate", "dtype", "state_dtype", "products", "positions", "key_mask", "window", NULL};
static const char *const list_fields[] = {"d", "block", "note", NULL};
static const char *const normalize_words[] = {"none", "sum", "max", "one_plus_sum", NULL};
static const char *const dtype_words[] = {"f32", "bf16", "f16", NULL};
static const char *const products_words[] = {"plain", "tf32x3", NULL};

enum {
    MAX_NESTING = 32,
    MAX_NOTES = 64,
    MAX_CHUNK = 65536,
    BLOCK_UNKNOWN = -1,     /* no list of terms has a block so far */
    BLOCK_MIXED = 0,        /* lists of terms have different blocks */
    ENTRY_WORK = 16,        /* an entry of a list of terms counts as so many instructions */
    HEAD_BYTES = 20 * 1024, /* bytes of a head without terms: the struct and the first block of its arena */
};

/* ---- the flat list of terms ---- */

static void flatten(builder *b, int index, int depth);

static int first_line(builder *b, int from)
{
    const spec_term *term;
    if (from >= b->count)
        return 0;
    lua_rawgeti(b->L, b->terms, from + 1);
    term = lua_touserdata(b->L, -1);
    lua_pop(b->L, 1);
    return term->line;
}

/* Reads note = "..." of a list of terms. */
static void read_note(builder *b, int index)
{
    fpa_head *head = b->head;
    if (lua_getfield(b->L, index, "note") == LUA_TNIL) {
        lua_pop(b->L, 1);
        return;
    }
    if (lua_type(b->L, -1) != LUA_TSTRING)
        script_refuse(b->L, 0, "note of terms is %s, but a text is needed", spec_describe(b->L, -1));
    if (head->note_count == MAX_NOTES)
        script_refuse(b->L, 0, "the terms of the head '%s' have more than %d notes", head->name, MAX_NOTES);
    if (!head->notes)
        head->notes = builder_take(b, MAX_NOTES, sizeof *head->notes);
    const size_t size = lua_rawlen(b->L, -1) + 1;
    head->notes[head->note_count++] = memcpy(builder_take(b, size, 1), lua_tostring(b->L, -1), size);
    lua_pop(b->L, 1);
}

/* Reads the d and block that a list of terms has, as made by tspow {...}. */
static void read_hints(builder *b, int index, int from)
{
    int d = (int)spec_field_whole(b->L, index, "terms", "d", 1, HEAD_MAX_WIDTH, 0);
    int block = (int)spec_field_whole(b->L, index, "terms", "block", 1, HEAD_MAX_WIDTH, 0);

    if (d && d != b->head->d)
        script_refuse(b->L, first_line(b, from), "terms for d = %d are used in the head '%s' of d = %d", d,
                      b->head->name, b->head->d);
    if (block)
        b->block = b->block == BLOCK_UNKNOWN || b->block == block ? block : BLOCK_MIXED;
}

static void flatten_list(builder *b, int index, int depth)
{
    int from = b->count;

    if (depth > MAX_NESTING)
        script_refuse(b->L, 0, "lists of terms are nested deeper than %d: does a list contain itself?",
                      MAX_NESTING);
    luaL_checkstack(b->L, 8, "term lists are nested too deeply");
    script_charge(b->L, ENTRY_WORK * (int64_t)lua_rawlen(b->L, index));
    spec_fields(b->L, index, "terms", list_fields, true);
    for (lua_Integer i = 1; i <= (lua_Integer)lua_rawlen(b->L, index); i++) {
        lua_rawgeti(b->L, index, i);
        flatten(b, lua_gettop(b->L), depth + 1);
        lua_pop(b->L, 1);
    }
    read_hints(b, index, from);
    read_note(b, index);
}

static void flatten(builder *b, int index, int depth)
{
    if (!luaL_testudata(b->L, index, SPEC_TERM)) {
        if (!lua_istable(b->L, index))
            script_refuse(b->L, 0, "terms contains %s, but it must be a list of term {...} and of such lists",
                          spec_describe(b->L, index));
        flatten_list(b, index, depth);
        return;
    }
    if (b->count == HEAD_MAX_TERMS)
        script_refuse(b->L, 0, "the head '%s' has more than %d terms", b->head->name, HEAD_MAX_TERMS);
    lua_pushvalue(b->L, index);
    lua_rawseti(b->L, b->terms, ++b->count);
}

/* ---- branches ---- */

static void check_columns(builder *b, const spec_branch *branch, place at)
{
    if (branch->listed && branch->listed != b->head->d)
        script_refuse(b->L, branch->line, "branch %d of term %d lists %d values a row, but d = %d", at.l,
                      at.t, branch->listed, b->head->d);
}

/* Sets the branch's rows to 1 .. width of its source. */
static void take_all_rows(builder *b, fpa_branch *out, int width)
{
    out->width = width;
    out->row = builder_take(b, (size_t)width, sizeof *out->row);
    for (int w = 0; w < width; w++)
        out->row[w] = w;
}

static void take_listed_rows(builder *b, const spec_branch *branch, fpa_branch *out)
{
    size_t width = (size_t)branch->width;

    out->width = branch->width;
    out->row = builder_take(b, width, sizeof *out->row);
    memcpy(out->row, branch->row, width * sizeof *out->row);
    builder_copy_grams(b, branch, out);
}

static void build_plain(builder *b, const spec_branch *branch, fpa_branch *out, place at)
{
    check_columns(b, branch, at);
    out->kind = branch->kind;
    out->source = FPA_INPUT;
    switch (branch->kind) {
    case FPA_BRANCH_IDENTITY:
        take_all_rows(b, out, b->head->d);
        break;
    case FPA_BRANCH_DENSE:
        out->source = builder_constant_later(b, branch);
        take_all_rows(b, out, branch->width);
        break;
    case FPA_BRANCH_TRAINABLE:
        out->source = builder_trainable(b, branch, branch->width, b->width);
        take_all_rows(b, out, branch->width);
        break;
    case FPA_BRANCH_TRAINABLE_DIAGONAL:
        out->source = builder_trainable(b, branch, b->width, b->width);
        take_all_rows(b, out, b->width);
        break;
    default:
        builder_check_indices(b, branch, at);
        take_listed_rows(b, branch, out);
    }
}

/* Makes *out of the branch on top of the stack. */
static void build_branch(builder *b, fpa_branch *out, place at)
{
    if (b->head->lift)
        builder_lift_branch(b, lua_gettop(b->L), out);
    else
        build_plain(b, lua_touserdata(b->L, -1), out, at);
}

static void build_branches(builder *b, const spec_term *term, fpa_term *out, int t)
{
    out->branch_count = term->branch_count;
    if (builder_lift_constant(b, out))
        return;
    out->branches = builder_take(b, (size_t)term->branch_count, sizeof *out->branches);
    for (int l = 0; l < term->branch_count; l++) {
        lua_getiuservalue(b->L, -1, l + 1);
        build_branch(b, &out->branches[l], (place){l + 1, t + 1});
        lua_pop(b->L, 1);
    }
}

static void build_terms(builder *b)
{
    b->head->terms = builder_take(b, (size_t)b->count, sizeof *b->head->terms);
    b->head->term_count = b->count;
    for (int t = 0; t < b->count; t++) {
        lua_rawgeti(b->L, b->terms, t + 1);
        const spec_term *term = lua_touserdata(b->L, -1);
        fpa_term *out = &b->head->terms[t];
        out->weight = number_copy(&b->head->memory, term->weight);
        if (number_status(out->weight))
            script_no_memory(b->L);
        build_branches(b, term, out, t);
        lua_pop(b->L, 1);
    }
}

/* ---- the other fields ---- */

static void read_name(builder *b)
{
    char name[HEAD_MAX_NAME + 1];
    spec_field_name(b->L, 1, "head", name);
    b->head->name = builder_take(b, strlen(name) + 1, 1);
    memcpy(b->head->name, name, strlen(name) + 1);
}

static void set_origin(builder *b, int line)
{
    const int top = lua_gettop(b->L);
    b->head->origin = arena_format(&b->head->memory, "%s", spec_origin(b->L, line));
    lua_settop(b->L, top);
    if (!b->head->origin)
        script_no_memory(b->L);
}

/* Whether eps is a field of head, at 1, or of the table that normalize is. */
static bool gives_eps(lua_State *L, int table)
{
    const bool given = lua_getfield(L, table, "eps") != LUA_TNIL;
    lua_pop(L, 1);
    return given;
}

/* normalize = "sum", or { "sum", eps = 1e-6 }. */
static void read_normalize(builder *b)
{
    static const char *const fields[] = {"eps", NULL};
    lua_State *L = b->L;
    fpa_head *head = b->head;
    int table = 1;
    bool given = gives_eps(L, 1);

    head->eps = spec_field_float(L, 1, "head", "eps", head->eps);
    lua_getfield(L, 1, "normalize");
    if (lua_istable(L, -1)) {
        table = lua_gettop(L);
        spec_fields(L, table, "normalize", fields, true);
        given |= gives_eps(L, table);
        head->eps = spec_field_float(L, table, "normalize", "eps", head->eps);
        lua_newtable(L); /* a table that has the word as a named field, as head {...} has it */
        if (lua_rawgeti(L, table, 1) == LUA_TNIL)
            script_refuse(L, 0, "normalize of head is a table without a kind: { \"sum\", eps = 1e-6 }");
        lua_setfield(L, -2, "normalize");
        table = lua_gettop(L);
    }
    head->normalize =
        (fpa_normalize)spec_field_word(L, table, "head", "normalize", normalize_words, FPA_NORMALIZE_NONE);
    lua_settop(L, 2);
    if (head->eps < 0)
        script_refuse(L, 0, "eps of head is %f, but it must not be negative", head->eps);
    /* eps = 0 is allowed with any normaliser */
    if (given && head->eps != 0 && head->normalize != FPA_NORMALIZE_SUM &&
        head->normalize != FPA_NORMALIZE_MAX)
        script_refuse(L, 0, "eps of head is for normalize = \"sum\" or \"max\": leave it out beside \"%s\"",
                      normalize_words[head->normalize]);
}

static void read_fields(builder *b)
{
    lua_State *L = b->L;
    fpa_head *head = b->head;

    head->d = (int)spec_field_whole(L, 1, "head", "d", 1, HEAD_MAX_WIDTH, SPEC_REQUIRED);
    b->width = head->d;
    b->positions = (int)spec_field_whole(L, 1, "head", "positions", 1, LIFT_MAX_POSITIONS, 0);
    b->key_mask = spec_field_flag(L, 1, "head", "key_mask", false);
    head->dv = (int)spec_field_whole(L, 1, "head", "dv", 1, HEAD_MAX_WIDTH, head->d);
    head->chunk = (int)spec_field_whole(L, 1, "head", "chunk", 1, MAX_CHUNK, 0);
    head->block = (int)spec_field_whole(L, 1, "head", "block", 1, HEAD_MAX_WIDTH, 0);
    head->causal = spec_field_flag(L, 1, "head", "causal", true);
    head->gate = spec_field_flag(L, 1, "head", "gate", false);
    head->scale = spec_field_double(L, 1, "head", "scale", 1);
    head->dtype = (fpa_dtype)spec_field_word(L, 1, "head", "dtype", dtype_words, FPA_F32);
    head->state_dtype = (fpa_dtype)spec_field_word(L, 1, "head", "state_dtype", dtype_words, FPA_F32);
    head->products =
        (fpa_products)spec_field_word(L, 1, "head", "products", products_words, FPA_PRODUCTS_PLAIN);
    head->window = (int)spec_field_whole(L, 1, "head", "window", 1, HEAD_MAX_WINDOW, 0);
    read_normalize(b);
    if (head->gate && !head->causal)
        script_refuse(L, 0, "gate = true needs causal = true: a gate fades what came before");
}

static void read_terms(builder *b)
{
    lua_State *L = b->L;

    lua_newtable(L);
    b->terms = lua_gettop(L);
    lua_getfield(L, 1, "terms");
    if (lua_isnil(L, -1))
        script_refuse(L, 0, "head '%s' needs terms: terms = power { degree = 2 }, or a list of term {...}",
                      b->head->name);
    flatten(b, lua_gettop(L), 0);
    lua_pop(L, 1);
    if (!b->count)
        script_refuse(L, 0, "head '%s' has no terms: its list is empty", b->head->name);
    if (!b->head->block && b->block > 0)
        b->head->block = b->block;
    builder_lift(b);
    build_terms(b);
}

static int free_head(lua_State *L)
{
    spec_head *value = lua_touserdata(L, 1);
    head_free(value->head);
    value->head = NULL;
    script_hold(L, -value->memory);
    value->memory = 0;
    return 0;
}

static int make_head(lua_State *L)
{
    fpa_error error = {0};

    lua_settop(L, 1);
    spec_fields(L, 1, "head", head_fields, false);
    spec_head *value = lua_newuserdatauv(L, sizeof *value, 0);
    *value = (spec_head){.line = script_line(L)};
    luaL_setmetatable(L, SPEC_HEAD);
    value->head = head_new();
    if (!value->head)
        return script_no_memory(L);
    builder b = {.L = L, .head = value->head, .block = BLOCK_UNKNOWN, .held = &value->memory};
    builder_hold(&b, HEAD_BYTES);
    read_name(&b);
    set_origin(&b, value->line);
    read_fields(&b);
    read_terms(&b);
    if (head_validate(value->head, &error) != FPA_OK)
        return script_raise(L, error.code, 0, "%s", error.message);
    value->drawing_count = b.undrawn_count;
    value->drawings = b.undrawn;
    lua_settop(L, 2);
    return 1;
}

const luaL_Reg spec_head_functions[] = {{"head", make_head}, {NULL, NULL}};

void spec_head_open(lua_State *L)
{
    luaL_newmetatable(L, SPEC_BRANCH);
    luaL_newmetatable(L, SPEC_TERM);
    luaL_newmetatable(L, SPEC_LAYER);
    luaL_newmetatable(L, SPEC_HEAD);
    lua_pushcfunction(L, free_head);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 4);
}

/* ---- heads that the file returns ---- */

static void check_new_name(lua_State *L, const fpa_head_list *list, const spec_head *value)
{
    script_charge(L, list->count + list->layer_count);
    for (int h = 0; h < list->count; h++)
        if (strcmp(list->heads[h]->name, value->head->name) == 0)
            script_refuse(L, value->line, "the name '%s' is used twice (the first head is at %s)",
                          value->head->name, list->heads[h]->origin);
    for (int i = 0; i < list->layer_count; i++)
        if (strcmp(list->layers[i].name, value->head->name) == 0)
            script_refuse(L, value->line, "the name '%s' is used twice (the layer is at %s)",
                          value->head->name, list->layers[i].origin);
}

static const char undrawn_key; /* its address is the registry's key of a list of heads */

/* Adds the head at index to the list of heads whose numbers spec_draw_heads will draw. */
static void keep_undrawn(lua_State *L, int index)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &undrawn_key) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &undrawn_key);
    }
    lua_pushvalue(L, index);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
}

int spec_take_head(lua_State *L, int index, fpa_head_list *list)
{
    spec_head *value = lua_touserdata(L, index);

    if (!value->head)
        return value->place;
    check_new_name(L, list, value);
    if (value->drawing_count)
        keep_undrawn(L, index);
    fpa_head **more = realloc(list->heads, ((size_t)list->count + 1) * sizeof(fpa_head *));
    if (!more)
        script_no_memory(L);
    list->heads = more;
    value->place = list->count++;
    list->heads[value->place] = value->head;
    value->head = NULL;
    return value->place;
}

void spec_draw_heads(lua_State *L, const fpa_head_list *list, int only)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &undrawn_key) != LUA_TTABLE)
        return;
    for (lua_Integer i = 1; i <= (lua_Integer)lua_rawlen(L, -1); i++) {
        lua_rawgeti(L, -1, i);
        const spec_head *value = lua_touserdata(L, -1);
        for (int m = 0; m < value->drawing_count && (only < 0 || value->place == only); m++)
            spec_draw(&value->drawings[m].drawing,
                      list->heads[value->place]->matrices[value->drawings[m].matrix].data);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}
