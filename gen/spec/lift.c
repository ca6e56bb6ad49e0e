/* Makes the lift of a head whose branches do not use q and k themselves (head/lift.h). coordinates {...} become
 * its parts, equal ones one part; coordinates of q and k that other branches select pass through unchanged, and
 * projections of other branches are parts of their own. */
#include "builder.h"

#include <string.h>

#include "script.h"

/* ---- visiting the branches of all terms ---- */

typedef void visitor(builder *b, int branch, place at);

/* The visitor's `branch` is a stack index. */
static void each_branch(builder *b, visitor *visit)
{
    for (int t = 0; t < b->count; t++) {
        lua_rawgeti(b->L, b->terms, t + 1);
        const spec_term *term = lua_touserdata(b->L, -1);
        script_charge(b->L, term->branch_count);
        for (int l = 0; l < term->branch_count; l++) {
            lua_getiuservalue(b->L, -1, l + 1);
            visit(b, lua_gettop(b->L), (place){l + 1, t + 1});
            lua_pop(b->L, 1);
        }
        lua_pop(b->L, 1);
    }
}

static bool has_constant_term(builder *b)
{
    bool found = false;
    for (int t = 0; t < b->count && !found; t++) {
        lua_rawgeti(b->L, b->terms, t + 1);
        found = ((const spec_term *)lua_touserdata(b->L, -1))->branch_count == 0;
        lua_pop(b->L, 1);
    }
    return found;
}

/* ---- parts ---- */

static bool equal_factors(const fpa_lift_part *a, const fpa_lift_part *b)
{
    for (int f = 0; f < a->factor_count; f++) {
        const fpa_lift_factor *left = &a->factors[f], *right = &b->factors[f];
        if (left->source != right->source || left->imaginary != right->imaginary ||
            (left->source == FPA_INPUT &&
             memcmp(left->row, right->row, (size_t)a->rows * sizeof *left->row) != 0))
            return false;
    }
    return true;
}

static bool equal_parts(const fpa_lift_part *a, const fpa_lift_part *b)
{
    return a->rows == b->rows && a->factor_count == b->factor_count && a->is_complex == b->is_complex &&
           a->inner == b->inner && a->square == b->square && a->shift == b->shift && a->map[0] == b->map[0] &&
           a->map[1] == b->map[1] && a->gain[0] == b->gain[0] && a->gain[1] == b->gain[1] &&
           a->angle == b->angle && a->phase == b->phase && a->amplitude == b->amplitude &&
           equal_factors(a, b);
}

/* The index of an equal part, if there is one; else the part is added. */
static int add_part(builder *b, fpa_lift_part part)
{
    fpa_lift *lift = b->head->lift;
    for (int i = 0; i < lift->part_count; i++)
        if (equal_parts(&lift->parts[i], &part))
            return i;
    if (lift->part_count == LIFT_MAX_PARTS)
        script_refuse(
            b->L, 0,
            "the head '%s' has more than %d different coordinates {...}, dense and trainable branches",
            b->head->name, LIFT_MAX_PARTS);
    lift->parts[lift->part_count] = part;
    return lift->part_count++;
}

static fpa_lift_part plain_part(int rows)
{
    return (fpa_lift_part){.rows = rows,
                           .factor_count = 1,
                           .inner = 1,
                           .gain = {1, 1},
                           .angle = FPA_NO_MATRIX,
                           .phase = FPA_NO_MATRIX,
                           .amplitude = FPA_NO_MATRIX};
}

/* ---- factors ---- */

/* A place for messages: a factor of the branch `at`. */
typedef struct factor_place {
    int factor;
    place at;
} factor_place;

static int factor_rows(const builder *b, const spec_branch *factor)
{
    const bool full = factor->kind == FPA_BRANCH_IDENTITY || factor->kind == FPA_BRANCH_TRAINABLE_DIAGONAL;
    return full ? b->width : factor->width;
}

static void check_listed(builder *b, const spec_branch *factor, factor_place at)
{
    if (factor->listed && factor->listed != b->width && factor->listed != b->width + 1)
        script_refuse(
            b->L, factor->line,
            "factor %d of branch %d of term %d lists %d values a row, but d = %d (or %d: the last one is "
            "added)",
            at.factor, at.at.l, at.at.t, factor->listed, b->width, b->width + 1);
}

