/* slot_owners_and_limit.c - reads the owners and the limit. Called by slot_take.c and slot_give.c.
 * Invariant: the names and owners_version are of one answer, so a write of <path>/owners with that
 * version proves that no slot was taken since. */
#include "recipe/slots/slot_owners_and_limit.h"

#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "recipe/semaphore/shared_count.h"
#include "recipe/slots/slot_name.h"

static void slot_owners_and_limit_note(struct slot_count *c, clave_err err)
{
    if (err != CLAVE_OK && c->err == CLAVE_OK)
        c->err = err;
}

static void slot_owners_and_limit_answered(struct slot_count *c)
{
    assert(c->pending > 0);
    if (--c->pending == 0)
        c->done(c);
}

static void slot_owners_and_limit_on_sync(clave_async_client *client, const clave_result *res,
                                          void *arg)
{
    (void)client;
    struct slot_count *c = arg;
    slot_owners_and_limit_note(c, res->err);
    slot_owners_and_limit_answered(c);
}

static void slot_owners_and_limit_on_limit(clave_async_client *client, const clave_result *res,
                                           void *arg)
{
    (void)client;
    struct slot_count *c = arg;
    c->limit_missing = res->err == CLAVE_ENONODE;
    if (res->err == CLAVE_OK) {
        c->limit = clave__shared_count_decode(res->data, res->len);
        c->limit_version = res->stat->version;
    } else if (!c->limit_missing) {
        slot_owners_and_limit_note(c, res->err);
    }
    slot_owners_and_limit_answered(c);
}

static void slot_owners_and_limit_find_own(struct slot_count *c, const clave_result *res)
{
    char id[CLAVE_SLOT_ID_MAX + 1];
    for (size_t i = 0; i < res->nnames && !c->own; i++) {
        if (!clave__slot_name_parse(res->names[i], id) || strcmp(id, c->id) != 0)
            continue;
        c->own = clave__path_child(c->slots->mem, c->slots->paths.owners, res->names[i]);
        if (!c->own)
            slot_owners_and_limit_note(c, CLAVE_ENOMEM);
        return;
    }
}

static void slot_owners_and_limit_on_owners(clave_async_client *client, const clave_result *res,
                                            void *arg)
{
    (void)client;
    struct slot_count *c = arg;
    c->owners_missing = res->err == CLAVE_ENONODE;
    if (res->err == CLAVE_OK) {
        c->owners_version = res->stat->version;
        c->owned = res->nnames;
        slot_owners_and_limit_find_own(c, res);
    } else if (!c->owners_missing) {
        slot_owners_and_limit_note(c, res->err);
    }
    slot_owners_and_limit_answered(c);
}

/* One that is armed still tells of the next change. */
static clave_async_watch *slot_owners_and_limit_watch(clave_async_watch *w, bool watched)
{
    return watched && w && !clave_async_watch_is_armed(w) ? w : NULL;
}

static void slot_owners_and_limit_submitted(struct slot_count *c, clave_err err)
{
    c->pending += err == CLAVE_OK;
    slot_owners_and_limit_note(c, err);
}

clave_err clave__slot_count_read(struct slot_count *c, bool synced, bool watched)
{
    assert(c->pending == 0);
    clave_async_client *client = c->slots->client;
    const struct slots_paths *paths = &c->slots->paths;
    clave__mem_free(c->slots->mem, c->own);
    c->own = NULL;
    c->err = CLAVE_OK;
    c->limit = 0;
    c->owned = 0;
    if (synced)
        slot_owners_and_limit_submitted(
            c, clave_async_sync(client, paths->owners, slot_owners_and_limit_on_sync, c));
    slot_owners_and_limit_submitted(
        c,
        clave_async_get(client, paths->limit, slot_owners_and_limit_watch(c->limit_watch, watched),
                        slot_owners_and_limit_on_limit, c));
    slot_owners_and_limit_submitted(
        c, clave_async_children(client, paths->owners,
                                slot_owners_and_limit_watch(c->owners_watch, watched),
                                slot_owners_and_limit_on_owners, c));
    return c->pending > 0 ? CLAVE_OK : c->err;
}

bool clave__slot_count_has_room(const struct slot_count *c)
{
    return c->owned < c->limit;
}

/* ---- watches -------------------------------------------------------------------------------- */

/* The next reading may use a watch again only when all events of this call have come. */
static void slot_owners_and_limit_on_event(clave_async_client *client, clave_async_watch *w,
                                           const clave_event *ev, void *arg)
{
    (void)w;
    (void)ev;
    struct slot_count *c = arg;
    list_remove(&c->news.link);
    clave__client_later(client, &c->news);
}

static void slot_owners_and_limit_on_news(struct client_task *t)
{
    struct slot_count *c = LIST_ENTRY(t, struct slot_count, news);
    c->changed(c);
}

void clave__slot_count_unwatch(struct slot_count *c)
{
    if (c->owners_watch)
        clave_async_watch_disarm(c->owners_watch);
    if (c->limit_watch)
        clave_async_watch_disarm(c->limit_watch);
    list_remove(&c->news.link);
}

clave_err clave__slot_count_init(struct slot_count *c, clave_async_slots *s, const char *id,
                                 void (*done)(struct slot_count *c),
                                 void (*changed)(struct slot_count *c))
{
    *c = (struct slot_count){.slots = s, .id = id, .done = done, .changed = changed};
    list_init(&c->news.link);
    c->news.run = slot_owners_and_limit_on_news;
    if (!changed)
        return CLAVE_OK;
    clave_err err =
        clave_async_watch_new(&c->owners_watch, s->client, slot_owners_and_limit_on_event, c);
    if (err == CLAVE_OK)
        err = clave_async_watch_new(&c->limit_watch, s->client, slot_owners_and_limit_on_event, c);
    return err;
}

void clave__slot_count_fini(struct slot_count *c)
{
    assert(c->pending == 0);
    list_remove(&c->news.link);
    clave_async_watch_free(c->owners_watch);
    clave_async_watch_free(c->limit_watch);
    clave__mem_free(c->slots->mem, c->own);
}
