/* space.h - the room on the disk of a data directory. */
#ifndef CLAVE_RUNTIME_SERVER_SPACE_H
#define CLAVE_RUNTIME_SERVER_SPACE_H

#include <stdbool.h>
#include <stdint.h>

struct space {
    int64_t free_bytes; /* that this user may write; below 0: not known */
    int64_t total_bytes;
};
/* Of the file system that an open file or directory is on. */
struct space clave__space_measure(int fd);
/* Whether it is too little, given whether it was: below a tenth, until there is an eighth again. */
bool clave__space_is_low(const struct space *s, bool was_low);

#endif
