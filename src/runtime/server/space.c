/* space.c - measures and judges the room on a disk (space.h): the thread of the snapshots measures,
 * since a network file system may not answer, and uv_server.c tells the operator. What is not known
 * is never low. */
#include "runtime/server/space.h"

#include <sys/statvfs.h>

struct space clave__space_measure(int fd)
{
    struct statvfs v;
    if (fstatvfs(fd, &v) != 0)
        return (struct space){-1, -1};
    return (struct space){(int64_t)v.f_bavail * (int64_t)v.f_frsize,
                          (int64_t)v.f_blocks * (int64_t)v.f_frsize};
}

bool clave__space_is_low(const struct space *s, bool was_low)
{
    return s->free_bytes >= 0 && s->free_bytes < s->total_bytes / (was_low ? 8 : 10);
}
