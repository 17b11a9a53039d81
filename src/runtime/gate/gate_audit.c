/* gate_audit.c - see gate_audit.h. */
#include "runtime/gate/gate_audit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "runtime/server/audit_log.h"

/* Longer values are cut. */
enum { MOST_VALUE = 8192, MOST_LINE = 64 << 10 };

struct gate_audit {
    struct audit_log file;
    const struct clave_mem *mem;
};

clave_err gate_audit_open(struct gate_audit **out, const char *path, const struct clave_mem *mem,
                          const struct log *log, struct notifier *done, const struct fault *f)
{
    struct gate_audit *a = calloc(1, sizeof *a);
    *out = NULL;
    if (!a)
        return CLAVE_ENOMEM;
    a->mem = mem;
    clave_err err = clave__audit_log_open(&a->file, path, mem, log, done, f);
    if (err == CLAVE_OK)
        *out = a;
    else
        free(a);
    return err;
}

/* Cleans a value, so that it can neither end its field or its line nor be obeyed by a terminal. */
static void gate_audit_clean(char *text, size_t n)
{
    for (size_t i = 0, len; i < n; i += len) {
        len = clave__utf8_printable(text + i, n - i);
        if (len == 0)
            text[i] = '?';
        len += len == 0;
    }
}

/* If `value` is NULL, there is no such field. */
static void gate_audit_add(struct buf *line, const char *key, const char *value)
{
    size_t n = value ? strnlen(value, MOST_VALUE) : 0;
    if (!value || clave__buf_reserve(line, n + strlen(key) + 2) != CLAVE_OK)
        return;
    if (clave__buf_len(line) > 0)
        (void)clave__buf_append(line, "\t", 1);
    (void)clave__buf_append(line, key, strlen(key));
    (void)clave__buf_append(line, "=", 1);
    (void)clave__buf_append(line, value, n);
    gate_audit_clean((char *)line->data + line->tail - n, n);
}

void gate_audit_put(struct gate_audit *a, const struct web_audit *told)
{
    char session[24], status[12];
    bool failed = told->status >= 400;
    struct buf line;
    clave__buf_init(&line, a->mem, MOST_LINE);
    snprintf(session, sizeof session, "%" PRId64, told->session);
    snprintf(status, sizeof status, "%u", told->status);
    gate_audit_add(&line, "user", told->user);
    gate_audit_add(&line, "ip", told->address);
    gate_audit_add(&line, "operation", told->method);
    gate_audit_add(&line, "target", told->target);
    gate_audit_add(&line, "session", told->session ? session : NULL);
    gate_audit_add(&line, "znode", told->path);
    gate_audit_add(&line, "what", told->what);
    gate_audit_add(&line, "status", status);
    gate_audit_add(&line, "result", failed ? "failure" : "success");
    gate_audit_add(&line, "reason", told->reason);
    clave__audit_log_line(&a->file, failed, (char *)clave__buf_bytes(&line), clave__buf_len(&line));
    clave__buf_fini(&line);
    gate_audit_pump(a);
}

/* Writes the lines at once: an answer is made only after the servers have done the change, so there
 * is nothing to wait for. */
void gate_audit_pump(struct gate_audit *a)
{
    clave__audit_log_posted(&a->file);
    clave__audit_log_durable(&a->file);
    clave__audit_log_pump(&a->file);
}

void gate_audit_reopen(struct gate_audit *a)
{
    clave__audit_log_reopen(&a->file);
    gate_audit_pump(a);
}

void gate_audit_close(struct gate_audit *a)
{
    if (!a)
        return;
    gate_audit_pump(a);
    clave__audit_log_close(&a->file);
    free(a);
}
