/* scratch: a temporary folder and a recorder of log lines, for tests. */
#ifndef FPAC_TESTS_SCRATCH_H
#define FPAC_TESTS_SCRATCH_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "runtime/api/fpa.h"

/* "/tmp/fpac-test-XXXXXX", made; text must hold 64 bytes. */
static inline void scratch_make(char *folder)
{
    strcpy(folder, "/tmp/fpac-test-XXXXXX");
    if (!mkdtemp(folder)) {
        perror("mkdtemp");
        abort();
    }
}

static inline void scratch_remove(const char *folder)
{
    folder_remove(folder);
}

/* Number of names in a folder that end so (NULL: all but . and ..); -1: there is no such folder. */
static inline int scratch_count(const char *folder, const char *suffix)
{
    int count = 0;
    DIR *list = opendir(folder);
    if (!list)
        return -1;
    for (struct dirent *item = readdir(list); item; item = readdir(list)) {
        size_t length = strlen(item->d_name), wanted = suffix ? strlen(suffix) : 0;
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0 || length < wanted)
            continue;
        count += !suffix || strcmp(item->d_name + length - wanted, suffix) == 0;
    }
    closedir(list);
    return count;
}

static inline void scratch_write(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        abort();
    }
}

/* What a library call said through fpa_options.log. */
typedef struct scratch_log {
    int lines;
    char text[8192]; /* the lines, each with its newline, as far as they fit */
} scratch_log;

static inline void scratch_record(void *user, const char *line)
{
    scratch_log *log = user;
    size_t used = strlen(log->text);
    log->lines++;
    snprintf(log->text + used, sizeof log->text - used, "%s\n", line);
}

#endif
