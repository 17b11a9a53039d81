/* zoocfg_dirs.c - see zoocfg_dirs.h. */
#include "cmd/serve/zoocfg_dirs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool zoocfg_dirs_same(const char *a, const char *b)
{
    struct stat one, other;
    return strcmp(a, b) == 0 || (stat(a, &one) == 0 && stat(b, &other) == 0 &&
                                 one.st_dev == other.st_dev && one.st_ino == other.st_ino);
}

/* Has dir/version-2 a file whose name begins so? A directory that is missing has none. */
static clave_err zoocfg_dirs_look(const char *dir, const char *prefix, bool *found,
                                  const struct fault *f)
{
    char path[PATH_MAX];
    *found = false;
    if (snprintf(path, sizeof path, "%s/version-2", dir) >= (int)sizeof path)
        return clave__start_error(f, CLAVE_EINVAL, "%.40s... is too long", dir);
    DIR *d = opendir(path);
    if (!d && (errno == ENOENT || errno == ENOTDIR))
        return CLAVE_OK;
    if (!d)
        return clave__start_error(f, CLAVE_EINVAL, "cannot open %s: %s", path, strerror(errno));
    const struct dirent *e;
    while (!*found && (e = readdir(d)))
        *found = strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    closedir(d);
    return CLAVE_OK;
}

/* Where clave has served before, what there is of logs is in the data directory. */
static bool zoocfg_dirs_are_ours(const char *data_dir)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/clave.lock", data_dir) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

clave_err zoocfg_dirs_check(const char *data_dir, const char *log_dir, const struct fault *f)
{
    bool logs_there, logs_here, snapshots;
    clave_err err = zoocfg_dirs_look(log_dir, "log.", &logs_there, f);
    if (err == CLAVE_OK)
        err = zoocfg_dirs_look(data_dir, "log.", &logs_here, f);
    if (err == CLAVE_OK)
        err = zoocfg_dirs_look(data_dir, "snapshot.", &snapshots, f);
    if (err != CLAVE_OK)
        return err;
    if (logs_there)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "clave keeps snapshots and logs in one directory; move "
                                  "version-2/log.* to %s/version-2, and leave the line out",
                                  data_dir);
    if (snapshots && !logs_here && !zoocfg_dirs_are_ours(data_dir))
        return clave__start_error(f, CLAVE_EINVAL,
                                  "%s/version-2 has snapshots, but no logs are here or there: is "
                                  "a disk not mounted? If there are none, leave the line out",
                                  data_dir);
    return CLAVE_OK;
}
