/* disk_space.h - the room on the disk of a data directory. */
#ifndef CLAVE_RUNTIME_STORE_DISK_SPACE_H
#define CLAVE_RUNTIME_STORE_DISK_SPACE_H

#include <stdint.h>

struct disk_space {
    int64_t free_bytes; /* that this user may write; below 0: not known */
    int64_t total_bytes;
};
/* Of the file system that an open file or directory is on. The thread of the snapshots measures,
 * since a network file system may not answer. */
struct disk_space clave__disk_space_measure(int fd);

#endif
