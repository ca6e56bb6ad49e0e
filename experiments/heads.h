/* heads: an experiment on each head of a spec. */
#ifndef FPAC_EXPERIMENTS_HEADS_H
#define FPAC_EXPERIMENTS_HEADS_H

#include "gen/spec/spec.h"

typedef struct head_experiment {
    size_t size; /* bytes of what is found of a head */
    fpa_status (*measure)(const char *spec, const fpa_head *head, void *found,
                          fpa_error *error);                   /* zeros before */
    void (*tell)(const void *found);                           /* as soon as it is measured */
    bool (*write)(const char *folder, void *found, int count); /* of all heads; they are still there */
} head_experiment;

/* The program's exit code; stderr was told what went wrong. */
int measure_heads(const head_experiment *experiment, const char *spec, const char *folder);

#endif
