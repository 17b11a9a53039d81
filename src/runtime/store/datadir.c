/* datadir.c - opens, locks and describes a data directory (datadir.h); recovery_load.c loads it. At
 * most one process has a directory open for writing. */
#include "runtime/store/datadir.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/store/file_io.h"
#include "runtime/store/file_names.h"

/* ---- open ----------------------------------------------------------------------------------- */

/* What may be beside version-2 before version-2 exists: our own files, and those that Apache's
 * scripts, its logger and Java leave there, which we do not touch. */
static bool datadir_may_stand_there(const char *name)
{
    static const char *const names[] = {".", "..", "clave.lock", "clave.sock", "serve.log", "myid",
                                        "initialize", "lost+found", "version-2",
                                        /* with its copies, and those that reconfig writes */
                                        "zoo.cfg*",
                                        /* of zkServer.sh; rotated logs are log.1 and so on */
                                        "zookeeper*.pid", "zookeeper*.out*", "zookeeper*.log*",
                                        /* of Java, after it ran out of memory or crashed */
                                        "java_pid*.hprof", "hs_err_pid*.log"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (fnmatch(names[i], name, 0) == 0)
            return true;
    return false;
}

static bool datadir_has_version_2(const struct datadir *d)
{
    struct stat st;
    char sub[PATH_MAX + 16];
    snprintf(sub, sizeof sub, "%s/version-2", d->path);
    return stat(sub, &st) == 0 && S_ISDIR(st.st_mode);
}

/* There may be data beside the directory; creating a new one there would make that data appear
 * lost. */
static clave_err datadir_report_foreign(const struct datadir *d, const char *name,
                                        const struct fault *f)
{
    char below[2 * PATH_MAX];
    struct stat st;
    int64_t zxid;
    const char *path = d->path, *own = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    bool is_data = clave__file_kind(name, &zxid) != FILE_UNKNOWN;
    if (is_data && strcmp(own, "version-2") == 0)
        return clave__start_error(f, CLAVE_ECORRUPT,
                                  "%s is not a data directory, but the version-2 of one: name the "
                                  "directory that contains it",
                                  path);
    if (is_data)
        return clave__start_error(f, CLAVE_ECORRUPT,
                                  "%s is not a data directory: it contains '%s' itself, which "
                                  "belongs in %s/version-2",
                                  path, name, path);
    snprintf(below, sizeof below, "%s/%s/version-2", path, name);
    if (stat(below, &st) == 0 && S_ISDIR(st.st_mode))
        return clave__start_error(f, CLAVE_ECORRUPT,
                                  "%s is not a data directory, but contains one: name %s/%s", path,
                                  path, name);
    return clave__start_error(f, CLAVE_ECORRUPT,
                              "%s is not a data directory: it contains '%s' but no version-2 (name "
                              "an empty or new directory)",
                              path, name);
}

/* errno tells why, but for a dangling link it would read as if the directory were missing. */
static clave_err datadir_cannot_open(const char *what, const char *path, const struct fault *f)
{
    struct stat st;
    int number = errno;
    if (number == ENOENT && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        return clave__start_error(f, CLAVE_EIO,
                                  "%s %s: it is a symbolic link that leads nowhere (is its disk "
                                  "mounted?)",
                                  what, path);
    return clave__start_error_errno(f, number, what, path);
}

/* Refuses a directory with foreign files, so that a mistyped --data does not scatter files over
 * somebody's directory. `also` is one more name that may be there; NULL: none. */
static clave_err datadir_refuse_foreign(const struct datadir *d, const char *also,
                                        const struct fault *f)
{
    clave_err err = CLAVE_OK;
    DIR *dir = opendir(d->path);
    if (!dir)
        return datadir_cannot_open("cannot open the data directory", d->path, f);
    const struct dirent *e;
    while (err == CLAVE_OK && (errno = 0, e = readdir(dir)))
        if (!datadir_may_stand_there(e->d_name) && !(also && strcmp(also, e->d_name) == 0))
            err = datadir_report_foreign(d, e->d_name, f);
    if (err == CLAVE_OK && errno != 0)
        err = clave__start_error_errno(f, errno, "cannot read the data directory", d->path);
    closedir(dir);
    return err;
}

static clave_err datadir_lock(struct datadir *d, const struct fault *f)
{
    char name[PATH_MAX + 16], pid[32] = "";
    snprintf(name, sizeof name, "%s/clave.lock", d->path);
    d->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (d->lock < 0)
        return clave__start_error_errno(f, errno, "cannot open", name);
    if (flock(d->lock, LOCK_EX | LOCK_NB) == 0) {
        int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
        /* only for the message below; a full disk is noticed soon enough */
        if (ftruncate(d->lock, 0) != 0 || pwrite(d->lock, pid, (size_t)n, 0) != n)
            clave__log_about(&d->log, CLAVE_LOG_WARN, &(struct log_about){.path = name},
                             "cannot write %s: %s", name, strerror(errno));
        return CLAVE_OK;
    }
    if (errno != EWOULDBLOCK)
        return clave__start_error_errno(f, errno, "cannot lock", name);
    ssize_t n = pread(d->lock, pid, sizeof pid - 1, 0);
    pid[n > 0 ? strcspn(pid, "\n") : 0] = '\0';
    return clave__start_error(f, CLAVE_EINUSE,
                              "the data directory %s is in use by process %s (leave clave.lock "
                              "there: it is free as soon as that process has ended)",
                              d->path, pid[0] ? pid : "(unknown)");
}

static clave_err datadir_open_version_2(struct datadir *d, const struct fault *f)
{
    char name[PATH_MAX + 16];
    snprintf(name, sizeof name, "%s/version-2", d->path);
    int fault = clave__make_directory(name, 0700);
    if (fault != 0)
        return clave__start_error_errno(f, fault, "cannot create", name);
    d->dir = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->dir < 0)
        return datadir_cannot_open("cannot open", name, f);
    if (faccessat(d->dir, ".", W_OK | X_OK, AT_EACCESS) != 0)
        return clave__start_error_errno(f, errno, "cannot write to", name);
    return CLAVE_OK;
}

/* version-2 is created last, so once it is there, every directory above it is durable */
static clave_err datadir_open_locked(struct datadir *d, const char *path, const struct log *log,
                                     const char *also, const struct fault *f)
{
    d->lock = d->dir = -1;
    d->read_only = false;
    d->log = *log;
    if (strlen(path) == 0 || strlen(path) >= sizeof d->path)
        return clave__start_error(f, CLAVE_EINVAL, "'%.40s...' cannot be a data directory", path);
    strcpy(d->path, path);
    bool is_new = !datadir_has_version_2(d);
    int fault = is_new ? clave__make_path(path, 0700) : 0;
    if (fault != 0)
        return clave__start_error_errno(f, fault, "cannot create the data directory", d->path);
    clave_err err = is_new ? datadir_refuse_foreign(d, also, f) : CLAVE_OK;
    return err == CLAVE_OK ? datadir_lock(d, f) : err;
}

/* True if version-2 should be there. It may have been moved away on purpose, or be on a disk that
 * is not mounted. */
static bool datadir_has_lost_version_2(const char *path)
{
    char name[PATH_MAX + 16];
    struct stat st;
    snprintf(name, sizeof name, "%s/version-2", path);
    bool is_there = lstat(name, &st) == 0;
    snprintf(name, sizeof name, "%s/clave.lock", path);
    return !is_there && lstat(name, &st) == 0;
}

clave_err clave__datadir_open(struct datadir *d, const char *path, const struct log *log,
                              const struct fault *f)
{
    bool lost = datadir_has_lost_version_2(path);
    clave_err err = datadir_open_locked(d, path, log, NULL, f);
    if (err == CLAVE_OK)
        err = datadir_open_version_2(d, f);
    if (err == CLAVE_OK && lost)
        clave__log_about(log, CLAVE_LOG_WARN, &(struct log_about){.path = path},
                         "%s has been used by a server before, but its version-2 is missing: the "
                         "tree is empty, and fencing tokens will repeat",
                         path);
    if (err != CLAVE_OK)
        clave__datadir_close(d);
    return err;
}

clave_err clave__datadir_open_empty(struct datadir *d, const char *path, const struct log *log,
                                    const struct fault *f)
{
    clave_err err = datadir_open_locked(d, path, log, DATADIR_COPY, f);
    if (err == CLAVE_OK && datadir_has_version_2(d))
        err = clave__start_error(f, CLAVE_ECORRUPT,
                                 "%s contains data already (version-2): name a new or an empty "
                                 "directory",
                                 d->path);
    if (err != CLAVE_OK)
        clave__datadir_close(d);
    return err;
}

static void datadir_measure_file(const struct datadir *d, const char *name,
                                 struct driver_stats *stats)
{
    int64_t zxid;
    struct stat st;
    enum file_kind kind = clave__file_kind(name, &zxid);
    if (fstatat(d->dir, name, &st, 0) != 0)
        return;
    if (kind == FILE_LOG)
        stats->log_bytes += st.st_size;
    if (kind == FILE_SNAPSHOT || kind == FILE_COMPRESSED)
        stats->snapshot_bytes += st.st_size;
    if (kind == FILE_SNAPSHOT && zxid > stats->snapshot_zxid) {
        stats->snapshot_zxid = zxid;
        stats->snapshot_seconds = st.st_mtime;
    }
}

void clave__datadir_measure(const struct datadir *d, struct driver_stats *stats)
{
    int fd = openat(d->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    stats->snapshot_bytes = stats->log_bytes = 0;
    stats->snapshot_zxid = stats->snapshot_seconds = -1;
    if (!dir && fd >= 0)
        close(fd);
    for (const struct dirent *e; dir && (e = readdir(dir));)
        datadir_measure_file(d, e->d_name, stats);
    if (dir)
        closedir(dir);
}

clave_err clave__datadir_look(struct datadir *d, const char *path, const struct log *log,
                              const struct fault *f)
{
    char name[PATH_MAX + 16];
    d->lock = d->dir = -1;
    d->read_only = true;
    d->log = *log;
    if (strlen(path) == 0 || strlen(path) >= sizeof d->path)
        return clave__start_error(f, CLAVE_EINVAL, "'%.40s...' cannot be a data directory", path);
    strcpy(d->path, path);
    snprintf(name, sizeof name, "%s/version-2", path);
    d->dir = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->dir < 0 && errno == ENOENT)
        d->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return d->dir >= 0 ? CLAVE_OK : clave__start_error_errno(f, errno, "cannot open", path);
}

/* ---- the longest session --------------------------------------------------------------------- */

static clave_err datadir_cannot(const struct datadir *d, int number, const char *what,
                                const struct fault *f)
{
    char path[PATH_MAX + FILE_NAME_SIZE + 16];
    snprintf(path, sizeof path, "%s/version-2/%s", d->path, FILE_LONGEST_SESSION);
    return clave__start_error_errno(f, number, what, path);
}

/* Parses a number followed by a newline, as the server writes it; without the newline, digits may
 * be missing. 0: it is damaged. */
static int32_t datadir_parse_longest(const struct file_content *c)
{
    const char *p = c->p;
    int64_t ms = 0;
    size_t i = 0;
    for (; i < c->n && p[i] >= '0' && p[i] <= '9'; i++) {
        ms = ms * 10 + (p[i] - '0');
        if (ms > INT32_MAX)
            return 0;
    }
    return i + 1 == c->n && p[i] == '\n' ? (int32_t)ms : 0;
}

clave_err clave__datadir_longest_session(const struct datadir *d, int32_t *ms,
                                         const struct fault *f)
{
    struct file_content c;
    *ms = 0;
    int number = clave__file_read(d->dir, FILE_LONGEST_SESSION, &c);
    if (number != 0)
        return number == ENOENT ? CLAVE_OK : datadir_cannot(d, number, "cannot read", f);
    *ms = datadir_parse_longest(&c);
    clave__file_free(&c);
    if (*ms > 0)
        return CLAVE_OK;
    return clave__start_error(f, CLAVE_ECORRUPT,
                              "%s/version-2/%s is damaged: it must be a number of milliseconds "
                              "and a newline",
                              d->path, FILE_LONGEST_SESSION);
}

clave_err clave__datadir_note_longest_session(const struct datadir *d, int32_t ms,
                                              const struct fault *f)
{
    assert(ms > 0 && !d->read_only);
    char text[16], why[600] = "";
    int32_t noted;
    clave_err err = clave__datadir_longest_session(d, &noted, &(struct fault){why, sizeof why});
    if (err == CLAVE_OK && noted == ms)
        return CLAVE_OK;
    int n = snprintf(text, sizeof text, "%d\n", (int)ms);
    int number = clave__file_replace(d->dir, FILE_LONGEST_SESSION, 0600, text, (size_t)n);
    if (err != CLAVE_OK && number == 0)
        clave__log(&d->log, CLAVE_LOG_WARN, "%s; it is %d again", why, (int)ms);
    else if (err != CLAVE_OK)
        clave__log(&d->log, CLAVE_LOG_WARN, "%s", why);
    return number == 0 ? CLAVE_OK : datadir_cannot(d, number, "cannot write", f);
}

void clave__datadir_close(struct datadir *d)
{
    if (d->dir >= 0)
        close(d->dir);
    if (d->lock >= 0)
        close(d->lock);
    d->dir = d->lock = -1;
}
