/* fuzz: mutated files against a reader. A program defines fuzz_one and calls fuzz_main:
 *
 *     [FUZZ_SEED=N] fuzz_NAME SECONDS FOLDER...
 *
 * Files below the folders that end in the suffix are the seeds. Whatever a reader says of a
 * mutated file is right, as long as it says it: a crash, a leak or a bad access stops the program
 * under a sanitizer, and the input that did it is left in build/fuzz-NAME.input. */
#ifndef FPAC_TESTS_FUZZ_H
#define FPAC_TESTS_FUZZ_H

#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FUZZ_SEEDS = 256, FUZZ_SIZE = 1 << 16 };

static struct fuzz_corpus {
    const char *suffix;
    int count;
    unsigned char *bytes[FUZZ_SEEDS];
    size_t size[FUZZ_SEEDS];
} fuzz_corpus;

static uint64_t fuzz_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void fuzz_keep(const void *bytes, size_t size)
{
    if (fuzz_corpus.count == FUZZ_SEEDS)
        return;
    size = size < FUZZ_SIZE / 2 ? size : FUZZ_SIZE / 2;
    unsigned char *copy = malloc(size + 1);
    if (!copy)
        abort();
    memcpy(copy, bytes, size);
    fuzz_corpus.bytes[fuzz_corpus.count] = copy;
    fuzz_corpus.size[fuzz_corpus.count++] = size;
}

static int fuzz_visit(const char *path, const struct stat *about, int kind, struct FTW *at)
{
    static unsigned char bytes[FUZZ_SIZE];
    size_t length = strlen(path), suffix = strlen(fuzz_corpus.suffix);
    (void)about, (void)at;
    if (kind != FTW_F || length < suffix || strcmp(path + length - suffix, fuzz_corpus.suffix))
        return 0;
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    fuzz_keep(bytes, fread(bytes, 1, sizeof bytes, file));
    fclose(file);
    return 0;
}

/* One change: a byte, a run cut out, a run repeated, or a number that readers trip over. */
static size_t fuzz_mutate(unsigned char *bytes, size_t size, uint64_t *state)
{
    static const char *const words[] = {"0",   "-1", "1e308", "2147483648", "9223372036854775807",
                                        "nan", "{",  "}",     "\n",         "0x"};
    size_t at = size ? fuzz_random(state) % size : 0, run = fuzz_random(state) % 16 + 1;
    const char *word = words[fuzz_random(state) % 10];
    run = run < size - at ? run : size - at;
    switch (fuzz_random(state) % 4) {
    case 0:
        if (size)
            bytes[at] = (unsigned char)fuzz_random(state);
        return size;
    case 1:
        memmove(bytes + at, bytes + at + run, size - at - run);
        return size - run;
    case 2:
        memmove(bytes + at + run, bytes + at, size - at);
        return size + run;
    default:
        memmove(bytes + at + strlen(word), bytes + at, size - at);
        memcpy(bytes + at, word, strlen(word));
        return size + strlen(word);
    }
}

/* fuzz_one for some seconds; the input is in a file at every call. */
static int fuzz_main(int count, char **arguments, const char *name, const char *suffix,
                     void (*fuzz_one)(const char *path, const unsigned char *bytes, size_t size))
{
    static unsigned char bytes[FUZZ_SIZE + 1024];
    const char *given = getenv("FUZZ_SEED");
    uint64_t state = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL), tries = 0;
    char path[64];
    fuzz_corpus.suffix = suffix;
    for (int i = 2; i < count; i++)
        nftw(arguments[i], fuzz_visit, 16, FTW_PHYS);
    if (fuzz_corpus.count == 0)
        fuzz_keep("", 0);
    snprintf(path, sizeof path, "build/fuzz-%s.input", name);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0)
        return perror(path), 1;
    printf("fuzz %s: %d seed files, random seed %llu\n", name, fuzz_corpus.count, (unsigned long long)state);
    for (time_t end = time(NULL) + (count > 1 ? atoi(arguments[1]) : 10); time(NULL) < end; tries++) {
        int seed = (int)(fuzz_random(&state) % (uint64_t)fuzz_corpus.count);
        size_t size = fuzz_corpus.size[seed];
        memcpy(bytes, fuzz_corpus.bytes[seed], size);
        for (uint64_t changes = fuzz_random(&state) % 8 + 1; changes > 0 && size < FUZZ_SIZE; changes--)
            size = fuzz_mutate(bytes, size, &state);
        if (ftruncate(file, 0) || pwrite(file, bytes, size, 0) != (ssize_t)size)
            return perror(path), 1;
        fuzz_one(path, bytes, size);
    }
    close(file);
    unlink(path);
    printf("fuzz %s: %llu inputs, none crashed\n", name, (unsigned long long)tries);
    return 0;
}

#endif
