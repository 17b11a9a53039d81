/* local_start.h - the client's side of "local:" (local_paths.h): finds this user's server, or
 * starts it. */
#ifndef CLAVE_RUNTIME_CLIENT_LOCAL_START_H
#define CLAVE_RUNTIME_CLIENT_LOCAL_START_H

#include <stdbool.h>
#include <stddef.h>

/* Sets the program to start as `PROGRAM serve --local DIR`; the program itself sets
 * "/proc/self/exe" when it starts. If it is not set: $CLAVE_BIN, else "clave" in PATH. The string
 * must stay valid. */
void clave__local_set_program(const char *program);

/* Returns a connected, non-blocking descriptor, after starting the server if nothing listens; or
 * -1, in which case `fault` says why, and `for_good` whether that lasts until the user corrects it.
 * Blocks for a few seconds at most. Any thread. */
int clave__local_dial(bool *for_good, char *fault, size_t cap);

#endif
