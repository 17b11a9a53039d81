/* line_file.h - a log whose lines are appended to a file, a pipe or a terminal. What cannot be
 * written is dropped and counted, and a line that was torn is ended before the next one begins. */
#ifndef CLAVE_RUNTIME_LINE_FILE_H
#define CLAVE_RUNTIME_LINE_FILE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/buf.h"

struct line_file {
    int fd;
    bool torn;         /* what was written last is not the end of a line */
    atomic_bool waits; /* as long as a pipe is full; otherwise a second. Any thread may change it */
    uint64_t lost;     /* lines that could not be written; the user sets it to 0 */
};

/* Writes whole lines, and empties the buffer. 0, or the errno for which some were lost. */
int clave__line_file_write(struct line_file *f, struct buf *lines);

#endif
