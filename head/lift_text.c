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

/* A matrix as the text counts: 1-based; 0: none. */
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

/* Read "keyword value" within a line. */
static void read_pair(reader *in, const char *keyword, int high, int *value)
{
    reader_expect(in, keyword);
    reader_integer(in, "", 0, high, value);
    reader_skip(in, ' ');
}

static void read_doubles(reader *in, const char *keyword, double *value, int count)
{
    reader_begin(in, keyword);
    for (int i = 0; i < count; i++)
        reader_double(in, &value[i]);
    reader_finish(in);
}

static void read_maps(reader *in, fpa_lift_part *part)
{
    reader_begin(in, "map");
    for (int side = 0; side < FPA_SIDES; side++) {
        int map = 0;
        reader_choice(in, map_word, FPA_MAPS, &map);
        part->map[side] = (fpa_map)map;
    }
    reader_finish(in);
}

/* Read the number of a matrix; 0: none. */
static void read_matrix(reader *in, int *matrix)
{
    int number = 0;
    reader_integer(in, "", 0, HEAD_MAX_MATRICES, &number);
    *matrix = number ? number - 1 : FPA_NO_MATRIX;
    reader_skip(in, ' ');
}

static void read_factor(reader *in, const fpa_lift_part *part, fpa_lift_factor *factor)
{
    char word[WORD_SIZE];
    int count = part->rows;
    reader_begin(in, "factor");
    *factor = (fpa_lift_factor){FPA_INPUT, FPA_NO_MATRIX, NULL};
    reader_word(in, "", word);
    reader_skip(in, ' ');
    if (strcmp(word, "input") == 0) {
        reader_rows(in, &factor->row, &count);
    } else if (strcmp(word, "matrix") == 0) {
        read_matrix(in, &factor->source);
        if (part->is_complex)
            read_matrix(in, &factor->imaginary);
    } else {
        reader_refuse(in, "\"%.40s\" is neither \"input\" nor \"matrix\"", word);
    }
    if (count != part->rows)
        reader_refuse(in, "this factor has %d rows, but its part has %d", count, part->rows);
    reader_finish(in);
}

static void read_part(reader *in, fpa_lift_part *part)
{
    int kind = 0, factors = 0;
    double list[3] = {0};
    reader_begin(in, "part");
    reader_choice(in, kind_word, 2, &kind);
    reader_integer(in, "", 1, HEAD_MAX_COORDINATES, &part->rows);
    reader_skip(in, ' ');
    read_pair(in, "factors", HEAD_MAX_BRANCHES, &factors);
    reader_finish(in);
    read_maps(in, part);
    read_doubles(in, "inner", list, 3);
    read_doubles(in, "gain", part->gain, 2);
    reader_begin(in, "position");
    read_matrix(in, &part->angle);
    read_matrix(in, &part->phase);
    read_matrix(in, &part->amplitude);
    reader_finish(in);
    part->is_complex = kind;
    part->inner = list[0];
    part->square = list[1];
    part->shift = list[2];
    part->factors = reader_array(in, factors, sizeof *part->factors);
    part->factor_count = part->factors ? factors : 0;
    for (int f = 0; f < part->factor_count && !in->status; f++)
        read_factor(in, part, &part->factors[f]);
}

void lift_read(reader *in)
{
    int mask = 0, parts = 0;
    if (!reader_sees(in, "lift "))
        return;
    fpa_lift *lift = in->head->lift = reader_array(in, 1, sizeof *lift);
    if (!lift)
        return;
    reader_begin(in, "lift");
    read_pair(in, "width", HEAD_MAX_WIDTH, &lift->width);
    read_pair(in, "positions", LIFT_MAX_POSITIONS, &lift->positions);
    read_pair(in, "key_mask", 1, &mask);
    read_pair(in, "parts", LIFT_MAX_PARTS, &parts);
    reader_finish(in);
    lift->key_mask = mask;
    lift->parts = reader_array(in, parts, sizeof *lift->parts);
    lift->part_count = lift->parts ? parts : 0;
    for (int i = 0; i < lift->part_count && !in->status; i++)
        read_part(in, &lift->parts[i]);
}
