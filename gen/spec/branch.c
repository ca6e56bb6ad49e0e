/* The branches: identity, select, diagonal, dense, trainable. A branch does not know its head's
 * d yet; spec_head.c checks it against d and names the branch's own line. */
#include "value.h"

#include <string.h>

#include "script.h"

/* Neighbours that are one number share its bytes. */
static size_t own_bytes(const fpa_number *gram, size_t w)
{
    return w && gram[w].wide == gram[w - 1].wide ? 0 : number_bytes(gram[w]);
}

/* Copies of the weights, and what they need beyond 64 bits at room. */
static void place_grams(fpa_number *copies, unsigned char *room, const fpa_number *gram, size_t count)
{
    for (size_t w = 0; w < count; w++) {
        size_t bytes = own_bytes(gram, w);
        copies[w] = bytes || !gram[w].wide ? number_place(room, gram[w]) : copies[w - 1];
        room += bytes;
    }
}

/* The struct is followed by what its kind needs: [width] grams, their bytes and rows, or
 * [width][columns] data. */
spec_branch *spec_push_branch(lua_State *L, fpa_branch_kind kind, int width, int columns,
                              const fpa_number *gram)
{
    size_t listed = kind == FPA_BRANCH_DIAGONAL || kind == FPA_BRANCH_SELECT ? (size_t)width : 0;
    size_t values = kind == FPA_BRANCH_DENSE ? (size_t)width * (size_t)columns : 0;
    size_t grams = gram ? listed * sizeof *gram : 0, bytes = 0;
    for (size_t w = 0; gram && w < listed; w++)
        bytes += own_bytes(gram, w);
    size_t size = grams + bytes + values * sizeof(double) + listed * sizeof(int);
    spec_branch *branch = lua_newuserdatauv(L, sizeof *branch + size, 0);
    unsigned char *room = (unsigned char *)(branch + 1);

    memset(branch, 0, sizeof *branch);
    branch->kind = kind;
    branch->line = script_line(L);
    branch->width = width;
    branch->listed = columns;
    branch->gram = gram ? (fpa_number *)room : NULL;
    branch->data = values ? (double *)room : NULL;
    branch->row = (int *)(room + grams + bytes);
    if (gram)
        place_grams(branch->gram, room + grams, gram, listed);
    luaL_setmetatable(L, SPEC_BRANCH);
    return branch;
}

static int make_identity(lua_State *L)
{
    if (!lua_isnoneornil(L, 1))
        return script_refuse(L, 0, "identity() takes nothing: it is as wide as the head's d");
    spec_push_branch(L, FPA_BRANCH_IDENTITY, 0, 0, NULL);
    return 1;
}

/* ---- select ---- */

/* Indices collected in the order written, each at most once. */
typedef struct selection {
    int count;
    int row[HEAD_MAX_WIDTH];
    bool seen[HEAD_MAX_WIDTH];
} selection;

static void check_index(lua_State *L, const char *what, int64_t index)
{
    if (index < 1 || index > HEAD_MAX_WIDTH)
        script_refuse(L, 0, "%s names index %I, but indices run from 1 to d, at most %d", what,
                      (lua_Integer)index, HEAD_MAX_WIDTH);
}

static void select_index(lua_State *L, selection *chosen, int64_t index)
{
    check_index(L, "select", index);
    if (chosen->seen[index - 1])
        script_refuse(L, 0, "select names index %I twice, but each index may occur once", (lua_Integer)index);
    chosen->seen[index - 1] = true;
    chosen->row[chosen->count++] = (int)index - 1;
}

/* An index or a range, at the top of the stack. */
static void select_entry(lua_State *L, selection *chosen)
{
    const spec_range *range = luaL_testudata(L, -1, SPEC_RANGE);
    int64_t index;

    if (range)
        for (int i = range->first; i <= range->last; i++)
            select_index(L, chosen, i);
    else if (spec_to_whole(L, -1, &index))
        select_index(L, chosen, index);
    else
        script_refuse(L, 0, "select takes indices and ranges, not %s", spec_describe(L, -1));
}

static void select_list(lua_State *L, selection *chosen)
{
    static const char *const no_fields[] = {NULL};

    spec_fields(L, 1, "select", no_fields, true);
    for (lua_Integer i = 1; i <= (lua_Integer)lua_rawlen(L, 1); i++) {
        lua_rawgeti(L, 1, i);
        select_entry(L, chosen);
        lua_pop(L, 1);
    }
}

