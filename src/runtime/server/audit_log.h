/* audit_log.h - the file of the audit log. Lines are written by a thread of its own once what they
 * tell is on disk; a file that is slow or full costs lines, which are counted, and never time. */
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
    bool wants_reopen;  /* as of the loop */
    struct buf applied; /* lines of transactions that are not yet given to the disk */
    struct buf posted;  /* of those that are being written there */
    struct buf durable; /* to be written here */
    uint64_t dropped;   /* lines since the last message */
    int fault;          /* why the file did not take some of them; 0: none of them got so far */
    int64_t may_tell_at;
    int64_t second; /* whose text is `stamp` */
    char stamp[24];
    char user[64]; /* that runs the server */
    /* Of the job. */
    struct line_file file;
    bool reopen;
    int reopen_fault;
};

/* Whether _open would succeed, as far as that can be known without creating the file. EIO. */
clave_err clave__audit_log_check(const char *path, const struct fault *f);
/* Opens or creates the file, with mode 0640, and starts the thread. `mem`, `log`, `path` and `done`
 * outlive it. EIO, EFULL, ENOMEM. */
clave_err clave__audit_log_open(struct audit_log *a, const char *path, const struct clave_mem *mem,
                                const struct log *log, struct notifier *done,
                                const struct fault *f);
/* Writes what is left. */
void clave__audit_log_close(struct audit_log *a);

/* As a server_audit_cb. */
void clave__audit_log_line(void *arg, bool failed, const char *line, size_t n);
/* A line of the server itself. */
void clave__audit_log_server(struct audit_log *a, const char *operation, const char *result);
/* What the lines until now tell has been given to the disk; that is durable now. */
void clave__audit_log_posted(struct audit_log *a);
void clave__audit_log_durable(struct audit_log *a);
/* Lets the thread write what is durable, if it is free, and reports what was lost. */
void clave__audit_log_pump(struct audit_log *a);
/* The file is opened anew by its name before the next line. */
void clave__audit_log_reopen(struct audit_log *a);

#endif
