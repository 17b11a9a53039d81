/* recover.c - loads the files of a data directory; datadir.h declares it. What was acknowledged is
 * never dropped unless the user says so: whatever does not fit is refused with a text that says
 * what to do. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "runtime/server/datadir.h"
#include "runtime/server/file_io.h"
#include "runtime/server/file_names.h"
#include "runtime/server/snapshot_file.h"

struct recovery {
    struct datadir *d;
    struct server *s;
    const struct fault *f;
    struct file_list snapshots;
    struct file_list logs;
    int64_t newest;            /* zxid of the newest snapshot, readable or not; -1: there is none */
    int64_t from;              /* zxid of the snapshot that was loaded */
    int64_t newest_compressed; /* -1: there is none */
    char compressed[FILE_NAME_SIZE];
};

/* ---- files ---------------------------------------------------------------------------------- */

static clave_err unreadable(const struct recovery *r, int number, const char *name)
{
    char path[PATH_MAX + FILE_NAME_SIZE + 16];
    snprintf(path, sizeof path, "%s/version-2/%s", r->d->path, name);
    return clave__start_error_errno(r->f, number, "cannot read", path);
}

static void note_compressed(struct recovery *r, const char *name, int64_t zxid)
{
    clave__log(&r->d->log, CLAVE_LOG_WARN,
               "%s/version-2/%s is compressed, which clave does not read", r->d->path, name);
    if (zxid > r->newest_compressed) {
        r->newest_compressed = zxid;
        snprintf(r->compressed, sizeof r->compressed, "%.*s", FILE_NAME_SIZE - 1, name);
    }
}

/* What it holds may exist nowhere else. */
static clave_err compressed_is_needed(const struct recovery *r)
{
    return clave__start_error(
        r->f, CLAVE_ECORRUPT,
        "%s/version-2/%s is compressed, which clave does not read, and nothing "
        "else there leads to its zxid: start Apache ZooKeeper on it once with "
        "-Dzookeeper.snapshot.compression.method= (empty) and stop it",
        r->d->path, r->compressed);
}

/* Looks at every name once, and logs those that are unknown. */
static clave_err survey(struct recovery *r)
{
    int err = clave__file_list_read(r->d->dir, FILE_SNAPSHOT, &r->snapshots);
    if (err == 0)
        err = clave__file_list_read(r->d->dir, FILE_LOG, &r->logs);
    int fd = err == 0 ? openat(r->d->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        err = err ? err : errno;
        if (fd >= 0)
            close(fd);
        return unreadable(r, err, ".");
    }
    const struct dirent *e;
    int64_t zxid;
    while ((e = readdir(dir))) {
        enum file_kind kind = clave__file_kind(e->d_name, &zxid);
        if ((kind == FILE_SNAPSHOT || kind == FILE_COMPRESSED) && zxid > r->newest)
            r->newest = zxid;
        if (kind == FILE_UNFINISHED && !r->d->read_only)
            unlinkat(r->d->dir, e->d_name, 0);
        if (kind == FILE_COMPRESSED)
            note_compressed(r, e->d_name, zxid);
        if (kind == FILE_UNKNOWN && e->d_name[0] != '.')
            clave__log(&r->d->log, CLAVE_LOG_WARN, "%s/version-2/%s is left alone: unknown",
                       r->d->path, e->d_name);
    }
    closedir(dir);
    return CLAVE_OK;
}

/* ---- snapshots ------------------------------------------------------------------------------ */

static clave_err no_snapshot(const struct recovery *r)
{
    const char *path = r->d->path;
    if (r->newest_compressed >= 0)
        return compressed_is_needed(r);
    if (r->newest >= 0)
        return clave__start_error(
            r->f, CLAVE_ECORRUPT,
            "no snapshot in %s/version-2 can be read, the newest is snapshot.%" PRIx64
            ": restore the directory from a copy, or name an empty one to start "
            "anew",
            path, (uint64_t)r->newest);
    return clave__start_error(r->f, CLAVE_ECORRUPT,
                              "%s/version-2 has logs (from log.%" PRIx64
                              ") but no snapshot: restore its "
                              "snapshots from a copy, or name an empty directory to start afresh",
                              path, (uint64_t)r->logs.zxid[0]);
}

static clave_err write_first_snapshot(struct recovery *r)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    struct snapshot_file file = {.fd = -1};
    struct buf image;
    bool finished = false;
    int64_t zxid;
    clave__buf_init(&image, &mem, SIZE_MAX / 2);
    clave_err err = clave__server_save_snapshot(r->s, &image, &zxid);
    int fault = 0;
    if (err == CLAVE_OK)
        fault = clave__snapshot_file_begin(&file, r->d->dir, zxid, clave__buf_bytes(&image),
                                           clave__buf_len(&image));
    while (err == CLAVE_OK && fault == 0 && !finished)
        fault = clave__snapshot_file_step(&file, &finished);
    if (fault != 0) {
        clave__snapshot_file_abort(&file);
        err =
            clave__start_error_errno(r->f, fault, "cannot write the first snapshot in", r->d->path);
    } else if (err != CLAVE_OK) {
        clave__start_error(r->f, err, "cannot make the first snapshot: %s", clave_strerror(err));
    }
    clave__buf_fini(&image);
    return err;
}

