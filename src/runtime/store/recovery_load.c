/* recovery_load.c - loads the files of a data directory; declared in datadir.h.
 * server/store/recovery_plan.h decides which files to read, in which order, and what to make of
 * each. Here they are read, cut and synced, and whatever is refused gets a message that says what
 * to do. No message advises to cut or remove a file, because it may be the only one that has what a
 * client was told. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log_line.h"
#include "base/memory.h"
#include "runtime/store/datadir.h"
#include "runtime/store/file_io.h"
#include "runtime/store/file_names.h"
#include "server/store/recovery_plan.h"

struct recover {
    struct datadir *d;
    struct log log;
    struct server *s;
    const struct fault *f;
    enum recovery_start start;
    int64_t until; /* the zxid to reach; INT64_MAX: the last one */
    const struct datadir_taker *taker;
    struct recovery recovery;
    struct file_list snapshots;
    struct file_list logs;
    /* Zxid of the newest snapshot, whether or not it can be read; -1: there is none. */
    int64_t newest;
    int64_t newest_compressed; /* zxid of the newest compressed one; -1: there is none */
    char compressed[FILE_NAME_SIZE];
};

/* ---- files ---------------------------------------------------------------------------------- */

/* Logs a warning about a file, with its path. */
__attribute__((format(printf, 3, 4))) static void
recovery_log(const struct recover *r, const char *name, const char *fmt, ...)
{
    char path[PATH_MAX + FILE_NAME_SIZE + 16], text[1024];
    va_list ap;
    snprintf(path, sizeof path, "%s/version-2/%s", r->d->path, name);
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    clave__log_about(&r->log, CLAVE_LOG_WARN, &(struct log_about){.path = path}, "%s%s", path,
                     text);
}

static clave_err recovery_cannot(const struct recover *r, int number, const char *what,
                                 const char *name)
{
    char path[PATH_MAX + FILE_NAME_SIZE + 16];
    snprintf(path, sizeof path, "%s/version-2/%s", r->d->path, name);
    return clave__start_error_errno(r->f, number, what, path);
}

static void recovery_note_compressed(struct recover *r, const char *name, int64_t zxid)
{
    recovery_log(r, name, " is compressed, which clave does not read");
    if (zxid > r->newest_compressed) {
        r->newest_compressed = zxid;
        snprintf(r->compressed, sizeof r->compressed, "%.*s", FILE_NAME_SIZE - 1, name);
    }
}

/* What a compressed snapshot holds may exist nowhere else. */
static clave_err recovery_compressed_is_needed(const struct recover *r)
{
    return clave__start_error(
        r->f, CLAVE_ECORRUPT,
        "%s/version-2/%s is compressed, which clave does not read, and nothing "
        "else there leads to its zxid: start Apache ZooKeeper on a copy of the directory once with "
        "-Dzookeeper.snapshot.compression.method= (empty), stop it, and serve the copy",
        r->d->path, r->compressed);
}

/* Looks at every name once, and logs those that are unknown. */
static clave_err recovery_survey(struct recover *r)
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
        return recovery_cannot(r, err, "cannot read", ".");
    }
    const struct dirent *e;
    int64_t zxid;
    while (errno = 0, (e = readdir(dir))) {
        enum file_kind kind = clave__file_kind(e->d_name, &zxid);
        if ((kind == FILE_SNAPSHOT || kind == FILE_COMPRESSED) && zxid > r->newest)
            r->newest = zxid;
        if (kind == FILE_UNFINISHED && !r->d->read_only)
            unlinkat(r->d->dir, e->d_name, 0);
        if (kind == FILE_COMPRESSED)
            recovery_note_compressed(r, e->d_name, zxid);
        if (kind == FILE_UNKNOWN && e->d_name[0] != '.')
            recovery_log(r, e->d_name, " is left alone: unknown");
    }
    err = errno; /* from readdir: what it did not list may be the newest snapshot */
    closedir(dir);
    return err == 0 ? CLAVE_OK : recovery_cannot(r, err, "cannot read", ".");
}

