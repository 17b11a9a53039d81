/* audit_log.h - the file of the audit log. A thread of its own writes the lines, once what they
 * report is on the disk. A file that is slow or full costs lines, which are counted, but never
 * delays the server. */
#ifndef CLAVE_RUNTIME_SERVER_AUDIT_LOG_H
#define CLAVE_RUNTIME_SERVER_AUDIT_LOG_H

#include "base/log_line.h"
#include "runtime/line_file.h"
#include "runtime/start_error.h"
#include "runtime/store/disk_thread.h"

struct audit_log {
    struct disk_thread thread;
    const struct log *log;
    const char *path;   /* "-": standard output */
    bool wants_reopen;  /* as known to the loop */
    struct buf applied; /* lines of transactions that have not been given to the disk yet */
    struct buf posted;  /* lines of transactions that are being written to the disk */
    struct buf durable; /* lines that may be written to the file */
    uint64_t dropped;   /* lines lost since the last message */
    int fault;          /* why the file did not take some of them; 0: none of them got that far */
    int64_t may_tell_at;
    int64_t second; /* the second that `stamp` is the text of */
    char stamp[24];
    char user[64]; /* the user that runs the server */
    /* The rest belongs to the job. */
    struct line_file file;
    bool reopen;
    int reopen_fault;
};

/* Checks whether _open would succeed, as far as that is possible without creating the file. EIO. */
clave_err clave__audit_log_check(const char *path, const struct fault *f);
/* Opens or creates the file, with mode 0640, and starts the thread. `mem`, `log`, `path` and `done`
 * must outlive it. EIO, EFULL, ENOMEM. */
clave_err clave__audit_log_open(struct audit_log *a, const char *path, const struct clave_mem *mem,
                                const struct log *log, struct notifier *done,
                                const struct fault *f);
/* Writes what is left and closes the file. */
void clave__audit_log_close(struct audit_log *a);

/* A server_audit_cb. */
void clave__audit_log_line(void *arg, bool failed, const char *line, size_t n);
/* Adds a line about the server itself. */
void clave__audit_log_server(struct audit_log *a, const char *operation, const char *result);
/* _posted: what the lines so far report has been given to the disk. _durable: that is on the disk
 * now. */
void clave__audit_log_posted(struct audit_log *a);
void clave__audit_log_durable(struct audit_log *a);
/* Lets the thread write what is durable, if it is free, and reports lines that were lost. */
void clave__audit_log_pump(struct audit_log *a);
/* Makes the thread open the file again by its name before the next line. */
void clave__audit_log_reopen(struct audit_log *a);

#endif