static bool is_ones(const spec_branch *diagonal)
{
    for (int w = 0; w < diagonal->width; w++)
        if (diagonal->data[w] != 1)
            return false;
    return true;
}

static void take_rows(builder *b, const spec_branch *factor, int rows, fpa_lift_factor *out)
{
    out->source = FPA_INPUT;
    out->row = builder_take(b, (size_t)rows, sizeof *out->row);
    for (int r = 0; r < rows; r++)
        out->row[r] = factor->kind == FPA_BRANCH_IDENTITY ? r : factor->row[r];
}

static void fill_factor(builder *b, const spec_branch *factor, fpa_lift_factor *out, factor_place at)
{
    check_listed(b, factor, at);
    *out = (fpa_lift_factor){.imaginary = FPA_NO_MATRIX};
    switch (factor->kind) {
    case FPA_BRANCH_DENSE:
        out->source = builder_constant(b, factor);
        break;
    case FPA_BRANCH_TRAINABLE:
        out->source = builder_trainable(b, factor, factor->width, b->width + factor->bias);
        break;
    case FPA_BRANCH_TRAINABLE_DIAGONAL:
        out->source = builder_trainable(b, factor, b->width, b->width);
        break;
    default:
        builder_check_indices(b, factor, at.at);
        if (factor->kind == FPA_BRANCH_DIAGONAL && !is_ones(factor))
            out->source = builder_constant(b, factor);
        else
            take_rows(b, factor, factor_rows(b, factor), out);
    }
}

/* User value `at` of the branch at index, which keeps it alive. */
static const spec_branch *value_of(builder *b, int branch, int at)
{
    lua_getiuservalue(b->L, branch, at);
    const spec_branch *value = lua_touserdata(b->L, -1);
    lua_pop(b->L, 1);
    return value;
}

static void check_rows(builder *b, const spec_branch *factor, int rows, factor_place at)
{
    if (factor_rows(b, factor) != rows)
        script_refuse(b->L, factor->line,
                      "factor %d of branch %d of term %d has %d rows, but factor 1 has %d", at.factor,
                      at.at.l, at.at.t, factor_rows(b, factor), rows);
}

static void fill_factors(builder *b, int branch, fpa_lift_part *part, place at)
{
    part->factors = builder_take(b, (size_t)part->factor_count, sizeof *part->factors);
    for (int f = 0; f < part->factor_count; f++) {
        const spec_branch *factor = value_of(b, branch, f + 1);
        const factor_place here = {f + 1, at};
        check_rows(b, factor, part->rows, here);
        fill_factor(b, factor, &part->factors[f], here);
        if (part->is_complex)
            part->factors[f].imaginary = builder_constant(b, value_of(b, branch, part->factor_count + f + 1));
    }
}

/* ---- functions of the position ---- */

/* Adds a weight of the position as a constant matrix, rounded to float32: positions may be large, so angles have
 * to be exactly the numbers that kernels use. */
static int constant_weight(builder *b, const spec_branch *weight, const char *what)
{
    return strcmp(what, "angle") == 0 ? builder_constant_rounded(b, weight) : builder_constant(b, weight);
}

static int position_matrix(builder *b, const spec_branch *weight, const char *what, int rows, int columns,
                           place at)
{
    if (!weight)
        return FPA_NO_MATRIX;
    const bool dense = weight->kind == FPA_BRANCH_DENSE;
    if ((weight->width && weight->width != rows) || (dense && weight->listed != columns))
        script_refuse(b->L, weight->line,
                      "the %s of branch %d of term %d is %d x %d, but %d x %d is needed: rows of "
                      "the coordinates x %s",
                      what, at.l, at.t, weight->width, dense ? weight->listed : columns, rows, columns,
                      columns == 1 ? "1" : "positions");
    return dense ? constant_weight(b, weight, what) : builder_trainable(b, weight, rows, columns);
}

