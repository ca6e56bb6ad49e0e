/* unfinished: what this process would leave behind if it ended now: temporary files and folders, and groups of
 * processes. The library notes them here and catches no signal; a command that is told to end by one calls
 * unfinished_remove first. What does not fit into the table is swept a day later (file.h). */
#ifndef FPAC_BASE_UNFINISHED_H
#define FPAC_BASE_UNFINISHED_H

#include <sys/types.h>

typedef enum unfinished_kind { UNFINISHED_FILE, UNFINISHED_FOLDER, UNFINISHED_GROUP } unfinished_kind;

/* Note a path that is about to be made, or (path "") the group of processes that pid leads. The number to end it
 * with; -1 when there is no room. Any thread may call these. */
int unfinished_begin(unfinished_kind kind, const char *path, pid_t pid);
void unfinished_end(int number);
void unfinished_end_path(const char *path);

/* Kill the groups and remove the paths that this process noted, not those of the one that it was forked from.
 * Safe in a signal's handler. */
void unfinished_remove(void);

#endif
