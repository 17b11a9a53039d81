/* disk_space.c - measures the room on a disk (disk_space.h). */
#include "runtime/store/disk_space.h"

#include <sys/statvfs.h>

struct disk_space clave__disk_space_measure(int fd)
{
    struct statvfs v;
    if (fstatvfs(fd, &v) != 0)
        return (struct disk_space){-1, -1};
    return (struct disk_space){(int64_t)v.f_bavail * (int64_t)v.f_frsize,
                               (int64_t)v.f_blocks * (int64_t)v.f_frsize};
}
