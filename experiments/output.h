/* output: what an experiment leaves in its folder: a table and a picture. */
#ifndef FPAC_EXPERIMENTS_OUTPUT_H
#define FPAC_EXPERIMENTS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "command/chart.h"

/* Whether files can be written there, asked before anything is measured; stderr is told where they cannot. */
bool output_folder(const char *folder);
/* folder/name, to be written; NULL: it cannot be, which stderr was told. */
FILE *output_open(const char *folder, const char *name);
/* False: not all was written, which stderr was told. */
bool output_close(FILE *file, const char *name);

/* A point of the series of that label, which is made where there is none; x above that of the point before, else the
 * point takes its place in the order. False: no memory. chart_drop frees all series. */
bool chart_add(fpa_chart *chart, const char *label, bool scattered, double x, double y);
void chart_drop(fpa_chart *chart);
/* The picture as folder/name. */
bool output_chart(const char *folder, const char *name, const fpa_chart *chart);

/* A head's family: its name before the last '_', other ones as blanks. */
void name_family(const char *head, char family[CHART_LABEL]);

/* The processor as the system names it ("an unknown processor" where it does not). */
enum { PROCESSOR_NAME = 128 };
void processor_name(char name[PROCESSOR_NAME]);

#endif
