/* line_file.h - a log whose lines are appended to a file, a pipe or a terminal. What cannot be
 * written is dropped and counted, and a line that was torn is ended before the next one begins. */
#ifndef CLAVE_RUNTIME_LINE_FILE_H
#define CLAVE_RUNTIME_LINE_FILE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/buf.h"

struct line_file {
    int fd;
    bool torn;         /* the last thing written does not end with a newline */
    atomic_bool waits; /* wait as long as a pipe is full; otherwise at most a second. Any thread may
                          change it */
    uint64_t lost;     /* lines that could not be written; the user resets it to 0 */
};

/* Writes whole lines, and empties the buffer. Returns 0, or the errno because of which some were
 * lost. */
int clave__line_file_write(struct line_file *f, struct buf *lines);

#endif
