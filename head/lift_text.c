/* lift_text: a lift's lines, behind those of the matrices.
 *
 *   lift width 64 positions 1 key_mask 0 parts 2
 *   part real 64 factors 1              real or complex, rows
 *   map softplus exp                    of q, of k
 *   inner 0x1p+0 0x0p+0 0x0p+0          inner, square, shift
 *   gain 0x1p+0 0x1p-1                  of q, of k
 *   position 1 2 0                      matrices of angle, phase, amplitude; 0: none
 *   factor input 1-64
 *   part complex 129 factors 2
 *   ...
 *   factor matrix 3 4                   of the real and, complex, of the imaginary parts
 */
#include "lift_text.h"

#include <string.h>

#include "base/text.h"
#include "words.h"

static const char *map_word(int index)
{
    return map_name((fpa_map)index);
}

static const char *kind_word(int index)
{
    return index ? "complex" : "real";
}

/* 1-based; 0: none. */
static int matrix_number(int index)
{
    return index < 0 ? 0 : index + 1;
}

static void print_factor(FILE *out, const fpa_lift_part *part, const fpa_lift_factor *factor)
{
    if (factor->source == FPA_INPUT) {
        fputs("factor input ", out);
        text_rows(out, factor->row, part->rows);
    } else {
        fprintf(out, "factor matrix %d", factor->source + 1);
        if (part->is_complex)
            fprintf(out, " %d", factor->imaginary + 1);
    }
    fputc('\n', out);
}

static void print_part(FILE *out, const fpa_lift_part *part)
{
    const double list[] = {part->inner, part->square, part->shift};
    fprintf(out, "part %s %d factors %d\nmap %s %s\ninner", kind_word(part->is_complex), part->rows,
            part->factor_count, map_name(part->map[FPA_QUERY]), map_name(part->map[FPA_KEY]));
    for (int i = 0; i < 3; i++) {
        fputc(' ', out);
        text_double(out, list[i]);
    }
    fputs("\ngain ", out);
    text_double(out, part->gain[FPA_QUERY]);
    fputc(' ', out);
    text_double(out, part->gain[FPA_KEY]);
    fprintf(out, "\nposition %d %d %d\n", matrix_number(part->angle), matrix_number(part->phase),
            matrix_number(part->amplitude));
    for (int f = 0; f < part->factor_count; f++)
        print_factor(out, part, &part->factors[f]);
}

void lift_print(FILE *out, const fpa_lift *lift)
{
    fprintf(out, "lift width %d positions %d key_mask %d parts %d\n", lift->width, lift->positions,
            lift->key_mask, lift->part_count);
    for (int i = 0; i < lift->part_count; i++)
        print_part(out, &lift->parts[i]);
}

/* ---- reading ---- */

/* "keyword value" amid a line. */
static fpa_status read_pair(reader *in, const char *keyword, int high, int *value)
{
    fpa_status status = reader_expect(in, keyword);
    if (!status)
        status = reader_integer(in, "", 0, high, value);
    reader_skip(in, ' ');
    return status;
}

static fpa_status read_doubles(reader *in, const char *keyword, double *value, int count)
{
    fpa_status status = reader_begin(in, keyword);
    for (int i = 0; i < count && !status; i++)
        status = reader_double(in, &value[i]);
    return status ? status : reader_finish(in);
}

static fpa_status read_maps(reader *in, fpa_lift_part *part)
{
    fpa_status status = reader_begin(in, "map");
    for (int side = 0; side < FPA_SIDES && !status; side++) {
        int map = 0;
        status = reader_choice(in, map_word, FPA_MAPS, &map);
        part->map[side] = (fpa_map)map;
    }
    return status ? status : reader_finish(in);
}

/* A matrix by its number; none: 0. */
static fpa_status read_matrix(reader *in, int *matrix)
{
    int number = 0;
    fpa_status status = reader_integer(in, "", 0, HEAD_MAX_MATRICES, &number);
    *matrix = number ? number - 1 : FPA_NO_MATRIX;
    reader_skip(in, ' ');
    return status;
}

