#include "explain_lift.h"

#include <stdlib.h>

#include "base/text.h"
#include "command.h"

/* ---- y: the product of the factors ---- */

static void write_constant_name(FILE *out, const fpa_head *head, int m)
{
    const fpa_matrix *matrix = &head->matrices[m];
    if (matrix->kind == FPA_MATRIX_CONSTANT)
        fprintf(out, "C%d", m + 1);
    else
        fprintf(out, matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL ? "diag(%s)" : "%s", matrix->name);
}

/* Writes x, or the selected elements of it: x[1-8,12]. */
static void write_input(FILE *out, const fpa_head *head, const fpa_lift_part *part, const int *row)
{
    bool all = part->rows == head->lift->width;
    for (int r = 0; r < part->rows && all; r++)
        all = row[r] == r;
    fputc('x', out);
    if (all)
        return;
    fputc('[', out);
    text_rows(out, row, part->rows);
    fputc(']', out);
}

static void write_factor(FILE *out, const fpa_head *head, const fpa_lift_part *part,
                         const fpa_lift_factor *factor)
{
    if (factor->source == FPA_INPUT) {
        write_input(out, head, part, factor->row);
        return;
    }
    const bool constants = lift_has_constants(head->lift, &head->matrices[factor->source]);
    if (part->is_complex)
        fputc('(', out);
    write_constant_name(out, head, factor->source);
    if (part->is_complex) {
        fputs(" + i ", out);
        write_constant_name(out, head, factor->imaginary);
        fputc(')', out);
    }
    fputs(constants ? " (x,1)" : " x", out);
}

static void write_product(FILE *out, const fpa_head *head, const fpa_lift_part *part)
{
    for (int f = 0; f < part->factor_count; f++) {
        const bool brackets = part->factor_count > 1;
        fputs(brackets ? "(" : "", out);
        write_factor(out, head, part, &part->factors[f]);
        fputs(brackets ? ")" : "", out);
    }
}

/* ---- u: gain map(inner y - square |x|^2 - shift) ---- */

static void write_term(FILE *out, double value, const char *what)
{
    if (value == 0)
        return;
    fputs(value < 0 ? " + " : " - ", out);
    const double size = value < 0 ? -value : value;
    if (!*what || size != 1)
        fprintf(out, "%.6g%s", size, *what ? " " : "");
    fputs(what, out);
}

static void write_argument(FILE *out, const fpa_head *head, const fpa_lift_part *part)
{
    if (part->inner != 1)
        fprintf(out, "%.6g ", part->inner);
    write_product(out, head, part);
    write_term(out, part->square, "|x|^2");
    write_term(out, part->shift, "");
}

static void write_side(FILE *out, const fpa_head *head, const fpa_lift_part *part, fpa_side side)
{
    const fpa_map map = part->map[side];
    if (part->gain[side] != 1)
        fprintf(out, "%.6g ", part->gain[side]);
    if (map == FPA_MAP_ONE) {
        fputs("1", out);
        return;
    }
    const bool bare = map == FPA_MAP_IDENTITY && part->square == 0 && part->shift == 0;
    if (!bare)
        fprintf(out, "%s(", map == FPA_MAP_IDENTITY ? "" : map_name(map));
    write_argument(out, head, part);
    fputs(bare ? "" : ")", out);
}

/* ---- t: the angle ---- */

static void write_position(FILE *out, const fpa_head *head, const fpa_lift_part *part)
{
    fputs("; u cos t, u sin t, t = ", out);
    write_constant_name(out, head, part->angle);
    fputs(" p", out);
    if (part->phase != FPA_NO_MATRIX) {
        fputs(" (queries: + ", out);
        write_constant_name(out, head, part->phase);
        fputc(')', out);
    }
    if (part->amplitude != FPA_NO_MATRIX) {
        fputs(", queries times ", out);
        write_constant_name(out, head, part->amplitude);
    }
}