static clave_err load_one(struct recovery *r, int64_t zxid, char *fault, size_t cap)
{
    char name[FILE_NAME_SIZE];
    struct file_content c;
    clave__file_name(name, FILE_SNAPSHOT, zxid);
    int number = clave__file_map(r->d->dir, name, &c);
    if (number != 0)
        return unreadable(r, number, name);
    clave__server_snapshot_named(r->s, zxid);
    clave_err err = clave__server_load_snapshot(r->s, c.p ? c.p : "", c.n, fault, cap);
    clave__file_unmap(&c);
    if (err == CLAVE_ECORRUPT)
        clave__log(&r->d->log, CLAVE_LOG_WARN, "%s/version-2/%s is damaged (%s): trying older ones",
                   r->d->path, name, fault);
    else if (err != CLAVE_OK)
        clave__start_error(r->f, err, "cannot load %s/version-2/%s: %s", r->d->path, name,
                           clave_strerror(err));
    return err;
}

/* The newest intact snapshot, as Apache does. Whether the logs still reach back to an older one is
 * seen when they are read. */
static clave_err load_newest(struct recovery *r)
{
    char fault[200] = "";
    if (r->newest < 0 && r->logs.n == 0) {
        r->from = 0;
        if (r->d->read_only)
            return clave__start_error(r->f, CLAVE_ECORRUPT, "%s has no snapshot and no log",
                                      r->d->path);
        return write_first_snapshot(r);
    }
    for (size_t i = r->snapshots.n; i-- > 0;) {
        r->from = r->snapshots.zxid[i];
        clave_err err = load_one(r, r->from, fault, sizeof fault);
        if (err != CLAVE_ECORRUPT)
            return err;
    }
    return no_snapshot(r);
}

/* ---- logs ---------------------------------------------------------------------------------------
 */

