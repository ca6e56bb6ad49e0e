/* The constructors of branches: identity, select, diagonal, dense, trainable. A branch does not know its head's d
 * yet; head.c and lift.c check it against d, and name the branch's own line. */
#include "value.h"

#include <string.h>

#include "script.h"

enum { MAX_HEADS = 1024 /* matrices of one dense { heads = ... } */ };

/* Bytes of weight w beyond the struct: 0 if it shares the digits of its predecessor. */
static size_t own_bytes(const fpa_number *gram, size_t w)
{
    return w && gram[w].wide == gram[w - 1].wide ? 0 : number_bytes(gram[w]);
}

/* Copies the weights; parts beyond 64 bits are stored at `room`. */
static void place_grams(fpa_number *copies, unsigned char *room, const fpa_number *gram, size_t count)
{
    for (size_t w = 0; w < count; w++) {
        size_t bytes = own_bytes(gram, w);
        copies[w] = bytes || !gram[w].wide ? number_place(room, gram[w]) : copies[w - 1];
        room += bytes;
    }
}

/* The number of doubles after the struct: a dense branch's matrices, a diagonal's entries. */
static size_t value_count(spec_shape shape)
{
    if (shape.drawn_later)
        return 0;
    if (shape.kind == FPA_BRANCH_DENSE)
        return (size_t)(shape.heads ? shape.heads : 1) * (size_t)shape.width * (size_t)shape.columns;
    return shape.kind == FPA_BRANCH_DIAGONAL ? (size_t)shape.width : 0;
}

/* The struct is followed by the data of its kind: [width] grams, their bytes, the values, [width] rows. */
spec_branch *spec_push_branch(lua_State *L, spec_shape shape)
{
    const bool has_rows = shape.kind == FPA_BRANCH_DIAGONAL || shape.kind == FPA_BRANCH_SELECT;
    const size_t rows = has_rows ? (size_t)shape.width : 0, values = value_count(shape) * sizeof(double);
    size_t grams = shape.gram ? rows * sizeof *shape.gram : 0;
    for (size_t w = 0; shape.gram && w < rows; w++)
        grams += own_bytes(shape.gram, w);
    spec_branch *branch =
        lua_newuserdatauv(L, sizeof *branch + grams + values + rows * sizeof(int), shape.values);
    unsigned char *room = (unsigned char *)(branch + 1);

    memset(branch, 0, sizeof *branch);
    branch->kind = shape.kind;
    branch->line = script_line(L);
    branch->width = shape.width;
    branch->listed = shape.columns;
    branch->heads = shape.heads;
    branch->gram = shape.gram ? (fpa_number *)room : NULL;
    branch->data = values ? (double *)(room + grams) : NULL;
    branch->row = (int *)(room + grams + values);
    if (shape.gram)
        place_grams(branch->gram, room + rows * sizeof *shape.gram, shape.gram, rows);
    luaL_setmetatable(L, SPEC_BRANCH);
    return branch;
}

