/* process_start: what the command does as a process, before it reads its line. */
#ifndef FPAC_COMMAND_PROCESS_START_H
#define FPAC_COMMAND_PROCESS_START_H

/* Give 0, 1 and 2 to something when the caller closed them: the next file opened would become standard output. A
 * write to one that was closed fails. */
void open_standard_streams(void);

/* On INT, TERM, HUP and PIPE, what is unfinished is removed (base/unfinished.h) before the process ends by the
 * signal; one that the caller ignores stays ignored. Children are waited for, whatever the caller ignores. */
void catch_signals(void);

#endif
