/* deadlock_list.c - the deadlocks that the graph has found, as the user gets them: a list of their
 * members, and each deadlock in words: "web2 pid 9 (import) waits for /locks/a behind web1 pid 7
 * (export), who waits for /locks/b behind web2 pid 9 (import)". Called by deadlock_schedule.c and
 * by the HTTP gate's model of locks. What must stay true: the first member of each deadlock is the
 * victim or, if there is none, the member that completed the cycle. */
#include "recipe/deadlock/deadlock_list.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "clave/async/deadlock.h"

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

/* The text of a deadlock, to be freed by the caller. NULL: no memory. */
static char *deadlock_text(const struct clave_mem *mem, const clave_deadlock *d)
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

static const char *deadlock_list_path_of(const struct queue_scan *scan,
                                         const struct wait_step *step)
{
    return step->blocker == WAIT_NONE ? NULL : scan->queues[step->queue].path;
}

static void deadlock_list_set_member(const struct queue_scan *scan, const struct queue_snapshot *p,
                                     const struct wait_step *step, clave_deadlock_member *out)
{
    const struct queue_node *node = clave__queue_snapshot_node(p, step->queue, step->claim);
    *out = (clave_deadlock_member){
        .path = deadlock_list_path_of(scan, step),
        .node = node->path,
        .stat = node->stat,
        .identity = node->identity,
    };
    if (step->blocker != WAIT_NONE)
        out->blocker = clave__queue_snapshot_node(p, step->queue, step->blocker)->path;
}

/* The member that gives up; if none does, the one that completed the cycle. */
static size_t deadlock_list_first_of(const struct queue_snapshot *p, const struct wait_cycle *c)
{
    size_t first = 0;
    int64_t newest = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct wait_step *step = &c->steps[i];
        int64_t token = clave__queue_snapshot_node(p, step->queue, step->claim)->stat.czxid;
        if (step->blocker == WAIT_NONE || token < newest)
            continue;
        first = i;
        newest = token;
    }
    return c->victim != WAIT_NONE ? c->victim : first;
}

static clave_err deadlock_list_fill(struct deadlock_list *f, const struct queue_scan *scan,
                                    const struct queue_snapshot *p, const struct wait_verdict *v)
{
    clave_deadlock_member *at = f->members;
    for (size_t i = 0; i < v->n; i++) {
        const struct wait_cycle *c = &v->cycles[i];
        size_t first = deadlock_list_first_of(p, c);
        clave_deadlock *d = &f->list[f->n++];
        *d = (clave_deadlock){.members = at, .n = c->n, .certain = c->certain};
        d->victim = c->victim != WAIT_NONE ? 0 : c->n;
        for (size_t k = 0; k < c->n; k++)
            deadlock_list_set_member(scan, p, &c->steps[(first + k) % c->n], at++);
        d->text = deadlock_text(f->mem, d);
        if (!d->text)
            return CLAVE_ENOMEM;
    }
    return CLAVE_OK;
}

clave_err clave__deadlock_list_init(struct deadlock_list *f, const struct queue_scan *scan,
                                    const struct queue_snapshot *p, const struct wait_verdict *v)
{
    *f = (struct deadlock_list){.mem = scan->mem};
    if (v->n == 0)
        return CLAVE_OK;
    f->list = clave__mem_zalloc(f->mem, v->n * sizeof *f->list);
    f->members = clave__mem_zalloc(f->mem, v->stuck * sizeof *f->members);
    clave_err err = f->list && f->members ? deadlock_list_fill(f, scan, p, v) : CLAVE_ENOMEM;
    if (err != CLAVE_OK)
        clave__deadlock_list_fini(f);
    return err;
}

void clave__deadlock_list_fini(struct deadlock_list *f)
{
    for (size_t i = 0; i < f->n; i++)
        clave__mem_free(f->mem, (void *)(uintptr_t)f->list[i].text);
    clave__mem_free(f->mem, f->list);
    clave__mem_free(f->mem, f->members);
    *f = (struct deadlock_list){.mem = f->mem};
}
