/* process_usage.c - see process_usage.h; the thread of the snapshots measures now and then. */
#include "runtime/process_usage.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static int64_t process_count_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int64_t n = 0;
    if (!dir)
        return -1;
    for (const struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n - 1; /* not the one that looks */
}

static int64_t process_most_open(void)
{
    struct rlimit limit;
    bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return known ? (int64_t)limit.rlim_cur : -1;
}

static int64_t process_resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long long pages = -1;
    if (!f)
        return -1;
    if (fscanf(f, "%*d %lld", &pages) != 1)
        pages = -1;
    fclose(f);
    return pages >= 0 ? pages * sysconf(_SC_PAGESIZE) : -1;
}

struct process_files clave__process_measure(void)
{
    return (struct process_files){.open_files = process_count_open(),
                                  .max_files = process_most_open(),
                                  .resident_bytes = process_resident_bytes()};
}