/* ---- advice ---------------------------------------------------------------------------------- */

/* Appends to the message what to do: use a backup, or what can still be read, in another
 * directory. */
static clave_err recovery_advise(const struct recover *r)
{
    struct server_stats st;
    size_t n = strlen(r->f->text);
    const struct fault rest = {r->f->text + n, r->f->cap - n};
    clave__server_stats(r->s, &st);
    if (r->recovery.from < 0)
        return clave__start_error(
            &rest, CLAVE_ECORRUPT,
            "; keep it, and restore the newest backup (clave data restore "
            "BACKUP NEW): an empty directory has none of its locks, and hands "
            "out its tokens again");
    return clave__start_error(&rest, CLAVE_ECORRUPT,
                              "; keep it, and restore the newest backup (clave data restore BACKUP "
                              "NEW) or what can be read here (clave data restore --until 0x%" PRIx64
                              " %s NEW)",
                              (uint64_t)st.last_zxid, r->d->path);
}

/* ---- when no snapshot is left ---------------------------------------------------------------- */

static clave_err recovery_no_snapshot(const struct recover *r)
{
    const char *path = r->d->path;
    if (r->newest_compressed >= 0)
        return recovery_compressed_is_needed(r);
    if (r->newest >= 0)
        clave__start_error(
            r->f, CLAVE_ECORRUPT,
            "no snapshot in %s/version-2 can be read, the newest is snapshot.%" PRIx64, path,
            (uint64_t)r->newest);
    else
        clave__start_error(r->f, CLAVE_ECORRUPT,
                           "%s/version-2 has logs (from log.%" PRIx64 ") but no snapshot", path,
                           (uint64_t)r->logs.zxid[0]);
    return recovery_advise(r);
}

static clave_err recovery_write_first_snapshot(struct recover *r)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    char name[FILE_NAME_SIZE];
    struct buf image;
    int64_t zxid;
    clave__buf_init(&image, &mem, SIZE_MAX / 2);
    clave_err err = clave__server_save_snapshot(r->s, &image, &zxid);
    if (err != CLAVE_OK) {
        clave__start_error(r->f, err, "cannot make the first snapshot: %s", clave_strerror(err));
    } else {
        clave__file_name(name, FILE_SNAPSHOT, zxid);
        int fault = clave__file_replace(r->d->dir, name, 0600, clave__buf_bytes(&image),
                                        clave__buf_len(&image));
        if (fault != 0)
            err = clave__start_error_errno(r->f, fault, "cannot write the first snapshot in",
                                           r->d->path);
    }
    clave__buf_fini(&image);
    return err;
}

/* Called if there is neither a snapshot nor a log, or no snapshot can be loaded. */
static clave_err recovery_without_snapshot(struct recover *r)
{
    if (r->newest >= 0 || r->logs.n > 0)
        return recovery_no_snapshot(r);
    if (r->d->read_only)
        return clave__start_error(r->f, CLAVE_ECORRUPT, "%s has no snapshot and no log",
                                  r->d->path);
    return recovery_write_first_snapshot(r);
}

/* ---- one file -------------------------------------------------------------------------------- */

static clave_err recovery_cut_off(const struct recover *r, const char *name, size_t at, size_t n)
{
    int fd = openat(r->d->dir, name, O_WRONLY | O_CLOEXEC);
    bool cut = fd >= 0 && ftruncate(fd, (off_t)at) == 0 && fsync(fd) == 0;
    int number = errno;
    if (fd >= 0)
        close(fd);
    if (!cut)
        return recovery_cannot(r, number, "cannot cut the torn end off", name);
    recovery_log(r, name,
                 ": cut off the last %zu byte%s, from offset %zu: what was being "
                 "written when the power failed, so never acknowledged",
                 n, clave__plural(n), at);
    return CLAVE_OK;
}

/* Removes a log without a complete header: the crash came before the first record. Apache would not
 * start with such a file. */