/* select {1, 2, 3} and select(range(1, 8)); select(n, ...) and select("#", ...) are Lua's own. */
static int make_select(lua_State *L)
{
    selection chosen = {0};

    if (lua_type(L, 1) == LUA_TNUMBER || lua_type(L, 1) == LUA_TSTRING) {
        lua_getglobal(L, "select"); /* of Lua's globals, which the sandbox does not show */
        lua_insert(L, 1);
        lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
        return lua_gettop(L);
    }
    if (luaL_testudata(L, 1, SPEC_RANGE)) {
        lua_settop(L, 1);
        select_entry(L, &chosen);
    } else {
        select_list(L, &chosen);
    }
    if (!chosen.count)
        return script_refuse(L, 0, "select chooses no index; a branch has at least one row");
    spec_branch *branch = spec_push_branch(L, FPA_BRANCH_SELECT, chosen.count, 0, NULL);
    memcpy(branch->row, chosen.row, (size_t)chosen.count * sizeof *branch->row);
    return 1;
}

/* ---- diagonal ---- */

typedef enum entry_state { ENTRY_NONE, ENTRY_GOOD, ENTRY_TWICE, ENTRY_BAD } entry_state;

/* Entries by index: the order in which Lua visits a table is not the order written, so mistakes
 * are looked for only when all entries are in. */
typedef struct diagonal {
    entry_state state[HEAD_MAX_WIDTH];
    fpa_number gram[HEAD_MAX_WIDTH];
    int count;
} diagonal;

static void set_entry(diagonal *entries, int row, bool good, fpa_number gram)
{
    entry_state state = good ? ENTRY_GOOD : ENTRY_BAD;
    entries->state[row] = entries->state[row] == ENTRY_NONE ? state : ENTRY_TWICE;
    entries->gram[row] = gram;
    entries->count++;
}

/* Key at -2, value at -1. */
static void read_entry(lua_State *L, diagonal *entries)
{
    const spec_range *range = luaL_testudata(L, -2, SPEC_RANGE);
    int64_t index;
    spec_exact value = {0};
    bool good = spec_to_exact(L, -1, &value);
    fpa_number gram = good ? spec_exact_square(L, value) : number_int(0);

    if (range) {
        script_charge(L, range->last - range->first + 1);
        for (int i = range->first; i <= range->last; i++)
            set_entry(entries, i - 1, good, gram);
    } else if (spec_to_whole(L, -2, &index)) {
        check_index(L, "diagonal", index);
        set_entry(entries, (int)index - 1, good, gram);
    } else {
        script_refuse(L, 0, "diagonal takes [index or range] = value, or a list of d values, not the key %s",
                      spec_describe(L, -2));
    }
}

static void check_entries(lua_State *L, const diagonal *entries)
{
    for (int i = 0; i < HEAD_MAX_WIDTH; i++) {
        if (entries->state[i] == ENTRY_TWICE)
            script_refuse(L, 0, "diagonal gives index %d twice: its keys overlap", i + 1);
        if (entries->state[i] == ENTRY_BAD)
            script_refuse(L, 0, "entry %d of diagonal is not a finite number", i + 1);
    }
    if (!entries->count)
        script_refuse(L, 0, "diagonal has no entry; a branch has at least one row");
}

/* A list is a table that names 1, 2 ...: Lua does not tell { a, b } from { [1] = a, [2] = b }. */
static int make_diagonal(lua_State *L)
{
    diagonal entries = {0};

    arena_free(spec_numbers(L));
    if (!lua_istable(L, 1))
        return script_refuse(L, 0, "diagonal takes one table, diagonal { [range(1, 8)] = 1 }, not %s",
                             spec_describe(L, 1));
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1))
        read_entry(L, &entries);
    check_entries(L, &entries);
    int rows[HEAD_MAX_WIDTH], width = 0;
    bool ones = true;
    for (int i = 0; i < HEAD_MAX_WIDTH; i++) {
        if (entries.state[i] == ENTRY_NONE)
            continue;
        ones = ones && number_is_one(entries.gram[i]);
        entries.gram[width] = entries.gram[i];
        rows[width++] = i;
    }
    spec_branch *branch = spec_push_branch(L, FPA_BRANCH_DIAGONAL, width, 0, ones ? NULL : entries.gram);
    memcpy(branch->row, rows, (size_t)width * sizeof *rows);
    return 1;
}