static void fill_position(builder *b, int branch, fpa_lift_part *part, place at)
{
    const spec_branch *from = lua_touserdata(b->L, branch);
    const int first = part->factor_count * (part->is_complex ? 2 : 1) + 1;
    const spec_branch *angle = value_of(b, branch, first + SPEC_ANGLE);
    if (angle && !b->positions)
        script_refuse(
            b->L, from->line,
            "branch %d of term %d has an angle, but the head '%s' has no positions: head { positions = 1 }",
            at.l, at.t, b->head->name);
    part->angle = position_matrix(b, angle, "angle", part->rows, b->positions, at);
    part->phase = position_matrix(b, value_of(b, branch, first + SPEC_PHASE), "phase", part->rows, 1, at);
    part->amplitude =
        position_matrix(b, value_of(b, branch, first + SPEC_AMPLITUDE), "amplitude", part->rows, 1, at);
}

/* ---- the parts of branches ---- */

static int coordinates_part(builder *b, int branch, place at)
{
    const spec_branch *from = lua_touserdata(b->L, branch);
    fpa_lift_part part = plain_part(factor_rows(b, value_of(b, branch, 1)));
    part.factor_count = from->part.factor_count;
    part.is_complex = from->part.is_complex;
    part.inner = from->part.inner;
    part.square = from->part.square;
    part.shift = from->part.shift;
    memcpy(part.map, from->part.map, sizeof part.map);
    memcpy(part.gain, from->part.gain, sizeof part.gain);
    fill_factors(b, branch, &part, at);
    fill_position(b, branch, &part, at);
    return add_part(b, part);
}

/* The part for a projection that is a branch of a term itself. */
static int projection_part(builder *b, const spec_branch *from, place at)
{
    fpa_lift_part part = plain_part(factor_rows(b, from));
    if (from->listed && from->listed != b->width)
        script_refuse(b->L, from->line, "branch %d of term %d lists %d values a row, but d = %d", at.l, at.t,
                      from->listed, b->width);
    part.factors = builder_take(b, 1, sizeof *part.factors);
    fill_factor(b, from, part.factors, (factor_place){1, at});
    return add_part(b, part);
}

/* The part that was made from the branch at this index, by the table `known`; -1: none. */
static int known_part(builder *b, int branch)
{
    lua_pushvalue(b->L, branch);
    lua_rawget(b->L, b->lift.known);
    const int part = lua_isnil(b->L, -1) ? -1 : (int)lua_tointeger(b->L, -1);
    lua_pop(b->L, 1);
    return part;
}

static void learn_part(builder *b, int branch, int part)
{
    lua_pushvalue(b->L, branch);
    lua_pushinteger(b->L, part);
    lua_rawset(b->L, b->lift.known);
}

static void collect(builder *b, int branch, place at)
{
    const spec_branch *from = lua_touserdata(b->L, branch);
    if (from->kind == FPA_BRANCH_IDENTITY) {
        memset(b->lift.used, true, (size_t)b->width);
    } else if (from->kind == FPA_BRANCH_SELECT || from->kind == FPA_BRANCH_DIAGONAL) {
        builder_check_indices(b, from, at);
        for (int w = 0; w < from->width; w++)
            b->lift.used[from->row[w]] = true;
    } else if (known_part(b, branch) < 0) {
        const bool made = from->kind == FPA_BRANCH_COORDINATES;
        learn_part(b, branch, made ? coordinates_part(b, branch, at) : projection_part(b, from, at));
    }
}

/* ---- parts that belong to no single branch ---- */

/* The part of coordinates that pass through without a map: its factor selects the marked coordinates of q and k. */
static int pass_through(builder *b)
{
    int rows = 0;
    for (int i = 0; i < b->width; i++)
        rows += b->lift.used[i];
    if (!rows)
        return -1;
    fpa_lift_part part = plain_part(rows);
    part.factors = builder_take(b, 1, sizeof *part.factors);
    *part.factors = (fpa_lift_factor){FPA_INPUT, FPA_NO_MATRIX, builder_take(b, (size_t)rows, sizeof(int))};
    for (int i = 0, r = 0; i < b->width; i++)
        if (b->lift.used[i])
            part.factors->row[r++] = i;
    return add_part(b, part);
}

static int part_of_ones(builder *b)
{
    fpa_lift_part part = plain_part(1);
    part.map[FPA_QUERY] = part.map[FPA_KEY] = FPA_MAP_ONE;
    part.factors = builder_take(b, 1, sizeof *part.factors);
    *part.factors = (fpa_lift_factor){FPA_INPUT, FPA_NO_MATRIX, builder_take(b, 1, sizeof(int))};
    return add_part(b, part);
}

