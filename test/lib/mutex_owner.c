#include "lib/mutex_owner.h"
#include "lib/async_grants.h"
#include "lib/unit.h"

static void on_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    (void)m;
    struct mutex_owner *s = arg;
    switch (ev->kind) {
    case CLAVE_MUTEX_QUEUED:
    case CLAVE_MUTEX_NEXT:
        s->queued += ev->kind == CLAVE_MUTEX_QUEUED;
        s->next += ev->kind == CLAVE_MUTEX_NEXT;
        s->ahead = ev->ahead;
        snprintf(s->predecessor, sizeof s->predecessor, "%s", ev->predecessor);
        snprintf(s->left_over, sizeof s->left_over, "%s", ev->left_over ? ev->left_over : "");
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

static clave_mutex_options owner_options(struct mutex_owner *s, const clave_mutex_options *o)
{
    clave_mutex_options mine = {.size = sizeof mine};
    if (o)
        mine = *o;
    mine.event_cb = on_event;
    mine.event_arg = s;
    return mine;
}

clave_err owner_open(struct mutex_owner *s, struct memnet *p, size_t client, const char *path,
                     const clave_mutex_options *o)
{
    clave_mutex_options mine = owner_options(s, o);
    *s = (struct mutex_owner){.p = p, .client = client};
    return clave_async_mutex_new(&s->m, p->clients[client].c, path, &mine);
}

clave_err owner_open_simple(struct mutex_owner *s, struct memnet *p, size_t client,
                            const char *path, const char *prefix, const clave_mutex_options *o)
{
    clave_mutex_options mine = owner_options(s, o);
    *s = (struct mutex_owner){.p = p, .client = client};
    mine.simple_prefix = prefix;
    return clave_async_mutex_new(&s->m, p->clients[client].c, path, &mine);
}

void owner_share(struct mutex_owner *s, struct mutex_owner *with, uint64_t owner)
{
    *s = (struct mutex_owner){.p = with->p, .client = with->client, .m = with->m, .owner = owner};
}

void owner_close(struct mutex_owner *s)
{
    clave_async_mutex_free(s->m);
    s->m = NULL;
    memnet_settle(s->p);
}

static void on_side_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct rwlock_owner *s = arg;
    on_event(m, ev, m == clave_async_rwlock_read(s->rw) ? &s->read : &s->write);
}

clave_err rwlock_owner_open(struct rwlock_owner *s, struct memnet *p, size_t client,
                            const char *path, const clave_mutex_options *o)
{
    clave_mutex_options mine = {.size = sizeof mine};
    if (o)
        mine = *o;
    mine.event_cb = on_side_event;
    mine.event_arg = s;
    *s = (struct rwlock_owner){.read = {.p = p, .client = client},
                               .write = {.p = p, .client = client}};
    clave_err err = clave_async_rwlock_new(&s->rw, p->clients[client].c, path, &mine);
    if (err == CLAVE_OK) {
        s->read.m = clave_async_rwlock_read(s->rw);
        s->write.m = clave_async_rwlock_write(s->rw);
    }
    return err;
}

void rwlock_owner_share(struct rwlock_owner *s, struct rwlock_owner *with, uint64_t owner)
{
    *s = (struct rwlock_owner){.rw = with->rw};
    owner_share(&s->read, &with->read, owner);
    owner_share(&s->write, &with->write, owner);
}

void rwlock_owner_close(struct rwlock_owner *s)
{
    clave_async_rwlock_free(s->rw);
    s->rw = NULL;
    memnet_settle(s->read.p);
}

static void on_answer(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m;
    (void)owner;
    struct mutex_owner *s = arg;
    s->answers++;
    s->err = err;
}

void owner_on_released(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m;
    (void)owner;
    struct mutex_owner *s = arg;
    s->departures++;
    s->left = err;
}

clave_err owner_begin_acquire(struct mutex_owner *s, int64_t within_ms)
{
    int64_t deadline = within_ms == OWNER_TRY       ? CLAVE_TRY
                       : within_ms == OWNER_FOREVER ? CLAVE_NEVER
                                                    : s->p->now + within_ms;
    return clave_async_mutex_acquire(s->m, s->owner, deadline, on_answer, s);
}

clave_err owner_acquire(struct mutex_owner *s, int64_t within_ms)
{
    clave_err err = owner_begin_acquire(s, within_ms);
    memnet_settle(s->p);
    return err;
}

clave_err owner_release(struct mutex_owner *s)
{
    clave_err err = clave_async_mutex_release(s->m, s->owner, NULL, NULL);
    memnet_settle(s->p);
    return err;
}

clave_err owner_release_confirmed(struct mutex_owner *s)
{
    clave_err err = clave_async_mutex_release(s->m, s->owner, owner_on_released, s);
    memnet_settle(s->p);
    return err;
}

static void on_written(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct mutex_owner *s = arg;
    s->writes++;
    s->written = res->err;
}

clave_err owner_write(struct mutex_owner *s, const char *path, const char *text)
{
    clave_err err =
        guarded_set(of_mutex(s->m, s->owner), path, text, strlen(text), -1, on_written, s);
    memnet_settle(s->p);
    return err;
}

struct grant_facts owner_grant(const struct mutex_owner *s)
{
    struct grant_facts g = {0};
    (void)clave__mutex_held(s->m, s->owner, &g);
    return g;
}

bool owner_holds(const struct mutex_owner *s)
{
    struct grant_facts g;
    return clave__mutex_held(s->m, s->owner, &g);
}

/* ---- nodes ----------------------------------------------------------------------------- */

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

size_t memnet_list(struct memnet *p, size_t client, const char *path, char names[][96], size_t cap)
{
    struct listing l = {.names = names, .cap = names ? cap : 0};
    if (clave_async_children(p->clients[client].c, path, NULL, on_listing, &l) == CLAVE_OK)
        memnet_settle(p);
    return l.n;
}

static void on_done(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    *(clave_err *)arg = res->err;
}

clave_err memnet_create(struct memnet *p, size_t client, const char *path)
{
    clave_err done = CLAVE_ETIMEDOUT;
    clave_err err = clave_async_create(p->clients[client].c, path, "", 0, NULL, on_done, &done);
    memnet_settle(p);
    return err == CLAVE_OK ? done : err;
}

clave_err memnet_delete(struct memnet *p, size_t client, const char *path)
{
    clave_err done = CLAVE_ETIMEDOUT;
    clave_err err = clave_async_delete(p->clients[client].c, path, -1, on_done, &done);
    memnet_settle(p);
    return err == CLAVE_OK ? done : err;
}

clave_err memnet_set(struct memnet *p, size_t client, const char *path, const char *text)
{
    clave_err done = CLAVE_ETIMEDOUT;
    clave_err err =
        clave_async_set(p->clients[client].c, path, text, strlen(text), -1, on_done, &done);
    memnet_settle(p);
    return err == CLAVE_OK ? done : err;
}

void memnet_assert_no_leftovers(struct memnet *p)
{
    struct server_stats stats = memnet_stats(p);
    assert_int_equal(stats.watches, 0);
    assert_int_equal(stats.ephemerals, 0);
}

void memnet_left_clean(struct memnet **p)
{
    memnet_assert_no_leftovers(*p);
    memnet_free(*p);
}
