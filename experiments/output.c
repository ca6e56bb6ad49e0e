#include "output.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool output_folder(const char *folder)
{
    if (!access(folder, W_OK | X_OK))
        return true;
    perror(folder);
    return false;
}

FILE *output_open(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file)
        perror(path);
    return file;
}

bool output_close(FILE *file, const char *name)
{
    const bool bad = ferror(file) != 0;
    if (fclose(file) || bad) {
        fprintf(stderr, "%s: not all of it was written\n", name);
        return false;
    }
    return true;
}

static fpa_series *find_series(fpa_chart *chart, const char *label, bool scattered)
{
    for (int i = 0; i < chart->count; i++)
        if (!strcmp(chart->series[i].label, label))
            return &chart->series[i];
    fpa_series *longer = realloc(chart->series, ((size_t)chart->count + 1) * sizeof *longer);
    if (!longer)
        return NULL;
    chart->series = longer;
    fpa_series *series = &longer[chart->count++];
    *series = (fpa_series){.scattered = scattered};
    snprintf(series->label, sizeof series->label, "%s", label);
    return series;
}

bool chart_add(fpa_chart *chart, const char *label, bool scattered, double x, double y)
{
    fpa_series *series = find_series(chart, label, scattered);
    fpa_point *longer = series ? realloc(series->point, ((size_t)series->count + 1) * sizeof *longer) : NULL;
    if (!longer)
        return false;
    int at = series->count++;
    for (; at > 0 && longer[at - 1].x > x; at--)
        longer[at] = longer[at - 1];
    longer[at] = (fpa_point){x, y};
    series->point = longer;
    return true;
}

void chart_drop(fpa_chart *chart)
{
    for (int i = 0; i < chart->count; i++)
        free(chart->series[i].point);
    free(chart->series);
    chart->series = NULL;
    chart->count = 0;
}

bool output_chart(const char *folder, const char *name, const fpa_chart *chart)
{
    FILE *file = output_open(folder, name);
    if (!file)
        return false;
    const bool drawn = chart_write(chart, file);
    if (!drawn)
        fprintf(stderr, "%s: out of memory\n", name);
    return output_close(file, name) && drawn;
}

void name_family(const char *head, char family[CHART_LABEL])
{
    const char *last = strrchr(head, '_');
    snprintf(family, CHART_LABEL, "%.*s", last ? (int)(last - head) : (int)strlen(head), head);
    for (char *c = family; *c; c++)
        *c = *c == '_' ? ' ' : *c;
}

void processor_name(char name[PROCESSOR_NAME])
{
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(name, PROCESSOR_NAME, "an unknown processor");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "model name : %127[^\n]", name) == 1)
            break;
    if (file)
        fclose(file);
}
