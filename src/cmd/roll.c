#include "cmd/roll.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "drive/clock.h"

/* On the heap, and the last of the two sides frees it: the answer may come after the waiting
 * side has given up. */
struct call {
    const char *path;
    roll_call_fn *ask;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    unsigned sides;
    bool done;
    clave_err err;
    struct roll roll;
};

static void leave(struct call *c)
{
    bool last = --c->sides == 0;
    pthread_mutex_unlock(&c->mutex);
    if (!last)
        return;
    roll_fini(&c->roll);
    pthread_cond_destroy(&c->cond);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

/* ---- copies ------------------------------------------------------------------------------- */

static bool copy_text(const char **out, const char *text)
{
    *out = text ? strdup(text) : NULL;
    return *out || !text;
}

static bool copy(clave_participant *out, const clave_participant *p)
{
    const clave_identity *id = &p->identity;
    out->stat = p->stat;
    out->identity.pid = id->pid;
    return copy_text(&out->node, p->node) && copy_text(&out->identity.host, id->host) &&
           copy_text(&out->identity.name, id->name) &&
           copy_text(&out->identity.command, id->command) &&
           copy_text(&out->identity.text, id->text);
}

static void free_text(const char *text)
{
    free((void *)(uintptr_t)text);
}

void roll_fini(struct roll *r)
{
    for (size_t i = 0; i < r->n; i++) {
        const clave_identity *id = &r->list[i].identity;
        free_text(r->list[i].node);
        free_text(id->host);
        free_text(id->name);
        free_text(id->command);
        free_text(id->text);
    }
    free(r->list);
    *r = (struct roll){0};
}

/* ---- the call ----------------------------------------------------------------------------- */

static void on_participants(clave_client *client, clave_err err, const clave_participant *list,
                            size_t n, void *arg)
{
    struct call *c = arg;
    (void)client;
    pthread_mutex_lock(&c->mutex);
    if (err == CLAVE_OK && n > 0) {
        c->roll.list = calloc(n, sizeof *c->roll.list);
        err = c->roll.list ? CLAVE_OK : CLAVE_ENOMEM;
    }
    for (size_t i = 0; err == CLAVE_OK && i < n; i++) {
        c->roll.n = i + 1;
        if (!copy(&c->roll.list[i], &list[i]))
            err = CLAVE_ENOMEM;
    }
    c->err = err;
    c->done = true;
    pthread_cond_signal(&c->cond);
    leave(c);
}

static void begin(clave_client *client, void *arg)
{
    struct call *c = arg;
    clave_err err = c->ask(client, c->path, on_participants, c);
    if (err != CLAVE_OK)
        on_participants(client, err, NULL, 0, c);
}

static struct call *call_new(const char *path, roll_call_fn *ask)
{
    struct call *c = calloc(1, sizeof *c);
    pthread_condattr_t attr;
    if (!c)
        return NULL;
    c->path = path;
    c->ask = ask;
    c->sides = 2;
    pthread_mutex_init(&c->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->cond, &attr);
    pthread_condattr_destroy(&attr);
    return c;
}

clave_err roll_read(clave_session *s, const char *path, int64_t timeout_ms, struct roll *out)
{
    return roll_read_by(s, path, clave_participants, timeout_ms, out);
}

clave_err roll_read_by(clave_session *s, const char *path, roll_call_fn *ask, int64_t timeout_ms,
                       struct roll *out)
{
    *out = (struct roll){0};
    clave_err err = clave_session_sync(s, path, timeout_ms);
    if (err != CLAVE_OK)
        return err;
    struct call *c = call_new(path, ask);
    if (!c)
        return CLAVE_ENOMEM;
    struct timespec until = clave__clock_after(timeout_ms);
    clave_session_run(s, begin, c);
    pthread_mutex_lock(&c->mutex);
    while (!c->done && pthread_cond_timedwait(&c->cond, &c->mutex, &until) != ETIMEDOUT)
        continue;
    err = c->done ? c->err : CLAVE_ETIMEDOUT;
    if (err == CLAVE_OK) {
        *out = c->roll;
        c->roll = (struct roll){0};
    }
    leave(c);
    return err;
}