static fpa_status read_position(reader *in, fpa_lift_part *part)
{
    fpa_status status = reader_begin(in, "position");
    if (!status)
        status = read_matrix(in, &part->angle);
    if (!status)
        status = read_matrix(in, &part->phase);
    if (!status)
        status = read_matrix(in, &part->amplitude);
    return status ? status : reader_finish(in);
}

static fpa_status read_input(reader *in, const fpa_lift_part *part, fpa_lift_factor *factor)
{
    int count = 0;
    fpa_status status = reader_rows(in, &factor->row, &count);
    if (!status && count != part->rows)
        status = reader_refuse(in, "this factor has %d rows, but its part has %d", count, part->rows);
    return status;
}

static fpa_status read_factor(reader *in, const fpa_lift_part *part, fpa_lift_factor *factor)
{
    char word[WORD_SIZE];
    fpa_status status = reader_begin(in, "factor");
    if (status)
        return status;
    *factor = (fpa_lift_factor){FPA_INPUT, FPA_NO_MATRIX, NULL};
    reader_word(in, "", word);
    reader_skip(in, ' ');
    if (strcmp(word, "input") == 0)
        status = read_input(in, part, factor);
    else if (strcmp(word, "matrix") != 0)
        return reader_refuse(in, "\"%.40s\" is neither \"input\" nor \"matrix\"", word);
    else if (!(status = read_matrix(in, &factor->source)) && part->is_complex)
        status = read_matrix(in, &factor->imaginary);
    return status ? status : reader_finish(in);
}

static fpa_status read_part(reader *in, fpa_lift_part *part)
{
    int kind = 0;
    double list[3] = {0};
    fpa_status status = reader_begin(in, "part");
    if (!status)
        status = reader_choice(in, kind_word, 2, &kind);
    if (!status)
        status = reader_integer(in, "", 1, HEAD_MAX_COORDINATES, &part->rows);
    reader_skip(in, ' ');
    if (!status)
        status = read_pair(in, "factors", HEAD_MAX_BRANCHES, &part->factor_count);
    if (status || (status = reader_finish(in)) || (status = read_maps(in, part)) ||
        (status = read_doubles(in, "inner", list, 3)) || (status = read_doubles(in, "gain", part->gain, 2)) ||
        (status = read_position(in, part)))
        return status;
    part->is_complex = kind;
    part->inner = list[0];
    part->square = list[1];
    part->shift = list[2];
    part->factors = arena_array(&in->head->memory, (size_t)part->factor_count, sizeof *part->factors);
    if (!part->factors)
        return fail_memory(in->error);
    for (int f = 0; f < part->factor_count && !status; f++)
        status = read_factor(in, part, &part->factors[f]);
    return status;
}

fpa_status lift_read(reader *in)
{
    int mask = 0;
    if (!reader_sees(in, "lift "))
        return FPA_OK;
    fpa_lift *lift = in->head->lift = arena_array(&in->head->memory, 1, sizeof *lift);
    if (!lift)
        return fail_memory(in->error);
    fpa_status status = reader_begin(in, "lift");
    if (!status)
        status = read_pair(in, "width", HEAD_MAX_WIDTH, &lift->width);
    if (!status)
        status = read_pair(in, "positions", LIFT_MAX_POSITIONS, &lift->positions);
    if (!status)
        status = read_pair(in, "key_mask", 1, &mask);
    if (!status)
        status = read_pair(in, "parts", LIFT_MAX_PARTS, &lift->part_count);
    if (status || (status = reader_finish(in)))
        return status;
    lift->key_mask = mask;
    lift->parts = arena_array(&in->head->memory, (size_t)lift->part_count, sizeof *lift->parts);
    if (!lift->parts)
        return fail_memory(in->error);
    for (int i = 0; i < lift->part_count && !status; i++)
        status = read_part(in, &lift->parts[i]);
    return status;
}
