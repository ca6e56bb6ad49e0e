/* model_file: weights in one file that an engine maps and never copies.
 *
 *   "fpaw 1", a count, so many entries, then the matrices: float32, C order, each from an offset that 64 divides. */
#ifndef MODEL_FILE_H
#define MODEL_FILE_H

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MODEL_ALIGNMENT = 64, MODEL_AXES = 3 };

typedef struct model_header {
    char magic[8]; /* "fpaw 1" */
    int64_t count;
} model_header;

typedef struct model_entry {
    char name[64];
    int64_t axes, shape[MODEL_AXES]; /* [heads, rows, d], [rows, d] or [d] */
    int64_t offset;                  /* bytes from the beginning of the file */
} model_entry;

typedef struct model_file {
    const char *bytes; /* mapped, read only; NULL: there is none */
    int64_t size;
} model_file;

static inline int64_t model_numbers(const model_entry *entry)
{
    int64_t numbers = 1;
    for (int64_t axis = 0; axis < entry->axes; axis++)
        numbers *= entry->shape[axis];
    return numbers;
}

static inline const model_entry *model_entries(const model_file *file)
{
    return (const model_entry *)(const void *)(file->bytes + sizeof(model_header));
}

static inline int64_t model_count(const model_file *file)
{
    return ((const model_header *)(const void *)file->bytes)->count;
}

/* Whether all that the header names lies inside of the file: it may come from anywhere. */
static inline int model_is_whole(const model_file *file)
{
    if (file->size < (int64_t)sizeof(model_header) || memcmp(file->bytes, "fpaw 1", 7) != 0)
        return 0;
    const int64_t room = (file->size - (int64_t)sizeof(model_header)) / (int64_t)sizeof(model_entry);
    if (model_count(file) < 0 || model_count(file) > room)
        return 0;
    for (int64_t i = 0; i < model_count(file); i++) {
        const model_entry *entry = &model_entries(file)[i];
        int64_t numbers = file->size / 4;
        if (entry->axes < 1 || entry->axes > MODEL_AXES || entry->offset < 0 || entry->offset > file->size ||
            entry->offset % MODEL_ALIGNMENT || !memchr(entry->name, 0, sizeof entry->name))
            return 0;
        for (int64_t axis = 0; axis < entry->axes; axis++) {
            if (entry->shape[axis] < 1 || entry->shape[axis] > numbers)
                return 0;
            numbers /= entry->shape[axis];
        }
        if (model_numbers(entry) > (file->size - entry->offset) / 4)
            return 0;
    }
    return 1;
}

/* 0: done; the file is unmapped with model_close. */
static inline int model_open(const char *path, model_file *file)
{
    struct stat facts;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *bytes = MAP_FAILED;
    file->bytes = NULL;
    if (fd >= 0 && fstat(fd, &facts) == 0 && facts.st_size > 0)
        bytes = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd); /* the mapping stays */
    if (bytes == MAP_FAILED)
        return -1;
    file->bytes = (const char *)bytes;
    file->size = (int64_t)facts.st_size;
    if (model_is_whole(file))
        return 0;
    munmap(bytes, (size_t)facts.st_size);
    file->bytes = NULL;
    return -1;
}

static inline void model_close(model_file *file)
{
    if (file->bytes)
        munmap((void *)(uintptr_t)file->bytes, (size_t)file->size);
    file->bytes = NULL;
}

/* The matrix of that name, or NULL. */
static inline const model_entry *model_find(const model_file *file, const char *name)
{
    for (int64_t i = 0; i < model_count(file); i++) {
        if (!strcmp(model_entries(file)[i].name, name))
            return &model_entries(file)[i];
    }
    return NULL;
}

#endif
