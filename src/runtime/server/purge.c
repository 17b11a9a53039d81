/* purge.c - removes the files that no recovery needs any more (purge.h); the disk's thread calls it
 * after each snapshot. Snapshots go before the logs that continue them: whatever a crash leaves can
 * be recovered. */
#include "runtime/server/purge.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/server/file_names.h"

enum { KEEP_SNAPSHOTS = 3 };

static int purge_one(int dir, enum file_kind kind, int64_t zxid, int64_t *bytes)
{
    char name[FILE_NAME_SIZE];
    struct stat st;
    clave__file_name(name, kind, zxid);
    if (fstatat(dir, name, &st, 0) != 0 || unlinkat(dir, name, 0) != 0)
        return errno == ENOENT ? 0 : errno;
    *bytes += st.st_size;
    return 0;
}

int clave__purge(int dir, struct purged *out)
{
    struct file_list snapshots, logs;
    *out = (struct purged){0};
    int err = clave__file_list_read(dir, FILE_SNAPSHOT, &snapshots);
    if (err != 0 || snapshots.n <= KEEP_SNAPSHOTS) {
        clave__file_list_free(&snapshots);
        return err;
    }
    size_t surplus = snapshots.n - KEEP_SNAPSHOTS;
    int64_t oldest = snapshots.zxid[surplus];
    for (size_t i = 0; i < surplus && err == 0; i++)
        err = purge_one(dir, FILE_SNAPSHOT, snapshots.zxid[i], &out->snapshots);
    clave__file_list_free(&snapshots);
    if (err == 0)
        err = clave__file_list_read(dir, FILE_LOG, &logs);
    if (err != 0)
        return err;
    for (size_t i = 0; i + 1 < logs.n && err == 0 && logs.zxid[i + 1] <= oldest; i++)
        err = purge_one(dir, FILE_LOG, logs.zxid[i], &out->logs);
    clave__file_list_free(&logs);
    return err;
}