/* Numbers the coordinates: those of the parts follow each other. */
static void number_coordinates(builder *b)
{
    const fpa_lift *lift = b->head->lift;
    int64_t count = 0;
    for (int i = 0; i < lift->part_count; i++) {
        b->lift.first[i] = (int)count;
        count += lift_coordinates(&lift->parts[i]);
    }
    if (count > HEAD_MAX_COORDINATES)
        script_refuse(b->L, 0, "the head '%s' makes %I coordinates of q and k, but at most %d are allowed",
                      b->head->name, (lua_Integer)count, HEAD_MAX_COORDINATES);
    b->head->d = (int)count;
}

static void place_used(builder *b, int part)
{
    int next = part < 0 ? 0 : b->lift.first[part];
    for (int i = 0; i < b->width; i++)
        if (b->lift.used[i])
            b->lift.place[i] = next++;
}

/* ---- the lift, and branches of it ---- */

static void look_for_lift(builder *b, int branch, place at)
{
    const spec_branch *from = lua_touserdata(b->L, branch);
    (void)at;
    b->lift.needed = b->lift.needed || from->kind == FPA_BRANCH_COORDINATES || from->heads || from->bias;
}

static void check_positions(builder *b)
{
    const fpa_lift *lift = b->head->lift;
    int angles = 0;
    for (int i = 0; lift && i < lift->part_count; i++)
        angles += lift->parts[i].angle != FPA_NO_MATRIX;
    if (b->positions && !angles)
        script_refuse(b->L, 0, "positions = %d, but no coordinates of the head '%s' have an angle",
                      b->positions, b->head->name);
}

static void make_parts(builder *b)
{
    fpa_lift *lift = b->head->lift = builder_take(b, 1, sizeof *lift);
    lift->parts = builder_take(b, LIFT_MAX_PARTS, sizeof *lift->parts);
    lift->width = b->width;
    lift->positions = b->positions;
    lift->key_mask = b->key_mask;
    each_branch(b, collect);
    b->lift.one = b->key_mask && has_constant_term(b) ? part_of_ones(b) : -1;
    const int through = pass_through(b);
    number_coordinates(b);
    place_used(b, through);
}

void builder_lift(builder *b)
{
    b->lift.needed = b->key_mask;
    each_branch(b, look_for_lift);
    if (b->lift.needed) {
        lua_newtable(b->L);
        b->lift.known = lua_gettop(b->L);
        make_parts(b);
    }
    check_positions(b);
}

/* Makes *out a branch of all coordinates of a part. */
static void take_part(builder *b, int part, fpa_branch *out)
{
    out->kind = FPA_BRANCH_COORDINATES;
    out->width = lift_coordinates(&b->head->lift->parts[part]);
    out->row = builder_take(b, (size_t)out->width, sizeof *out->row);
    for (int w = 0; w < out->width; w++)
        out->row[w] = b->lift.first[part] + w;
}

static void take_through(builder *b, const spec_branch *branch, fpa_branch *out)
{
    const bool all = branch->kind == FPA_BRANCH_IDENTITY;
    out->kind = all ? FPA_BRANCH_COORDINATES : branch->kind;
    out->width = all ? b->width : branch->width;
    out->row = builder_take(b, (size_t)out->width, sizeof *out->row);
    for (int w = 0; w < out->width; w++)
        out->row[w] = b->lift.place[all ? w : branch->row[w]];
    builder_copy_grams(b, branch, out);
}

void builder_lift_branch(builder *b, int branch, fpa_branch *out)
{
    const spec_branch *from = lua_touserdata(b->L, branch);
    const bool through = from->kind == FPA_BRANCH_IDENTITY || from->kind == FPA_BRANCH_SELECT ||
                         from->kind == FPA_BRANCH_DIAGONAL;
    out->source = FPA_INPUT;
    if (through)
        take_through(b, from, out);
    else
        take_part(b, known_part(b, branch), out);
}

bool builder_lift_constant(builder *b, fpa_term *out)
{
    if (!b->head->lift || b->lift.one < 0 || out->branch_count)
        return false;
    out->branch_count = 1;
    out->branches = builder_take(b, 1, sizeof *out->branches);
    out->branches->source = FPA_INPUT;
    take_part(b, b->lift.one, out->branches);
    return true;
}
