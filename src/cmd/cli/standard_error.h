/* standard_error.h - the stream that all messages are written to. A message waits until standard
 * error takes it, as anybody's does, unless something is held: a lock's end must not wait for a
 * collector of logs that hangs, nor for a terminal that was stopped with ^S. */
#ifndef CLAVE_CMD_CLI_STANDARD_ERROR_H
#define CLAVE_CMD_CLI_STANDARD_ERROR_H

#include <stdbool.h>
#include <stdio.h>

/* Whether systemd's journal reads it: it has a time for each line, and a priority. */
bool standard_error_is_journal(void);
/* What the journal takes from the beginning of a line as its priority, by CLAVE_LOG_*
 * (sd-daemon(3)):
 * "<4>". Other readers would see it: "" for them. */
const char *standard_error_priority(int level);

/* Ask each time. What is written to it has to be flushed. */
FILE *standard_error(void);
/* From here on nothing that is written to it waits: what cannot be written at once is kept, and
 * written with the next message, or dropped when it is too much. For this process only. */
void standard_error_never_wait(void);
/* Tries to write what was kept. */
void standard_error_retry(void);
/* Gives what was kept a moment to be written, and waits again from here on. */
void standard_error_may_wait(void);

#endif
