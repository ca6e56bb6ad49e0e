/* process_start: what the command does as a process, before it parses its command line. */
#ifndef FPAC_COMMAND_PROCESS_START_H
#define FPAC_COMMAND_PROCESS_START_H

/* Open descriptors 0, 1 and 2 if the caller has closed them: else the next file opened would become standard
 * output. Writing to one that was closed fails. */
void open_standard_streams(void);

/* On INT, TERM, HUP and PIPE, unfinished files are removed (base/unfinished.h) before the signal ends the process;
 * a signal that the caller ignores remains ignored. Children can be waited for, even if the caller ignores
 * SIGCHLD. */
void catch_signals(void);

#endif