static clave_err recovery_remove_empty(const struct recover *r, const char *name, size_t n)
{
    if (unlinkat(r->d->dir, name, 0) != 0 || fsync(r->d->dir) != 0)
        return recovery_cannot(r, errno, "cannot remove", name);
    recovery_log(r, name, ": removed, it had %zu byte%s and no record", n, clave__plural(n));
    return CLAVE_OK;
}

static clave_err recovery_refuse(const struct recover *r, const char *name,
                                 const struct recovery_finding *found)
{
    const char *path = r->d->path;
    if (found->err != CLAVE_ECORRUPT)
        return clave__start_error(r->f, found->err, "cannot load %s/version-2/%s: %s", path, name,
                                  clave_strerror(found->err));
    clave__start_error(r->f, CLAVE_ECORRUPT, "%s/version-2/%s is damaged: %s", path, name,
                       found->fault);
    return recovery_advise(r);
}

/* A killed server of an ensemble leaves such a record, whose outcome its leader has usually told
 * it. So does a user who truncates the file. */
static void recovery_warn_unfinished(const struct recover *r, const char *name, size_t at)
{
    recovery_log(r, name,
                 ": the record at offset %zu was never finished, and the next log is "
                 "of a later leader: nothing here tells whether that leader had it",
                 at);
}

static clave_err recovery_act_on(const struct recover *r, const char *name, size_t n,
                                 const struct recovery_finding *found)
{
    switch (found->verdict) {
    case RECOVERY_FINE:
        break;
    case RECOVERY_SKIPPED:
        recovery_log(r, name, " is damaged (%s): trying older ones", found->fault);
        break;
    case RECOVERY_NO_RECORD:
        return r->d->read_only ? CLAVE_OK : recovery_remove_empty(r, name, n);
    case RECOVERY_TORN:
        return r->d->read_only ? CLAVE_OK
                               : recovery_cut_off(r, name, found->valid_len, n - found->valid_len);
    case RECOVERY_UNFINISHED:
        recovery_warn_unfinished(r, name, found->valid_len);
        break;
    case RECOVERY_REFUSED:
        return recovery_refuse(r, name, found);
    }
    return CLAVE_OK;
}

static clave_err recovery_unread(const struct recover *r, int number, const char *name,
                                 const struct file_content *c)
{
    char why[200];
    if (number != EIO)
        return recovery_cannot(r, number, "cannot read", name);
    clave__file_read_fault(c, number, why, sizeof why);
    return clave__start_error(r->f, CLAVE_EIO, "cannot read %s/version-2/%s: %s", r->d->path, name,
                              why);
}

/* Makes the newest batch durable. A server that was killed between a write and its sync leaves a
 * batch that can be read but is not on the disk; since it will now be shown to clients, it must be.
 * It is written again, because if an earlier start had failed to sync it, another sync would
 * succeed without doing anything. */
static clave_err recovery_make_durable(const struct recover *r, const char *name, const uint8_t *p,
                                       const struct recovery_finding *found)
{
    int fd = openat(r->d->dir, name, O_WRONLY | O_CLOEXEC);
    int number =
        fd >= 0 ? clave__file_write(fd, p + found->last_batch, found->valid_len - found->last_batch,
                                    (int64_t)found->last_batch)
                : errno;
    if (number == 0 && fdatasync(fd) != 0)
        number = errno;
    if (fd >= 0)
        close(fd);
    return number == 0 ? CLAVE_OK
                       : recovery_cannot(r, number, "cannot write the last batch of", name);
}

static bool recovery_is_newest_log(const struct recover *r, const struct recovery_file *file)
{
    return file->is_log && file->zxid == r->logs.zxid[r->logs.n - 1];
}

