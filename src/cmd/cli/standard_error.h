/* standard_error.h - the stream to which all messages are written. Normally a write waits until
 * standard error accepts it, as in any program. While a lock is held it does not: the end of a lock
 * must not wait for a log collector that hangs, or for a terminal that was stopped with ^S. */
#ifndef CLAVE_CMD_CLI_STANDARD_ERROR_H
#define CLAVE_CMD_CLI_STANDARD_ERROR_H

#include <stdbool.h>
#include <stdio.h>

/* Whether standard error goes to systemd's journal, which records the time and the priority of each
 * line. */
bool standard_error_is_journal(void);
/* The prefix from which the journal takes the priority of a line (sd-daemon(3)), such as "<4>";
 * `level` is CLAVE_LOG_*. "" for all other readers, which would show it. */
const char *standard_error_priority(int level);

/* The stream. Call this each time, since it changes. Whatever is written to it has to be
 * flushed. */
FILE *standard_error(void);
/* From now on writes do not block. What cannot be written at once is kept and written with the next
 * message, or dropped if it is too much. Affects this process only. */
void standard_error_never_wait(void);
/* Tries to write what was kept. */
void standard_error_retry(void);
/* Waits a moment for what was kept to be written, and lets later writes block again. */
void standard_error_may_wait(void);

#endif
