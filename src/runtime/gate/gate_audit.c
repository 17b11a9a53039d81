/* gate_audit.c - see gate_audit.h; gate_run.c calls it. */
#include "runtime/gate/gate_audit.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/server/audit_log.h"

struct gate_audit {
    struct audit_log file;
};

clave_err gate_audit_check(const char *path, const struct fault *f)
{
    return clave__audit_log_check(path, f);
}

clave_err gate_audit_open(struct gate_audit **out, const char *path, const struct clave_mem *mem,
                          const struct log *log, struct notifier *done, const struct fault *f)
{
    struct gate_audit *a = calloc(1, sizeof *a);
    *out = NULL;
    if (!a)
        return CLAVE_ENOMEM;
    clave_err err = clave__audit_log_open(&a->file, path, mem, log, done, f);
    if (err == CLAVE_OK)
        *out = a;
    else
        free(a);
    return err;
}

/* A value cannot end its field, or the line. */
static void gate_audit_clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

void gate_audit_put(struct gate_audit *a, const struct web_audit *line)
{
    char user[200], target[600], reason[200], text[1300];
    snprintf(user, sizeof user, "%s", line->user);
    snprintf(target, sizeof target, "%s", line->target);
    snprintf(reason, sizeof reason, "%s", line->reason ? line->reason : "");
    gate_audit_clean(user);
    gate_audit_clean(target);
    gate_audit_clean(reason);
    bool failed = line->status >= 400;
    int n = snprintf(text, sizeof text,
                     "user=%s\tip=%s\toperation=%.16s\ttarget=%s\tstatus=%u\tresult=%s%s%s", user,
                     line->address, line->method, target, line->status,
                     failed ? "failure" : "success", line->reason ? "\treason=" : "", reason);
    clave__audit_log_line(&a->file, failed, text, (size_t)n);
    gate_audit_pump(a);
}

/* The answer is only made when the servers have done it: there is nothing to wait for. */
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
