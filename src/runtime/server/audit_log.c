/* audit_log.c - see audit_log.h. Called by server_run.c, on the loop. A line moves from `applied`
 * to `posted` to `durable` together with the records of its transaction, so no line tells of a
 * change that a power cut undoes. */
#include "runtime/server/audit_log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log_line.h"
#include "runtime/clock.h"

/* How many bytes of lines may wait, and how large a buffer the thread keeps. */
enum { MOST_WAITING = 4 << 20, KEEP_LINES = 64 * 1024 };
enum { TELL_MS = 1000 };

/* ---- the thread ------------------------------------------------------------------------------ */

/* A FIFO without a reader is an error; it is not waited for. */
static int audit_log_open_file(const char *path)
{
    if (strcmp(path, "-") == 0)
        return STDOUT_FILENO;
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0640);
}

/* True if the file ends in the middle of a line, because a crash or a full disk has torn it. */
static bool audit_log_is_torn(const char *path)
{
    struct stat st;
    char last = '\n';
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
        pread(fd, &last, 1, st.st_size - 1) != 1)
        last = '\n';
    close(fd);
    return last != '\n';
}

static void audit_log_close_file(int fd)
{
    if (fd > STDERR_FILENO)
        close(fd);
}

static int audit_log_job(struct disk_thread *t)
{
    struct audit_log *a = (struct audit_log *)(void *)t;
    if (a->reopen) {
        int fd = audit_log_open_file(a->path);
        a->reopen_fault = fd < 0 ? errno : 0;
        if (fd >= 0) {
            audit_log_close_file(a->file.fd);
            a->file.fd = fd;
            a->file.torn = audit_log_is_torn(a->path);
        }
    }
    return clave__line_file_write(&a->file, &t->bytes);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void audit_log_move(struct audit_log *a, struct buf *from, struct buf *to)
{
    size_t n = clave__buf_len(from);
    if (n == 0)
        return;
    if (clave__buf_len(to) == 0) {
        struct buf empty = *to;
        *to = *from;
        *from = empty;
    } else if (clave__buf_append(to, clave__buf_bytes(from), n) != CLAVE_OK) {
        a->dropped++;
    }
    clave__buf_clear(from);
}

/* Formats the time like log4j does by default: local time. */
static const char *audit_log_stamp(struct audit_log *a, int64_t wall)
{
    time_t second = (time_t)(wall / 1000);
    struct tm tm;
    if (second != a->second && localtime_r(&second, &tm)) {
        a->second = second;
        strftime(a->stamp, sizeof a->stamp, "%Y-%m-%d %H:%M:%S", &tm);
    }
    return a->stamp;
}

void clave__audit_log_line(void *arg, bool failed, const char *line, size_t n)
{
    struct audit_log *a = arg;
    char begin[80];
    int64_t wall = clave__clock_wall();
    int len = snprintf(begin, sizeof begin,
                       "%s,%03d %s audit.Slf4jAuditLogger: ", audit_log_stamp(a, wall),
                       (int)(wall % 1000), failed ? "ERROR" : "INFO");
    assert((size_t)len < sizeof begin);
    size_t waiting =
        clave__buf_len(&a->applied) + clave__buf_len(&a->posted) + clave__buf_len(&a->durable);
    if (!line || waiting + n > MOST_WAITING ||
        clave__buf_reserve(&a->applied, (size_t)len + n + 1) != CLAVE_OK) {
        a->dropped++;
        return;
    }
    clave__buf_append(&a->applied, begin, (size_t)len);
    clave__buf_append(&a->applied, line, n);
    clave__buf_append(&a->applied, "\n", 1);
}

void clave__audit_log_server(struct audit_log *a, const char *operation, const char *result)
{
    char line[160];
    int n =
        snprintf(line, sizeof line, "user=%s\toperation=%s\tresult=%s", a->user, operation, result);
    assert((size_t)n < sizeof line);
    clave__audit_log_line(a, false, line, (size_t)n);
}

void clave__audit_log_posted(struct audit_log *a)
{
    audit_log_move(a, &a->applied, &a->posted);
}

void clave__audit_log_durable(struct audit_log *a)
{
    audit_log_move(a, &a->posted, &a->durable);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void audit_log_tell(struct audit_log *a)
{
    int64_t now = clave__clock_wall();
    if (a->dropped == 0 || (now < a->may_tell_at && now > a->may_tell_at - TELL_MS))
        return;
    clave__log_about(a->log, CLAVE_LOG_WARN, &(struct log_about){.path = a->path},
                     "the audit log %s has lost %llu line%s: %s", a->path,
                     (unsigned long long)a->dropped, clave__plural(a->dropped),
                     a->fault ? strerror(a->fault) : "they come faster than they can be written");
    a->dropped = 0;
    a->fault = 0;
    a->may_tell_at = now + TELL_MS;
}

/* Counts the lines that the file did not take. */
static void audit_log_count_lost(struct audit_log *a, int fault)
{
    a->dropped += a->file.lost;
    a->file.lost = 0;
    a->fault = fault ? fault : a->fault;
}

static void audit_log_collect(struct audit_log *a)
{
    if (a->reopen && a->reopen_fault)
        clave__log_about(a->log, CLAVE_LOG_ERROR, &(struct log_about){.path = a->path},
                         "cannot open the audit log %s again: %s; lines go to the old file",
                         a->path, strerror(a->reopen_fault));
    else if (a->reopen)
        clave__log_about(a->log, CLAVE_LOG_INFO, &(struct log_about){.path = a->path},
                         "the audit log %s is opened again", a->path);
    a->reopen = false;
    audit_log_count_lost(a, a->thread.fault);
}

void clave__audit_log_pump(struct audit_log *a)
{
    if (clave__disk_thread_state(&a->thread) == JOB_DONE) {
        audit_log_collect(a);
        clave__disk_thread_take(&a->thread, KEEP_LINES);
    }
    if (clave__disk_thread_state(&a->thread) != JOB_FREE)
        return;
    audit_log_tell(a);
    if (clave__buf_len(&a->durable) == 0 && !a->wants_reopen)
        return;
    audit_log_move(a, &a->durable, &a->thread.bytes);
    a->reopen = a->wants_reopen;
    a->wants_reopen = false;
    clave__disk_thread_post(&a->thread);
}

void clave__audit_log_reopen(struct audit_log *a)
{
    a->wants_reopen = true;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void audit_log_name_user(struct audit_log *a)
{
    uv_passwd_t user;
    snprintf(a->user, sizeof a->user, "%u", (unsigned)geteuid());
    if (uv_os_get_passwd(&user) != 0)
        return;
    snprintf(a->user, sizeof a->user, "%s", user.username);
    uv_os_free_passwd(&user);
}

clave_err clave__audit_log_check(const char *path, const struct fault *f)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (slash) /* the directory of "/audit.log" is "/" */
        snprintf(dir, sizeof dir, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    else
        strcpy(dir, ".");
    if (strcmp(path, "-") == 0)
        return CLAVE_OK;
    struct stat st;
    bool exists = stat(path, &st) == 0;
    int fault = exists && S_ISDIR(st.st_mode) ? EISDIR : 0;
    if (fault == 0 && access(exists ? path : dir, exists ? W_OK : W_OK | X_OK) != 0)
        fault = errno;
    return fault == 0 ? CLAVE_OK
                      : clave__start_error_errno(f, fault, "cannot open the audit log", path);
}

clave_err clave__audit_log_open(struct audit_log *a, const char *path, const struct clave_mem *mem,
                                const struct log *log, struct notifier *done, const struct fault *f)
{
    memset(a, 0, sizeof *a);
    a->path = path;
    a->log = log;
    a->second = -1;
    clave__buf_init(&a->applied, mem, 2 * MOST_WAITING);
    clave__buf_init(&a->posted, mem, 2 * MOST_WAITING);
    clave__buf_init(&a->durable, mem, 2 * MOST_WAITING);
    audit_log_name_user(a);
    a->file.fd = audit_log_open_file(path);
    if (a->file.fd < 0)
        return clave__start_error_errno(f, errno, "cannot open the audit log", path);
    a->file.torn = audit_log_is_torn(path);
    clave_err err = clave__disk_thread_start(&a->thread, "clave-audit", audit_log_job, mem, done);
    if (err != CLAVE_OK)
        clave__audit_log_close(a);
    return err;
}

void clave__audit_log_close(struct audit_log *a)
{
    clave__disk_thread_stop(&a->thread);
    if (clave__disk_thread_state(&a->thread) == JOB_DONE)
        audit_log_collect(a);
    audit_log_count_lost(a, clave__line_file_write(&a->file, &a->durable));
    a->may_tell_at = 0;
    audit_log_tell(a);
    audit_log_close_file(a->file.fd);
    clave__buf_fini(&a->applied);
    clave__buf_fini(&a->posted);
    clave__buf_fini(&a->durable);
}
