/* candidates: prints the candidates of a call, for `fpac explain` and `fpac bench`. */
#ifndef FPAC_COMMAND_CANDIDATES_H
#define FPAC_COMMAND_CANDIDATES_H

#include "json.h"
#include "machine/candidate.h"

/* The parameters of a candidate: "chunk_state_small, overlapped, 64 blocks", "4 segments", "3 blocks". */
enum { CANDIDATE_TEXT = 64 };
const char *candidate_text(char text[CANDIDATE_TEXT], const fpa_candidate *candidate);

/* Nanoseconds per token and head, from the seconds of a call. */
double candidate_nanoseconds(const fpa_call_size *size, double seconds);

/* Print the candidates as rows with a title; `fastest` is marked, refused ones have the reason. */
void candidates_print(const fpa_call_size *size, const fpa_candidate *list, int count, int fastest);
void candidates_write(fpa_json *json, const fpa_call_size *size, const fpa_candidate *list, int count,
                      int fastest);

#endif