int spec_make_identity(lua_State *L)
{
    if (!lua_isnoneornil(L, 1))
        return script_refuse(L, 0, "identity() has no arguments: its width is the head's d");
    spec_push_branch(L, (spec_shape){.kind = FPA_BRANCH_IDENTITY});
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

/* Selects the index or range on top of the stack. */
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

/* select {1, 2, 3} and select(range(1, 8)); select(n, value, ...) and select("#", ...) are Lua's own. */
static int make_select(lua_State *L)
{
    selection chosen = {0};

    /* Lua's select would return nothing, and a branch would disappear without an error */
    if (lua_type(L, 1) == LUA_TNUMBER && lua_gettop(L) == 1)
        return script_refuse(L, 0, "select takes a list of indices or a range: select { %s }",
                             spec_describe(L, 1));
    const bool counts = lua_type(L, 1) == LUA_TSTRING && !strcmp(lua_tostring(L, 1), "#");
    if (lua_type(L, 1) == LUA_TNUMBER || counts) {
        lua_getglobal(L, "select"); /* Lua's own function, which is not in the sandbox's vocabulary */
        lua_insert(L, 1);
        lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
        return lua_gettop(L);
    }
    if (lua_type(L, 1) == LUA_TSTRING)
        return script_refuse(
            L, 0, "select takes a list of indices or a range, not %s: select {1, 2}, select(range(1, 8))",
            spec_describe(L, 1));
    if (luaL_testudata(L, 1, SPEC_RANGE)) {
        lua_settop(L, 1);
        select_entry(L, &chosen);
    } else {
        select_list(L, &chosen);
    }
    if (!chosen.count)
        return script_refuse(L, 0, "select chooses no index; a branch has at least one row");
    spec_branch *branch = spec_push_branch(L, (spec_shape){.kind = FPA_BRANCH_SELECT, .width = chosen.count});
    memcpy(branch->row, chosen.row, (size_t)chosen.count * sizeof *branch->row);
    return 1;
}

/* ---- diagonal ---- */

typedef enum entry_state { ENTRY_NONE, ENTRY_GOOD, ENTRY_TWICE, ENTRY_BAD } entry_state;

/* Entries by index. Lua visits a table in an arbitrary order, so mistakes are searched for only when all entries
 * are known. */
typedef struct diagonal {
    entry_state state[HEAD_MAX_WIDTH];
    fpa_number gram[HEAD_MAX_WIDTH];
    double value[HEAD_MAX_WIDTH];
    int count;
} diagonal;

/* An entry of a diagonal: its exact Gram weight, and the entry itself with its sign. */
typedef struct diagonal_entry {
    bool good;
    fpa_number gram;
    double value;
} diagonal_entry;

static void set_entry(diagonal *entries, int row, diagonal_entry entry)
{
    entry_state state = entry.good ? ENTRY_GOOD : ENTRY_BAD;
    entries->state[row] = entries->state[row] == ENTRY_NONE ? state : ENTRY_TWICE;
    entries->gram[row] = entry.gram;
    entries->value[row] = entry.value;
    entries->count++;
}

/* Reads the entry with key at -2 and value at -1. */
static void read_entry(lua_State *L, diagonal *entries)
{
    const spec_range *range = luaL_testudata(L, -2, SPEC_RANGE);
    int64_t index;
    spec_exact value = {0};
    diagonal_entry entry = {.good = spec_to_exact(L, -1, &value)};
    if (entry.good) {
        entry.gram = spec_exact_square(L, value);
        spec_to_double(L, -1, &entry.value);
    }

    if (range) {
        script_charge(L, range->last - range->first + 1);
        for (int i = range->first; i <= range->last; i++)
            set_entry(entries, i - 1, entry);
    } else if (spec_to_whole(L, -2, &index)) {
        check_index(L, "diagonal", index);
        set_entry(entries, (int)index - 1, entry);
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

/* diagonal {...}. A list is a table with keys 1, 2 ...: Lua does not distinguish { a, b } from { [1] = a, [2] = b
 * }. */
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
        entries.value[width] = entries.value[i];
        rows[width++] = i;
    }
    spec_branch *branch = spec_push_branch(
        L, (spec_shape){.kind = FPA_BRANCH_DIAGONAL, .width = width, .gram = ones ? NULL : entries.gram});
    memcpy(branch->data, entries.value, (size_t)width * sizeof *branch->data);
    memcpy(branch->row, rows, (size_t)width * sizeof *rows);
    return 1;
}

/* ---- dense ---- */

/* The source of one matrix, or of one for each head. */
typedef struct dense_source {
    const char *name; /* name of the source in messages */
    int list;         /* stack index of the list of matrices; 0: the table at 1 is the only one */
    int heads;        /* entries of the list; 0: none */
} dense_source;

static void push_matrix(lua_State *L, const dense_source *source, int head)
{
    if (source->list)
        lua_rawgeti(L, source->list, head);
    else
        lua_pushvalue(L, 1);
    spec_fill(L, -1);
    if (!lua_istable(L, -1))
        script_refuse(L, 0, "matrix %d of heads is %s, but a matrix is a list of rows", head,
                      spec_describe(L, -1));
}

/* Reads the row on top of the stack into data. */
static void read_row(lua_State *L, const char *source, int row, int columns, double *data)
{
    script_charge(L, columns);
    for (int column = 1; column <= columns; column++) {
        lua_rawgeti(L, -1, column);
        if (!spec_to_double(L, -1, &data[column - 1]))
            script_refuse(L, 0, "row %d, column %d of %s is %s, but entries are finite numbers", row, column,
                          source, spec_describe(L, -1));
        lua_pop(L, 1);
    }
}

/* Checks that all rows of the matrix on top of the stack have the same length, and returns it. */
static int check_rows(lua_State *L, const char *source, int rows)
{
    int columns = 0;

    for (int row = 1; row <= rows; row++) {
        lua_rawgeti(L, -1, row);
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
    /* one more than d: the column of constants of a lift's projection */
    if (columns < 1 || columns > HEAD_MAX_WIDTH + 1)
        script_refuse(L, 0, "%s has rows of %d numbers (allowed are 1..%d)", source, columns, HEAD_MAX_WIDTH);
    return columns;
}

/* Rows and columns of the matrix on top of the stack. */
static spec_shape measure(lua_State *L, const char *source)
{
    lua_Unsigned rows = lua_rawlen(L, -1);
    if (rows < 1 || rows > HEAD_MAX_ROWS)
        script_refuse(L, 0, "%s has %I rows (allowed are 1..%d)", source, (lua_Integer)rows, HEAD_MAX_ROWS);
    script_charge(L, (int64_t)rows);
    return (spec_shape){
        .kind = FPA_BRANCH_DENSE, .width = (int)rows, .columns = check_rows(L, source, (int)rows)};
}

/* Checks that all matrices are as large as the first one. */
static spec_shape measure_all(lua_State *L, const dense_source *source)
{
    spec_shape first = {0};
    for (int head = 1; head <= source->heads || head == 1; head++) {
        push_matrix(L, source, head);
        const spec_shape shape = measure(L, source->name);
        lua_pop(L, 1);
        if (head == 1)
            first = shape;
        if (shape.width != first.width || shape.columns != first.columns)
            script_refuse(L, 0, "matrix %d of heads is %d x %d, but matrix 1 is %d x %d", head, shape.width,
                          shape.columns, first.width, first.columns);
    }
    first.heads = source->heads;
    return first;
}

static void read_matrix(lua_State *L, const char *source, spec_branch *branch, double *data)
{
    for (int row = 1; row <= branch->width; row++) {
        lua_rawgeti(L, -1, row);
        read_row(L, source, row, branch->listed, data + (size_t)(row - 1) * (size_t)branch->listed);
        lua_pop(L, 1);
    }
}

/* Finds the list in `heads = { matrix, ... }` of the table at index 1. */
static void find_heads(lua_State *L, dense_source *source)
{
    static const char *const names[] = {"heads", NULL};
    spec_fields(L, 1, "dense", names, true);
    lua_getfield(L, 1, "heads");
    if (lua_isnil(L, -1))
        return;
    source->list = lua_gettop(L);
    if (!lua_istable(L, -1) || lua_rawlen(L, -1) < 1 || lua_rawlen(L, -1) > MAX_HEADS || lua_rawlen(L, 1))
        script_refuse(
            L, 0,
            "heads of dense must be a list of matrices, one for each key/value head, without other entries");
    source->heads = (int)lua_rawlen(L, -1);
}

/* Whether a file contained several matrices: a list of tables of tables is on top of the stack. */
static bool is_stack(lua_State *L)
{
    const int top = lua_gettop(L);
    lua_rawgeti(L, top, 1);
    const bool rows = lua_istable(L, -1) && lua_rawgeti(L, -1, 1) == LUA_TTABLE;
    lua_settop(L, top);
    return rows;
}

/* Replaces the list on top of the stack by { heads = list }. */
static void wrap_stack(lua_State *L)
{
    lua_createtable(L, 0, 1);
    lua_insert(L, -2);
    lua_setfield(L, -2, "heads");
}

/* dense { {row}, {row} }, dense("file.npy") or dense { heads = { matrix, ... } }. */
static int make_dense(lua_State *L)
{
    dense_source source = {.name = "dense"};
    spec_drawing drawing;

    lua_settop(L, 1);
    if (spec_is_drawing(L, 1, &drawing)) {
        spec_push_branch(L, (spec_shape){.kind = FPA_BRANCH_DENSE,
                                         .width = drawing.rows,
                                         .columns = drawing.d,
                                         .drawn_later = true})
            ->drawing = drawing;
        return 1;
    }
    if (lua_type(L, 1) == LUA_TSTRING) {
        source.name = lua_tostring(L, 1);
        spec_push_npy(L, source.name);
        if (is_stack(L))
            wrap_stack(L);
        lua_insert(L, 1); /* keeps the name on the stack, so that its text stays valid */
    }
    find_heads(L, &source);
    spec_branch *branch = spec_push_branch(L, measure_all(L, &source));
    const size_t size = (size_t)branch->width * (size_t)branch->listed;
    for (int head = 1; head <= source.heads || head == 1; head++) {
        push_matrix(L, &source, head);
        read_matrix(L, source.name, branch, branch->data + (size_t)(head - 1) * size);
        lua_pop(L, 1);
    }
    return 1;
}

/* ---- trainable ---- */

static int make_trainable(lua_State *L)
{
    static const char *const names[] = {"name", "rows", "diagonal", "shared", "bias", NULL};
    char name[HEAD_MAX_NAME + 1];

    spec_fields(L, 1, "trainable", names, false);
    spec_field_name(L, 1, "trainable", name);
    const bool is_diagonal = spec_field_flag(L, 1, "trainable", "diagonal", false);
    const bool bias = spec_field_flag(L, 1, "trainable", "bias", false);
    int rows = (int)spec_field_whole(L, 1, "trainable", "rows", 1, HEAD_MAX_ROWS, 0);
    if (is_diagonal && (rows || bias))
        return script_refuse(L, 0, "trainable '%s' is a diagonal: it has d entries, so leave out %s", name,
                             rows ? "rows" : "bias");
    spec_branch *branch = spec_push_branch(
        L, (spec_shape){.kind = is_diagonal ? FPA_BRANCH_TRAINABLE_DIAGONAL : FPA_BRANCH_TRAINABLE,
                        .width = rows});
    memcpy(branch->name, name, sizeof name);
    branch->shared = spec_field_flag(L, 1, "trainable", "shared", false);
    branch->bias = bias;
    return 1;
}

const luaL_Reg spec_branch_functions[] = {{"identity", spec_make_identity}, {"select", make_select},
                                          {"diagonal", make_diagonal},      {"dense", make_dense},
                                          {"trainable", make_trainable},    {NULL, NULL}};
