/* faults: mistakes in emitted CUDA kernels, each of which the emulation has to find; by mechanism. */
#ifndef FPAC_TESTS_EMULATE_FAULTS_H
#define FPAC_TESTS_EMULATE_FAULTS_H

#include "faults_split.h"
#include "faults_fused.h"
#include "faults_rows.h"
#include "faults_cluster_scan.h"
#include "faults_decode.h"
#include "faults_lift.h"
#include "faults_window.h"

#define EMULATED_TABLE(table)                                                                                \
    {                                                                                                        \
        table, sizeof table / sizeof *table                                                                  \
    }

static const struct {
    const struct emulated_fault *faults;
    int count;
} emulated_tables[] = {
    EMULATED_TABLE(split_faults),          EMULATED_TABLE(fused_faults),  EMULATED_TABLE(rows_faults),
    EMULATED_TABLE(cluster_scan_faults),   EMULATED_TABLE(decode_faults), EMULATED_TABLE(lift_faults_of_cuda),
    EMULATED_TABLE(window_faults_of_cuda),
};

enum {
    EMULATED_TABLES = sizeof emulated_tables / sizeof *emulated_tables,
    EMULATED_FAULTS =
        (sizeof split_faults + sizeof fused_faults + sizeof rows_faults + sizeof cluster_scan_faults +
         sizeof decode_faults + sizeof lift_faults_of_cuda + sizeof window_faults_of_cuda) /
        sizeof(struct emulated_fault)
};

/* Of all tables, one after the other. */
static inline const struct emulated_fault *emulated_fault_at(int i)
{
    int table = 0;
    for (; i >= emulated_tables[table].count; table++)
        i -= emulated_tables[table].count;
    return &emulated_tables[table].faults[i];
}

/* The number of its table. */
static inline int emulated_fault_table(int i)
{
    int table = 0;
    for (; i >= emulated_tables[table].count; table++)
        i -= emulated_tables[table].count;
    return table;
}

#endif