static void write_part(FILE *out, const fpa_head *head, const fpa_lift_part *part)
{
    const bool alike =
        part->map[FPA_QUERY] == part->map[FPA_KEY] && part->gain[FPA_QUERY] == part->gain[FPA_KEY];
    const bool moving = part->angle != FPA_NO_MATRIX;
    if (part->is_complex)
        fputs("Re u, Im u, ", out);
    fputs(part->is_complex || moving ? "u = " : "", out);
    write_side(out, head, part, FPA_QUERY);
    if (!alike) {
        fputs(" of queries, ", out);
        write_side(out, head, part, FPA_KEY);
        fputs(" of keys", out);
    }
    if (moving)
        write_position(out, head, part);
}

/* The formula of a part, malloc'ed; NULL: no memory. */
static char *part_text(const fpa_head *head, const fpa_lift_part *part)
{
    text_buffer buffer;
    FILE *out = text_open(&buffer);
    if (!out)
        return NULL;
    write_part(out, head, part);
    return text_finish(&buffer);
}

/* ---- the page ---- */

static bool same_shape(const fpa_matrix *a, const fpa_matrix *b)
{
    return b->kind == FPA_MATRIX_CONSTANT && a->rows == b->rows && a->cols == b->cols && a->heads == b->heads;
}

/* Prints constant matrices: "C1..C4  127 x 17, for each of 2 heads", with consecutive ones of equal shape on one
 * line. */
static void print_constants(const fpa_head *head)
{
    for (int m = 0, last; m < head->matrix_count; m = last + 1) {
        const fpa_matrix *matrix = &head->matrices[m];
        char names[32];
        last = m;
        if (matrix->kind != FPA_MATRIX_CONSTANT)
            continue;
        while (last + 1 < head->matrix_count && same_shape(matrix, &head->matrices[last + 1]))
            last++;
        snprintf(names, sizeof names, last > m ? "C%d..C%d" : "C%d", m + 1, last + 1);
        printf("  %-10s %d x %d constants", names, matrix->rows, matrix->cols);
        if (matrix->heads)
            printf(", for each of %d heads", matrix->heads);
        if (lift_has_constants(head->lift, matrix))
            printf("; the last column is added");
        putchar('\n');
    }
}

static void print_inputs(const fpa_lift *lift)
{
    if (lift->positions)
        printf("  p          [batch, length, %d] positions given at run time\n", lift->positions);
    if (lift->key_mask)
        puts("  key mask   [batch, length] given at run time: where it is 0, a key's coordinates are 0");
}

void explain_lift_print(const fpa_head *head)
{
    const fpa_lift *lift = head->lift;
    int first = 1;
    if (!lift)
        return;
    printf("\n%d coordinates of a token, made of x: q times the scale, or k\n", head->d);
    for (int i = 0; i < lift->part_count; i++) {
        const int count = lift_coordinates(&lift->parts[i]);
        char range[32], *text = part_text(head, &lift->parts[i]);
        snprintf(range, sizeof range, count > 1 ? "%d..%d" : "%d", first, first + count - 1);
        printf("  %-10s %s\n", range, text ? text : "?");
        free(text);
        first += count;
    }
    print_constants(head);
    print_inputs(lift);
}

static void write_parts(fpa_json *json, const fpa_head *head)
{
    json_array(json, "parts");
    for (int i = 0; i < head->lift->part_count; i++) {
        const fpa_lift_part *part = &head->lift->parts[i];
        char *text = part_text(head, part);
        json_object(json, NULL);
        json_integer(json, "coordinates", lift_coordinates(part));
        json_integer(json, "rows", part->rows);
        json_integer(json, "factors", part->factor_count);
        json_bool(json, "complex", part->is_complex);
        json_text(json, "map_q", map_name(part->map[FPA_QUERY]));
        json_text(json, "map_k", map_name(part->map[FPA_KEY]));
        json_text(json, "formula", text);
        json_close(json);
        free(text);
    }
    json_close(json);
}

void explain_lift_write(fpa_json *json, const fpa_head *head)
{
    if (!head->lift)
        return;
    json_object(json, "lift");
    json_integer(json, "width", head->lift->width);
    json_integer(json, "positions", head->lift->positions);
    json_bool(json, "key_mask", head->lift->key_mask);
    write_parts(json, head);
    json_close(json);
}
