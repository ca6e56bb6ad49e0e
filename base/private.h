/* private: what others could write, we would run: so only what is ours alone is trusted with code. */
#ifndef FPAC_BASE_PRIVATE_H
#define FPAC_BASE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the folder (or regular file) at path is no symbolic link, belongs to this process's user, and cannot be
 * written by others. Else reason says why not, with the path. */
bool folder_is_private(const char *path, char *reason, size_t size);
bool file_is_private(const char *path, char *reason, size_t size);

/* Cut what hides that the last part of a path is a link ("link/", "link/."). */
void path_trim(char *path);

#endif
