/* faults_decode: mistakes in emitted CUDA kernels of a decoding step; a part of faults.h. */
#ifndef FPAC_TESTS_EMULATE_FAULTS_DECODE_H
#define FPAC_TESTS_EMULATE_FAULTS_DECODE_H

#include "fault_places.h"

static const struct emulated_fault decode_faults[] = {
    {IN_TOKEN,
     NOT_AWAITED,
     {"rows of a state that nobody waits for",
      "decode_resident ... before copies into its shared memory come", "piece_awaited", "++piece;"}},
    {IN_TOKEN,
     OTHER_PLACE,
     {"rows of another block", "recurrent form ... cut after ... but the formula gives", "rows_asked",
      "token_ask<grid>(mine, own.in);"}},
    {IN_TOKEN,
     OTHER_COUNT,
     {"fewer bytes than a barrier expects", "decode_resident ... can go on", "piece_copied",
      "copy_bulk(to + at * ROW, rows + at * DV, bytes - 16, step_barrier(i));"}},
    {IN_TOKEN,
     NOT_AWAITED,
     {"parts that nobody waits for", "decode_resident ... of the cluster, which has ended", "parts_awaited",
      ";"}},
    {IN_TOKEN,
     NOT_AWAITED,
     {"parts of the pass before", "decode_resident ... can go on", "parts_awaited",
      "barrier_wait(step_barrier(0), 0);"}},
    {IN_RECENT_TOKENS,
     OTHER_PLACE,
     {"values of the first recent tokens for later ones",
      "recurrent form ... recent tokens ... but the formula gives", "decode_recent_place",
      "const element *v = values + (task.slice + (long long)i * slices) * call.v_stride[1];"}},
    {IN_TOKEN,
     TOO_EARLY,
     {"parts that leave before all blocks are there",
      "decode_resident ... a block of the cluster that may not have begun", "blocks_awaited", NULL}},
    {IN_TOKEN,
     TOO_EARLY,
     {"parts that come before those of the pass before are read",
      "decode_resident ... at the cluster's barrier where it has not arrived", "parts_read", ";"}},
};

#endif