/* ---- dense ---- */

/* Row `row` is on top of the stack. source names the matrix in messages. */
static void read_row(lua_State *L, spec_branch *branch, const char *source, int row)
{
    script_charge(L, branch->listed);
    for (int column = 1; column <= branch->listed; column++) {
        double *entry = &branch->data[(size_t)(row - 1) * (size_t)branch->listed + (size_t)column - 1];
        lua_rawgeti(L, -1, column);
        if (!spec_to_double(L, -1, entry))
            script_refuse(L, 0, "row %d, column %d of %s is %s, but entries are finite numbers", row, column,
                          source, spec_describe(L, -1));
        lua_pop(L, 1);
    }
}

/* The length of every row of the table at index 1. */
static int check_rows(lua_State *L, const char *source, int rows)
{
    int columns = 0;

    for (int row = 1; row <= rows; row++) {
        lua_rawgeti(L, 1, row);
        if (!lua_istable(L, -1))
            script_refuse(L, 0, "row %d of %s is %s, but a row is a list: dense { {1, 0, 0} } has one row",
                          row, source, spec_describe(L, -1));
        int length = (int)lua_rawlen(L, -1);
        lua_pop(L, 1);
        if (row == 1)
            columns = length;
        if (length != columns)
            script_refuse(L, 0, "row %d of %s has %d numbers, but row 1 has %d", row, source, length,
                          columns);
    }
    if (columns < 1 || columns > HEAD_MAX_WIDTH)
        script_refuse(L, 0, "%s has rows of %d numbers (allowed are 1..%d)", source, columns, HEAD_MAX_WIDTH);
    return columns;
}

/* dense { {row}, {row} } or dense("file.npy"). */
static int make_dense(lua_State *L)
{
    static const char *const no_fields[] = {NULL};
    const char *source = "dense";

    lua_settop(L, 1);
    if (lua_type(L, 1) == LUA_TSTRING) {
        source = lua_tostring(L, 1);
        spec_push_npy(L, source);
        lua_insert(L, 1); /* the name stays above it, alive */
    }
    spec_fields(L, 1, "dense", no_fields, true);
    lua_Unsigned rows = lua_rawlen(L, 1);
    if (rows < 1 || rows > HEAD_MAX_ROWS)
        return script_refuse(L, 0, "%s has %I rows (allowed are 1..%d)", source, (lua_Integer)rows,
                             HEAD_MAX_ROWS);
    script_charge(L, (int64_t)rows);
    spec_branch *branch =
        spec_push_branch(L, FPA_BRANCH_DENSE, (int)rows, check_rows(L, source, (int)rows), NULL);
    for (int row = 1; row <= branch->width; row++) {
        lua_rawgeti(L, 1, row);
        read_row(L, branch, source, row);
        lua_pop(L, 1);
    }
    return 1;
}

/* ---- trainable ---- */

static int make_trainable(lua_State *L)
{
    static const char *const names[] = {"name", "rows", "diagonal", "shared", NULL};
    char name[HEAD_MAX_NAME + 1];

    spec_fields(L, 1, "trainable", names, false);
    spec_field_name(L, 1, "trainable", name);
    bool is_diagonal = spec_field_flag(L, 1, "trainable", "diagonal", false);
    int rows =
        (int)spec_field_whole(L, 1, "trainable", "rows", 1, HEAD_MAX_ROWS, is_diagonal ? 0 : SPEC_REQUIRED);
    bool shared = spec_field_flag(L, 1, "trainable", "shared", false);
    if (is_diagonal && rows)
        return script_refuse(L, 0, "trainable '%s' is a diagonal: it has d entries, so leave out rows", name);
    spec_branch *branch = spec_push_branch(
        L, is_diagonal ? FPA_BRANCH_TRAINABLE_DIAGONAL : FPA_BRANCH_TRAINABLE, rows, 0, NULL);
    memcpy(branch->name, name, sizeof name);
    branch->shared = shared;
    return 1;
}

const luaL_Reg spec_branch_functions[] = {{"identity", make_identity},   {"select", make_select},
                                          {"diagonal", make_diagonal},   {"dense", make_dense},
                                          {"trainable", make_trainable}, {NULL, NULL}};