static clave_err recovery_load_file(struct recover *r, const struct recovery_file *file)
{
    char name[FILE_NAME_SIZE];
    struct file_content c;
    struct recovery_finding found;
    clave__file_name(name, file->is_log ? FILE_LOG : FILE_SNAPSHOT, file->zxid);
    int number = clave__file_read(r->d->dir, name, &c);
    if (number != 0)
        return recovery_unread(r, number, name, &c);
    size_t n = c.n;
    clave__recovery_plan_read(&r->recovery, c.p ? c.p : "", n, &found);
    clave_err err = recovery_act_on(r, name, n, &found);
    bool whole = found.verdict != RECOVERY_SKIPPED && found.verdict != RECOVERY_NO_RECORD;
    if (err == CLAVE_OK && whole && !r->d->read_only && recovery_is_newest_log(r, file))
        err = recovery_make_durable(r, name, c.p, &found);
    if (err == CLAVE_OK && whole && r->taker)
        err = r->taker->take(r->taker->arg, name, c.p, file->is_log ? found.valid_len : n);
    clave__file_free(&c);
    return err;
}

/* ---- all files ------------------------------------------------------------------------------- */

/* Checks that everything of which the files tell was reached. */
static clave_err recovery_check_end(const struct recover *r, clave_err err)
{
    struct server_stats st;
    clave__server_stats(r->s, &st);
    if ((err == CLAVE_OK || err == CLAVE_ECORRUPT) && st.last_zxid < r->newest_compressed)
        return recovery_compressed_is_needed(r);
    if (err != CLAVE_OK || st.last_zxid >= r->newest)
        return err;
    clave__start_error(
        r->f, CLAVE_ECORRUPT,
        "%s/version-2: the newest snapshot, snapshot.%" PRIx64
        ", cannot be read, and from snapshot.%" PRIx64 " the logs lead to 0x%" PRIx64 " only",
        r->d->path, (uint64_t)r->newest, (uint64_t)r->recovery.from, (uint64_t)st.last_zxid);
    return recovery_advise(r);
}

static clave_err recovery_read_all(struct recover *r)
{
    struct recovery_file file;
    clave_err err = recovery_survey(r);
    if (err != CLAVE_OK)
        return err;
    const struct recovery_files files = {r->snapshots.zxid, r->snapshots.n, r->logs.zxid,
                                         r->logs.n};
    clave__recovery_plan_begin(&r->recovery, r->s, &files, r->start);
    if (r->until != INT64_MAX)
        clave__recovery_plan_until(&r->recovery, r->until);
    while (err == CLAVE_OK && clave__recovery_plan_next(&r->recovery, &file))
        err = recovery_load_file(r, &file);
    if (err == CLAVE_OK && r->recovery.from < 0)
        return recovery_without_snapshot(r);
    if (r->start == RECOVER_FROM_NEWEST && r->until == INT64_MAX)
        err = recovery_check_end(r, err);
    return err;
}

static clave_err recovery_load_files(struct recover *r)
{
    assert(r->d->dir >= 0);
    r->newest = r->newest_compressed = -1;
    clave_err err = recovery_read_all(r);
    clave__file_list_free(&r->snapshots);
    clave__file_list_free(&r->logs);
    return err;
}

clave_err clave__datadir_recover(struct datadir *d, struct server *s, const struct fault *f)
{
    return clave__datadir_recover_each(d, s, NULL, f);
}

clave_err clave__datadir_recover_oldest(struct datadir *d, struct server *s, int64_t *from,
                                        const struct fault *f)
{
    assert(d->read_only);
    struct recover r = {.d = d, .s = s, .f = f, .start = RECOVER_FROM_OLDEST, .until = INT64_MAX};
    clave_err err = recovery_load_files(&r);
    *from = r.recovery.from;
    return err;
}

clave_err clave__datadir_recover_until(struct datadir *d, struct server *s, int64_t zxid,
                                       const struct fault *f)
{
    assert(d->read_only);
    struct recover r = {.d = d, .log = d->log, .s = s, .f = f, .until = zxid};
    return recovery_load_files(&r);
}

clave_err clave__datadir_recover_each(struct datadir *d, struct server *s,
                                      const struct datadir_taker *taker, const struct fault *f)
{
    assert(!taker || d->read_only);
    struct recover r = {.d = d, .log = d->log, .s = s, .f = f, .until = INT64_MAX, .taker = taker};
    if (taker && taker->history)
        r.start = RECOVER_FROM_OLDEST;
    return recovery_load_files(&r);
}
