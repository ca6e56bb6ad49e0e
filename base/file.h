/* file: whole files, read at once and written whole or not at all. */
#ifndef FPAC_BASE_FILE_H
#define FPAC_BASE_FILE_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct fpa_bytes {
    const void *bytes;
    size_t size;
} fpa_bytes;

typedef struct fpa_file {
    unsigned char *bytes; /* malloc'ed; bytes[size] is 0, so that a text is a string */
    size_t size;
    bool missing; /* the read failed because there is no such file */
} fpa_file;

/* Files and folders that are not finished are named FILE_TEMPORARY and 16 hexadecimal digits. A process that is
 * killed can leave one behind. */
#define FILE_TEMPORARY ".fpac-"
bool file_is_temporary(const char *name);

/* Read a regular file of at most 1 GiB. The caller frees file->bytes. */
fpa_status file_read(const char *path, fpa_file *file, fpa_error *error);

/* Write the parts, one after another, to folder/name: to a temporary file, then fsync, rename, fsync of the folder.
 * On failure the folder is unchanged, unless only the last fsync failed: then the new file is in place. A new file
 * has the given mode less the process's umask; a file that is replaced keeps its mode and, if this process may set
 * it, its owner. */
fpa_status file_write(const char *folder, const char *name, mode_t mode, const fpa_bytes *parts, int count,
                      fpa_error *error);

/* Write all bytes, or all parts, to a descriptor. file_close closes one after work that went well (fine) or not,
 * and returns whether all went well, closing included. False: errno has the first reason. */
bool file_write_all(int fd, const void *bytes, size_t size);
bool file_write_parts(int fd, const fpa_bytes *parts, int count);
bool file_close(int fd, bool fine);

/* "folder/name", malloc'ed, or NULL. */
char *file_path(const char *folder, const char *name);

/* Makes a folder, and the missing ones above it; false: errno has the reason. */
bool folder_create(const char *path, mode_t mode);
/* A new folder under $TMPDIR (else /tmp) that only this user can enter; *path is malloc'ed. */
fpa_status folder_create_private(char **path, fpa_error *error);
/* Remove a folder with all that is in it, or a file. */
void folder_remove(const char *path);
/* Remove temporary files and folders (FILE_TEMPORARY) in a folder that belong to this user and are older than a
 * day. */
void folder_sweep(const char *folder);

#endif