static bool all_zero(const uint8_t *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

static clave_err cut_off(struct recovery *r, const char *name, size_t at, size_t n)
{
    int fd = openat(r->d->dir, name, O_WRONLY | O_CLOEXEC);
    bool cut = fd >= 0 && ftruncate(fd, (off_t)at) == 0 && fsync(fd) == 0;
    int number = errno;
    if (fd >= 0)
        close(fd);
    if (!cut) {
        char path[PATH_MAX + FILE_NAME_SIZE + 16];
        snprintf(path, sizeof path, "%s/version-2/%s", r->d->path, name);
        return clave__start_error_errno(r->f, number, "cannot cut the torn end off", path);
    }
    clave__log(&r->d->log, CLAVE_LOG_WARN,
               "%s/version-2/%s: cut off the last %zu bytes, from offset %zu: what was being "
               "written when the power failed, so never acknowledged",
               r->d->path, name, n, at);
    return CLAVE_OK;
}

/* A file without its header: the crash came before the first record. Apache would not start on it.
 */
static clave_err without_header(struct recovery *r, const char *name, size_t n, bool last)
{
    if (!last)
        return clave__start_error(
            r->f, CLAVE_ECORRUPT,
            "%s/version-2/%s is damaged: only %zu bytes, but newer logs follow; "
            "restore it from a copy",
            r->d->path, name, n);
    if (r->d->read_only)
        return CLAVE_OK;
    if (unlinkat(r->d->dir, name, 0) != 0 || fsync(r->d->dir) != 0)
        return unreadable(r, errno, name);
    clave__log(&r->d->log, CLAVE_LOG_WARN,
               "%s/version-2/%s: removed, it had %zu bytes and no record", r->d->path, name, n);
    return CLAVE_OK;
}

static clave_err damaged_log(const struct recovery *r, const char *name,
                             const struct log_replay *out)
{
    if (!out->lost_tail)
        return clave__start_error(r->f, CLAVE_ECORRUPT,
                                  "%s/version-2/%s is damaged: %s; restore it from a copy",
                                  r->d->path, name, out->fault);
    return clave__start_error(
        r->f, CLAVE_ECORRUPT,
        "%s/version-2/%s is damaged: %s; restore it from a copy (what was "
        "acknowledged may follow that offset, so clave does not cut it off; to "
        "continue without it: truncate -s %zu %s/version-2/%s)",
        r->d->path, name, out->fault, out->valid_len, r->d->path, name);
}

/* The name of a log tells where its writer continued. Only one named by the very next zxid replaces
 * what is after the damage: the first log of a later leader comes after all of it, too. */
static bool next_goes_on(const struct recovery *r, size_t i)
{
    struct server_stats st;
    clave__server_stats(r->s, &st);
    return i + 1 < r->logs.n && r->logs.zxid[i + 1] == st.last_zxid + 1;
}

/* A killed server of an ensemble leaves such a record, and usually its leader has told it the
 * outcome. So does a user who truncated the file. */
static void warn_unfinished(const struct recovery *r, const char *name, size_t at)
{
    clave__log(&r->d->log, CLAVE_LOG_WARN,
               "%s/version-2/%s: the record at offset %zu was never finished, and the next log is "
               "of a later leader: nothing here tells whether that leader had it",
               r->d->path, name, at);
}

static clave_err replay_one(struct recovery *r, size_t i)
{
    char name[FILE_NAME_SIZE];
    struct file_content c;
    struct log_replay out = {0};
    bool last = i + 1 == r->logs.n;
    clave__file_name(name, FILE_LOG, r->logs.zxid[i]);
    int number = clave__file_map(r->d->dir, name, &c);
    if (number != 0)
        return unreadable(r, number, name);
    clave_err err = clave__server_replay_log(r->s, c.p ? c.p : "", c.n, &out);
    size_t tail = c.n - out.valid_len;
    /* Apache pads with zeros, and continues in a new file after a tail that it found torn. */
    bool unfinished =
        err == CLAVE_OK && out.torn && !all_zero((const uint8_t *)c.p + out.valid_len, tail);
    bool cut = unfinished && last && !r->d->read_only;
    clave__file_unmap(&c);
    if (err == CLAVE_OK && out.valid_len < SERVER_LOG_HEADER)
        return without_header(r, name, tail, last);
    if (err == CLAVE_ECORRUPT && out.lost_tail && next_goes_on(r, i))
        return CLAVE_OK;
    if (err == CLAVE_ECORRUPT)
        return damaged_log(r, name, &out);
    if (err != CLAVE_OK)
        return clave__start_error(r->f, err, "cannot read %s/version-2/%s: %s", r->d->path, name,
                                  clave_strerror(err));
    if (unfinished && !last && !next_goes_on(r, i))
        warn_unfinished(r, name, out.valid_len);
    return cut ? cut_off(r, name, out.valid_len, tail) : CLAVE_OK;
}

/* A server that was killed between a write and its sync leaves a batch that can be read but is not
 * on disk; from now on it is shown to clients, so it is synced. */
static clave_err sync_newest(const struct recovery *r)
{
    char name[FILE_NAME_SIZE];
    if (r->d->read_only || r->logs.n == 0)
        return CLAVE_OK;
    clave__file_name(name, FILE_LOG, r->logs.zxid[r->logs.n - 1]);
    int fd = openat(r->d->dir, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) /* it had no record, and was removed */
        return CLAVE_OK;
    bool synced = fd >= 0 && fdatasync(fd) == 0;
    int number = errno;
    if (fd >= 0)
        close(fd);
    return synced ? CLAVE_OK : unreadable(r, number, name);
}

static clave_err replay(struct recovery *r)
{
    struct server_stats st;
    size_t first = 0;
    clave_err err = CLAVE_OK;
    while (first + 1 < r->logs.n && r->logs.zxid[first + 1] <= r->from + 1)
        first++;
    for (size_t i = first; i < r->logs.n && err == CLAVE_OK; i++)
        err = replay_one(r, i);
    clave__server_stats(r->s, &st);
    if ((err == CLAVE_OK || err == CLAVE_ECORRUPT) && st.last_zxid < r->newest_compressed)
        return compressed_is_needed(r);
    if (err == CLAVE_OK)
        err = sync_newest(r);
    if (err != CLAVE_OK)
        return err;
    if (st.last_zxid < r->newest)
        return clave__start_error(
            r->f, CLAVE_ECORRUPT,
            "%s/version-2: the newest snapshot, snapshot.%" PRIx64
            ", cannot be read, and from snapshot.%" PRIx64 " the logs lead to 0x%" PRIx64
            " only: restore the directory from a copy, or remove the newer "
            "snapshot to continue without what came after",
            r->d->path, (uint64_t)r->newest, (uint64_t)r->from, (uint64_t)st.last_zxid);
    return CLAVE_OK;
}

clave_err clave__datadir_recover(struct datadir *d, struct server *s, const struct fault *f)
{
    struct recovery r = {.d = d, .s = s, .f = f, .newest = -1, .newest_compressed = -1};
    clave_err err = survey(&r);
    if (err == CLAVE_OK)
        err = load_newest(&r);
    if (err == CLAVE_OK)
        err = replay(&r);
    clave__file_list_free(&r.snapshots);
    clave__file_list_free(&r.logs);
    return err;
}
