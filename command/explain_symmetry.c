#include "explain_symmetry.h"

#include <stdio.h>

#include "gen/simplify/symmetry.h"

/* Prints why no parts are known, or why there may be more. */
static void print_unknown(const fpa_simplified *simple, fpa_symmetry_kind kind)
{
    if (kind == SYMMETRY_TOO_LARGE) {
        printf("  not computed: with dense rows it is computed for at most d = %d and as many dot products\n",
               SYMMETRY_MOST);
        return;
    }
    if (kind == SYMMETRY_BEHIND_MAPS) {
        printf("  not computed: branches project coordinates that are mapped from q and k\n");
        return;
    }
    printf("  not known before run time: weights");
    for (int i = 0, count = 0; i < simple->head->matrix_count; i++)
        if (simple->head->matrices[i].name)
            printf("%s %s", count++ ? "," : "", simple->head->matrices[i].name);
    putchar('\n');
}

static void print_symmetry(const fpa_simplified *simple, const fpa_symmetry *symmetry)
{
    const int d = symmetry->d;
    char text[SYMMETRY_TEXT];
    printf("\nsymmetry (orthogonal U with k(Uq, Uk) = k(q, k))\n");
    if (!symmetry->part_count) {
        print_unknown(simple, symmetry->kind);
        return;
    }
    symmetry_group_text(text, symmetry);
    printf("  %-15s %s%s; dimension %d of %d\n", "group",
           symmetry->kind == SYMMETRY_AT_LEAST ? "at least " : "", text, symmetry_dimension(symmetry),
           d * (d - 1) / 2);
    symmetry_space_text(text, symmetry);
    printf("  %-15s %s\n", "acts on", text);
}

static void write_parts(fpa_json *json, const fpa_symmetry *symmetry)
{
    json_array(json, "parts");
    for (int i = 0; i < symmetry->part_count; i++) {
        const fpa_symmetry_part *part = &symmetry->parts[i];
        json_object(json, NULL);
        json_integer(json, "order", part->order);
        json_integer(json, "dimension", part->dimension);
        json_integer(json, "width", part->width);
        json_bool(json, "seen", part->is_seen);
        if (part->exchange >= 0)
            json_integer(json, "exchanged_with", part->exchange + 1);
        json_array(json, "coordinates");
        for (int c = 0; part->coordinate && c < part->width; c++)
            json_integer(json, NULL, part->coordinate[c] + 1);
        json_close(json);
        json_close(json);
    }
    json_close(json);
}

static void write_symmetry(fpa_json *json, const fpa_symmetry *symmetry)
{
    char text[SYMMETRY_TEXT];
    json_object(json, "symmetry");
    json_text(json, "kind", symmetry_kind_name(symmetry->kind));
    if (symmetry->part_count) {
        symmetry_group_text(text, symmetry);
        json_text(json, "group", text);
        json_integer(json, "dimension", symmetry_dimension(symmetry));
        json_bool(json, "exchanges_known", symmetry->exchanges_known);
        write_parts(json, symmetry);
    }
    json_close(json);
}

fpa_status explain_symmetry(const fpa_head *written, const fpa_simplified *simple, fpa_json *json,
                            fpa_error *error)
{
    fpa_symmetry symmetry;
    fpa_status status = symmetry_find(written, simple, &symmetry, error);
    if (status)
        return status;
    if (json)
        write_symmetry(json, &symmetry);
    else
        print_symmetry(simple, &symmetry);
    symmetry_free(&symmetry);
    return FPA_OK;
}
