/* private: fpac loads code from its folders, so it trusts only files and folders that no other user can write. */
#ifndef FPAC_BASE_PRIVATE_H
#define FPAC_BASE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

/* True if the folder (or regular file) at path is no symbolic link, belongs to this process's user and cannot be
 * written by others. Else `reason`, a text of at most `size` bytes, names the path and says why not. */
bool folder_is_private(const char *path, char *reason, size_t size);
bool file_is_private(const char *path, char *reason, size_t size);

/* Cut a suffix of the path that would make the system follow a link at its end ("link/", "link/."). */
void path_trim(char *path);

#endif
