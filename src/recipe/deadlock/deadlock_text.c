/* deadlock_text.c - a deadlock in words: "web2 pid 9 (import) waits for /locks/a behind web1 pid 7
 * (export), who waits for /locks/b behind web2 pid 9 (import)". */
#include "recipe/deadlock/deadlock_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

enum { TEXT_MAX = 16 * 1024, PIECE_MAX = 512 };

/* Appends; what does not fit is left out. */
__attribute__((format(printf, 2, 3))) static clave_err deadlock_text_put(struct buf *b,
                                                                         const char *fmt, ...)
{
    char piece[PIECE_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(piece, sizeof piece, fmt, args);
    va_end(args);
    /* Identities come from other clients, so nothing that a terminal would obey may remain. */
    for (size_t i = 0, n = strlen(piece), len; i < n; i += len) {
        len = clave__utf8_printable(piece + i, n - i);
        if (len == 0)
            piece[i] = '?';
        len += len == 0;
    }
    clave_err err = clave__buf_append(b, piece, strlen(piece));
    return err == CLAVE_ETOOBIG ? CLAVE_OK : err;
}

static clave_err deadlock_text_put_name(struct buf *b, const clave_deadlock_member *m)
{
    const clave_identity *id = &m->identity;
    const char *name = id->name ? id->name : id->command;
    char pid[32] = "";
    if (id->pid != 0)
        snprintf(pid, sizeof pid, " pid %lld", (long long)id->pid);
    if (id->host || id->pid != 0)
        return deadlock_text_put(b, "%.120s%s%s%.120s%s", id->host ? id->host : "", pid,
                                 name ? " (" : "", name ? name : "", name ? ")" : "");
    if (name || id->text)
        return deadlock_text_put(b, "%.240s", name ? name : id->text);
    if (id->owner)
        return deadlock_text_put(b, "owner %.120s", id->owner);
    return deadlock_text_put(b, "session 0x%llx", (unsigned long long)m->stat.ephemeral_owner);
}

/* Appends the name and, if several owners share a session, the task. */
static clave_err deadlock_text_put_who(struct buf *b, const clave_deadlock_member *m)
{
    clave_err err = deadlock_text_put_name(b, m);
    return err == CLAVE_OK && m->identity.task ? deadlock_text_put(b, " #%.32s", m->identity.task)
                                               : err;
}

static clave_err deadlock_text_put_wait(struct buf *b, const clave_deadlock_member *m)
{
    return m->path ? deadlock_text_put(b, " waits for %.400s behind ", m->path)
                   : deadlock_text_put(b, " is to outlast ");
}

char *clave__deadlock_text(const struct clave_mem *mem, const clave_deadlock *d)
{
    struct buf b;
    clave__buf_init(&b, mem, TEXT_MAX);
    clave_err err = deadlock_text_put_who(&b, &d->members[0]);
    for (size_t i = 0; err == CLAVE_OK && i < d->n; i++) {
        if (i > 0)
            err = deadlock_text_put(&b, ", who");
        if (err == CLAVE_OK)
            err = deadlock_text_put_wait(&b, &d->members[i]);
        if (err == CLAVE_OK)
            err = deadlock_text_put_who(&b, &d->members[(i + 1) % d->n]);
    }
    char *text = NULL;
    if (err == CLAVE_OK)
        text = clave__mem_strndup(mem, (const char *)clave__buf_bytes(&b), clave__buf_len(&b));
    clave__buf_fini(&b);
    return text;
}
