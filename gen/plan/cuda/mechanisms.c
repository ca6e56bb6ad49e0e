/* The table of mechanisms. */
#include "mechanism.h"

#include "cluster_scan.h"
#include "decode.h"
#include "fused_packed.h"
#include "fused_pass.h"
#include "fused_rows.h"
#include "split_outer.h"
#include "split_panel.h"

/* A row may read the plans of rows above it. */
const fpa_mechanism cuda_mechanisms[CUDA_MECHANISMS] = {
    [SPLIT_PANEL] = {"split_panel", ROLE_SPLIT, sizeof(fpa_split_panel), plan_split_panel, print_split_panel,
                     geometry_split_panel, NULL, split_panel_fields},
    [FUSED_PANEL] = {"fused_panel", ROLE_FUSED, sizeof(fpa_fused_pass), plan_fused_panel, NULL,
                     geometry_fused_panel, NULL, fused_pass_fields},
    [FUSED_COORDINATES] = {"fused_coordinates", ROLE_FUSED, sizeof(fpa_fused_pass), plan_fused_coordinates,
                           print_fused_coordinates, geometry_fused_coordinates, NULL, fused_pass_fields},
    [SPLIT_OUTER] = {"split_outer", ROLE_SPLIT, sizeof(fpa_split_outer), plan_split_outer, print_split_outer,
                     geometry_split_outer, "outer", split_outer_fields},
    [FUSED_PACKED] = {"fused_packed", ROLE_FUSED, sizeof(fpa_fused_packed), plan_fused_packed,
                      print_fused_packed, geometry_fused_packed, "fused_packed", fused_packed_fields},
    [FUSED_ROWS] = {"fused_rows", ROLE_FUSED, sizeof(fpa_fused_rows), plan_fused_rows, print_fused_rows,
                    geometry_fused_rows, "fused_rows", fused_rows_fields},
    [CLUSTER_SCAN] = {"cluster_scan", ROLE_CLUSTER, sizeof(fpa_cluster_scan), plan_cluster_scan,
                      print_cluster_scan, geometry_cluster_scan, "cluster_scan", cluster_scan_fields},
    [DECODE] = {"decode", ROLE_DECODE, sizeof(fpa_decode), plan_decode, NULL, geometry_decode, NULL,
                decode_fields},
};
