/* plot: draws measurements as a picture. */
#include "plot.h"

#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "base/text.h"
#include "command.h"
#include "options.h"
#include "plain_text.h"

typedef struct plot_options {
    const char *output, *kind, *title;
} plot_options;

static fpa_status select_kind(const char *name, fpa_plot_kind *kind, fpa_error *error)
{
    for (int i = 0; i < PLOT_KINDS; i++) {
        *kind = (fpa_plot_kind)i;
        if (!strcmp(name, plot_kind_name(*kind)))
            return FPA_OK;
    }
    return fail(error, FPA_INVALID, "--kind", "%s is not a kind; there are time, share and decode", name);
}

static fpa_status check_title(const char *title, fpa_error *error)
{
    if (title && !text_is_plain(title, strlen(title)))
        return fail(error, FPA_INVALID, "--title", "is not UTF-8 without control characters");
    return FPA_OK;
}

static fpa_status read_files(const fpa_texts *files, fpa_measured_list *list, fpa_error *error)
{
    for (int i = 0; i < files->count; i++) {
        int before = list->count;
        fpa_status status = measured_read(files->text[i], list, error);
        if (status)
            return status;
        if (list->count == before)
            return fail(error, FPA_INVALID, files->text[i],
                        "has no measurements: `fpac bench --tsv %s` and bench/peers add them",
                        files->text[i]);
        detail("%s: %d measurements", files->text[i], list->count - before);
    }
    return FPA_OK;
}

static fpa_status draw_list(const fpa_measured_list *list, fpa_plot_kind kind, const fpa_texts *files,
                            const plot_options *options, fpa_error *error)
{
    fpa_chart chart;
    fpa_status status = chart_make(list, kind, options->title, &chart, error);
    if (!status && chart.count == 0)
        status = fail(error, FPA_INVALID, files->text[files->count - 1],
                      "there is nothing to draw: --kind %s shows lines with %s", plot_kind_name(kind),
                      plot_kind_needs(kind));
    if (!status) {
        detail("%s: %d series", options->output, chart.count);
        status = chart_save(&chart, options->output, error);
    }
    chart_free(&chart);
    return status;
}

static fpa_status plot_files(const fpa_texts *files, const plot_options *options, fpa_error *error)
{
    fpa_measured_list list = {0};
    fpa_plot_kind kind;
    for (int i = 0; i < files->count; i++)
        if (output_is_same(options->output, files->text[i]))
            return fail(error, FPA_INVALID, options->output, "is also read: -o would overwrite it");
    fpa_status status = select_kind(options->kind, &kind, error);
    if (!status)
        status = check_title(options->title, error);
    if (!status)
        status = read_files(files, &list, error);
    if (!status)
        status = draw_list(&list, kind, files, options, error);
    measured_free(&list);
    return status;
}

int command_plot(int count, char **arguments)
{
    plot_options options = {.kind = "time"};
    const fpa_option table[] = {
        {"-o", OPTION_TEXT, &options.output, "FILE.svg", "write the picture there", 0, 0},
        {"--kind", OPTION_TEXT, &options.kind, "KIND", "time, share or decode (time)", 0, 0},
        {"--title", OPTION_TEXT, &options.title, "TEXT", "above the picture, instead of the kind's own", 0,
         0},
        OPTION_VERBOSE,
    };
    const fpa_syntax syntax = {
        "plot FILE.tsv... -o FILE.svg [--kind KIND] [--title TEXT] [--verbose]",
        "Draw measurements as an SVG picture: lines that `fpac bench --tsv` and the scripts of\n"
        "bench/peers write.",
        OPTION_TABLE(table),
        1,
        -1,
        "time:   ns per token and head against length, for each package and form\n"
        "share:  % of the rate of a matrix product or of a copy, whichever is nearer, against length\n"
        "decode: tokens a second of one step (length 1) against batch\n"
        "\n"
        "Fields have tabs between them: who, version, what, length, batch, heads, ns a token and head,\n"
        "ms a forward and, where they were measured, shares of product and copy (0.85, or -). Lines that\n"
        "are empty or begin with # or skipped are passed over. Of two lines that say the same of who,\n"
        "what, heads and the x axis, the later counts. The same lines give the same bytes."};
    fpa_texts operands;
    fpa_error error;
    int code;
    if (!options_parse(&syntax, count, arguments, &operands, &code))
        return code;
    if (!options.output)
        return option_missing(&syntax, "-o");
    return plot_files(&operands, &options, &error) ? report(&error) : EXIT_OK;
}
