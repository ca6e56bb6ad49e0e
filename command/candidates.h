/* candidates: the ways to carry out a call, as `fpac explain` and `fpac bench` show them. */
#ifndef FPAC_COMMAND_CANDIDATES_H
#define FPAC_COMMAND_CANDIDATES_H

#include "json.h"
#include "machine/candidate.h"

/* "chunk_state_small, overlapped, 64 blocks", "4 segments", "3 blocks": what a mechanism's candidate is. */
enum { CANDIDATE_TEXT = 64 };
const char *candidate_text(char text[CANDIDATE_TEXT], const fpa_candidate *candidate);

/* Nanoseconds per token and head. */
double candidate_nanoseconds(const fpa_call_size *size, double seconds);

/* Rows under a title; `fastest` is marked. Refused ones say why. */
void candidates_print(const fpa_call_size *size, const fpa_candidate *list, int count, int fastest);
void candidates_write(fpa_json *json, const fpa_call_size *size, const fpa_candidate *list, int count,
                      int fastest);

#endif
