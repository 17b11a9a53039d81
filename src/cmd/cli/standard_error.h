/* standard_error.h - the stream that all messages are written to. A message waits until standard
 * error takes it, as anybody's does, unless something is held: a lock's end must not wait for a
 * collector of logs that hangs, nor for a terminal that was stopped with ^S. */
#ifndef CLAVE_CMD_CLI_STANDARD_ERROR_H
#define CLAVE_CMD_CLI_STANDARD_ERROR_H

#include <stdio.h>

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
