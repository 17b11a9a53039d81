#include "lib/mutex_owner.h"

#include <stdio.h>
#include <string.h>

static void on_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    (void)m;
    struct seat *s = arg;
    switch (ev->kind) {
    case CLAVE_MUTEX_QUEUED:
    case CLAVE_MUTEX_NEXT:
        s->queued += ev->kind == CLAVE_MUTEX_QUEUED;
        s->next += ev->kind == CLAVE_MUTEX_NEXT;
        s->ahead = ev->ahead;
        snprintf(s->predecessor, sizeof s->predecessor, "%s", ev->predecessor);
        break;
    case CLAVE_MUTEX_HELD:
        s->held++;
        break;
    case CLAVE_MUTEX_LOST:
        s->lost++;
        s->why = ev->why;
        break;
    case CLAVE_MUTEX_ASKED:
        s->asked++;
        break;
    }
}

static clave_mutex_options seat_options(struct seat *s, const clave_mutex_options *o)
{
    clave_mutex_options mine = {.size = sizeof mine};
    if (o)
        mine = *o;
    mine.event_cb = on_event;
    mine.event_arg = s;
    return mine;
}

clave_err seat_open(struct seat *s, struct pair *p, size_t client, const char *path,
                    const clave_mutex_options *o)
{
    clave_mutex_options mine = seat_options(s, o);
    *s = (struct seat){.p = p, .client = client};
    return clave_async_mutex_new(&s->m, p->end[client].c, path, &mine);
}

clave_err seat_open_simple(struct seat *s, struct pair *p, size_t client, const char *path,
                           const char *prefix, const clave_mutex_options *o)
{
    clave_mutex_options mine = seat_options(s, o);
    *s = (struct seat){.p = p, .client = client};
    return clave_async_mutex_new_simple(&s->m, p->end[client].c, path, prefix, &mine);
}

void seat_share(struct seat *s, struct seat *with, uint64_t owner)
{
    *s = (struct seat){.p = with->p, .client = with->client, .m = with->m, .owner = owner};
}

void seat_close(struct seat *s)
{
    clave_async_mutex_free(s->m);
    s->m = NULL;
    pair_settle(s->p);
}

static void on_side_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct seats *s = arg;
    on_event(m, ev, m == clave_async_rwlock_read(s->rw) ? &s->read : &s->write);
}

clave_err seats_open(struct seats *s, struct pair *p, size_t client, const char *path,
                     const clave_mutex_options *o)
{
    clave_mutex_options mine = {.size = sizeof mine};
    if (o)
        mine = *o;
    mine.event_cb = on_side_event;
    mine.event_arg = s;
    *s = (struct seats){.read = {.p = p, .client = client}, .write = {.p = p, .client = client}};
    clave_err err = clave_async_rwlock_new(&s->rw, p->end[client].c, path, &mine);
    if (err == CLAVE_OK) {
        s->read.m = clave_async_rwlock_read(s->rw);
        s->write.m = clave_async_rwlock_write(s->rw);
    }
    return err;
}

void seats_share(struct seats *s, struct seats *with, uint64_t owner)
{
    *s = (struct seats){.rw = with->rw};
    seat_share(&s->read, &with->read, owner);
    seat_share(&s->write, &with->write, owner);
}

void seats_close(struct seats *s)
{
    clave_async_rwlock_free(s->rw);
    s->rw = NULL;
    pair_settle(s->read.p);
}

static void on_answer(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m;
    (void)owner;
    struct seat *s = arg;
    s->answers++;
    s->err = err;
}

void seat_departed(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m;
    (void)owner;
    struct seat *s = arg;
    s->departures++;
    s->left = err;
}

clave_err seat_ask(struct seat *s, int64_t within_ms)
{
    int64_t deadline = within_ms == SEAT_TRY    ? CLAVE_TRY
                       : within_ms == SEAT_EVER ? CLAVE_NEVER
                                                : s->p->now + within_ms;
    return clave_async_mutex_acquire(s->m, s->owner, deadline, on_answer, s);
}

clave_err seat_acquire(struct seat *s, int64_t within_ms)
{
    clave_err err = seat_ask(s, within_ms);
    pair_settle(s->p);
    return err;
}

clave_err seat_release(struct seat *s)
{
    clave_err err = clave_async_mutex_release(s->m, s->owner, NULL, NULL);
    pair_settle(s->p);
    return err;
}

clave_err seat_release_sure(struct seat *s)
{
    clave_err err = clave_async_mutex_release(s->m, s->owner, seat_departed, s);
    pair_settle(s->p);
    return err;
}

static void on_written(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct seat *s = arg;
    s->writes++;
    s->written = res->err;
}

clave_err seat_write(struct seat *s, const char *path, const char *text)
{
    clave_err err =
        clave_async_mutex_set(s->m, s->owner, path, text, strlen(text), -1, on_written, s);
    pair_settle(s->p);
    return err;
}

clave_grant seat_grant(const struct seat *s)
{
    clave_grant g = {0};
    (void)clave_async_mutex_grant(s->m, s->owner, &g);
    return g;
}

bool seat_holds(const struct seat *s)
{
    clave_grant g;
    return clave_async_mutex_grant(s->m, s->owner, &g);
}

/* ---- strangers ------------------------------------------------------------------------- */

struct listing {
    size_t n;
    char (*names)[96];
    size_t cap;
};

static void on_listing(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct listing *l = arg;
    l->n = res->nnames;
    for (size_t i = 0; i < l->n && i < l->cap; i++)
        snprintf(l->names[i], sizeof l->names[i], "%s", res->names[i]);
}

size_t seat_list(struct pair *p, size_t client, const char *path, char names[][96], size_t cap)
{
    struct listing l = {.names = names, .cap = names ? cap : 0};
    if (clave_async_children(p->end[client].c, path, NULL, on_listing, &l) == CLAVE_OK)
        pair_settle(p);
    return l.n;
}

static void on_done(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    *(clave_err *)arg = res->err;
}

clave_err seat_make(struct pair *p, size_t client, const char *path)
{
    clave_err done = CLAVE_ETIMEDOUT;
    clave_err err = clave_async_create(p->end[client].c, path, "", 0, NULL, on_done, &done);
    pair_settle(p);
    return err == CLAVE_OK ? done : err;
}

clave_err seat_remove(struct pair *p, size_t client, const char *path)
{
    clave_err done = CLAVE_ETIMEDOUT;
    clave_err err = clave_async_delete(p->end[client].c, path, -1, on_done, &done);
    pair_settle(p);
    return err == CLAVE_OK ? done : err;
}

clave_err seat_scribble(struct pair *p, size_t client, const char *path, const char *text)
{
    clave_err done = CLAVE_ETIMEDOUT;
    clave_err err = clave_async_set(p->end[client].c, path, text, strlen(text), -1, on_done, &done);
    pair_settle(p);
    return err == CLAVE_OK ? done : err;
}
