/* unfinished: temporary files and folders, and process groups, that this process would leave behind if it ended
 * now. The library notes them here and installs no signal handler; a command that a signal terminates calls
 * unfinished_remove first. The table is of fixed size: paths that do not fit are removed by folder_sweep a day
 * later (file.h). */
#ifndef FPAC_BASE_UNFINISHED_H
#define FPAC_BASE_UNFINISHED_H

#include <sys/types.h>

typedef enum unfinished_kind { UNFINISHED_FILE, UNFINISHED_FOLDER, UNFINISHED_GROUP } unfinished_kind;

/* Note a path that is about to be created, or (path "") the process group with leader pid. Returns the index for
 * unfinished_end; -1: the table is full. May be called by any thread. */
int unfinished_begin(unfinished_kind kind, const char *path, pid_t pid);
void unfinished_end(int number);
void unfinished_end_path(const char *path);

/* Kill the groups and remove the paths that this process has noted, not those of a parent that it was forked from.
 * Safe in a signal handler. */
void unfinished_remove(void);

#endif
