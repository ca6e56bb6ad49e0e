/* faults_lift: mistakes in emitted CUDA kernels of coordinates that are made; a part of faults.h. */
#ifndef FPAC_TESTS_EMULATE_FAULTS_LIFT_H
#define FPAC_TESTS_EMULATE_FAULTS_LIFT_H

#include "fault_places.h"

static const struct emulated_fault lift_faults_of_cuda[] = {
    {IN_LIFT,
     OTHER_PLACE,
     {"the map of keys for queries", "but the formula gives", "coordinate_maps",
      "$ local query, key = value_of(p, p.key, \"y[i]\"), value_of(p, p.key, \"y[i]\")"}},
    {IN_LIFT_SUMS,
     LEFT_OUT,
     {"masked keys that take part", "but the formula gives", "coordinate_masked", "return false;"}},
    {IN_LIFT,
     LEFT_OUT,
     {"values of masked keys that are no numbers", "is not a number", "padded_values",
      "pad_piece<DV>((element *)call.padded_values, (const element *)call.v, call.v_stride, piece, length, "
      "call.heads, true);"}},
    {IN_LIFT,
     OTHER_PLACE,
     {"a phase on the side of keys, too", "but the formula gives", "coordinate_phase",
      "phase[own] = (float)((${angles.phase})[row] * 0.15915494309189535);"}},
    {IN_LIFT_WEIGHTS,
     OTHER_PLACE,
     {"the row of a matrix behind its own", "but the formula gives", "coordinate_row",
      "const int row = lift_warp_row(first) + lane_row() / 2 * 4 + lane_row() % 2 + 1;"}},
    {IN_LIFT,
     OTHER_PLACE,
     {"a lane's numbers of a matrix that are another lane's", "but the formula gives", "coordinate_tile",
      "const int lane = lift_warp_row(first) / 16 * STEPS * pieces * 32 + (threadIdx.x & 31 ^ 4);"}},
    {IN_LIFT_SUMS,
     NOT_AWAITED,
     {"strips that leave before all have their rows there", "is not a number", "strips_made", NULL}},
    {IN_PLAIN_LIFT,
     OTHER_PLACE,
     {"the row of a matrix behind its own, in fp32", "but the formula gives", "coordinate_plain_row",
      "const float *from = w + (row + 1 < rows ? row + 1 : 0) * row_stride;"}},
};

#endif
