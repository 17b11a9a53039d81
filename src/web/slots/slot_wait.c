/* slot_wait.c - see slot_wait.h. Called by the endpoints of slots, and by web.c. Invariant: a
 * place is freed in the callback of its take, and nowhere else. */
#include "web/slots/slot_wait.h"

#include <assert.h>
#include <string.h>

#include "client/client_for_gate.h"
#include "web/http/sender_limits.h"

enum { THE_TAKE = 1 };

struct slot_wait {
    struct list link; /* of struct web.slot_places */
    struct web *web;
    clave_async_slots *slots;
    struct sender *sender;
    struct timer keep;
    struct list polls;
    size_t position; /* 0: not known yet */
    bool leaving;
    char *path, *owner;
    char *left_over; /* the node before it, when no session owns that; NULL: not so */
};

/* ---- polls ----------------------------------------------------------------------------------- */

static void slot_wait_keep(struct slot_wait *p)
{
    clave__web_timer_set(p->web, &p->keep, p->web->now + SLOT_KEEP_MS);
}

void clave__slot_wait_touch(struct slot_wait *p)
{
    if (p->keep.armed)
        slot_wait_keep(p);
}

void clave__slot_poll_cancel(struct slot_poll *poll)
{
    struct slot_wait *p = poll->place;
    if (!p)
        return;
    poll->place = NULL;
    list_remove(&poll->link);
    clave__web_timer_clear(p->web, &poll->until);
    if (list_empty(&p->polls))
        slot_wait_keep(p);
}

static void slot_wait_tell_waits(struct slot_poll *poll)
{
    const struct slot_news news = {.position = poll->place->position,
                                   .left_over = poll->place->left_over};
    clave__slot_poll_cancel(poll);
    poll->done(poll, &news);
}

static void on_slot_wait_poll_until(struct timer *t, int64_t now)
{
    (void)now;
    slot_wait_tell_waits(LIST_ENTRY(t, struct slot_poll, until));
}

void clave__slot_wait_await(struct slot_wait *p, struct slot_poll *poll, int64_t until)
{
    assert(poll->done && !poll->place);
    poll->place = p;
    list_push_back(&p->polls, &poll->link);
    clave__timer_init(&poll->until, on_slot_wait_poll_until);
    clave__web_timer_clear(p->web, &p->keep);
    if (until <= p->web->now || (poll->wants_position && p->position > 0))
        slot_wait_tell_waits(poll);
    else
        clave__web_timer_set(p->web, &poll->until, until);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void slot_wait_free(struct slot_wait *p)
{
    struct web *w = p->web;
    assert(list_empty(&p->polls));
    clave__web_timer_clear(w, &p->keep);
    list_remove(&p->link);
    clave_async_slots_free(p->slots);
    if (p->sender) {
        clave__sender_give(w, p->sender, SENDER_WAITS, 1);
        clave__sender_unref(w, p->sender);
    }
    clave__mem_free(&w->mem, p->path);
    clave__mem_free(&w->mem, p->owner);
    clave__mem_free(&w->mem, p->left_over);
    clave__mem_free(&w->mem, p);
}

static void on_slot_wait_moved(clave_async_slots *s, const clave_slots_event *ev, void *arg)
{
    struct slot_wait *p = arg;
    (void)s;
    p->position = ev->ahead + 1;
    clave__mem_free(&p->web->mem, p->left_over);
    p->left_over = ev->left_over ? clave__mem_strdup(&p->web->mem, ev->left_over) : NULL;
    for (struct list *e = p->polls.next, *next; e != &p->polls; e = next) {
        struct slot_poll *poll = LIST_ENTRY(e, struct slot_poll, link);
        next = e->next;
        if (poll->wants_position)
            slot_wait_tell_waits(poll);
    }
}

static void on_slot_wait_ended(clave_async_slots *s, clave_err err, const clave_slot *slot,
                               bool taken, void *arg)
{
    struct slot_wait *p = arg;
    const struct slot_news news = {.ended = true, .err = err, .slot = slot, .taken = taken};
    int64_t now = p->web->own ? clave__client_now(p->web->own) : 0; /* NULL: this is its end */
    (void)s;
    p->web->now = now > p->web->now ? now : p->web->now;
    p->leaving = true; /* nobody finds it any more */
    while (!list_empty(&p->polls)) {
        struct slot_poll *poll = LIST_ENTRY(p->polls.next, struct slot_poll, link);
        clave__slot_poll_cancel(poll);
        poll->done(poll, &news);
    }
    slot_wait_free(p);
}

static void on_slot_wait_not_polled(struct timer *t, int64_t now)
{
    (void)now;
    clave__slot_wait_leave(LIST_ENTRY(t, struct slot_wait, keep));
}

clave_err clave__slot_order_open(struct web *w, const struct slot_order *o, clave_async_slots **out)
{
    clave_slots_options options = CLAVE_SLOTS_OPTIONS_INIT;
    options.limit = o->limit;
    return clave_async_slots_new(out, w->own, o->path, &options);
}

static clave_err slot_wait_open(struct slot_wait *p, const struct slot_order *o)
{
    clave_slots_options options = CLAVE_SLOTS_OPTIONS_INIT;
    options.limit = o->limit;
    options.event_cb = on_slot_wait_moved;
    options.event_arg = p;
    p->path = clave__mem_strdup(&p->web->mem, o->path);
    p->owner = clave__mem_strdup(&p->web->mem, o->as.id);
    if (!p->path || !p->owner)
        return CLAVE_ENOMEM;
    clave_err err = clave_async_slots_new(&p->slots, p->web->own, o->path, &options);
    return err != CLAVE_OK ? err
                           : clave_async_slots_take(p->slots, THE_TAKE, &o->as, CLAVE_NEVER,
                                                    on_slot_wait_ended, p);
}

clave_err clave__slot_wait_new(struct web *w, struct sender *s, const struct slot_order *o,
                               struct slot_wait **out)
{
    assert(!clave__slot_wait_find(w, o->path, o->as.id));
    struct slot_wait *p = clave__mem_zalloc(&w->mem, sizeof *p);
    *out = NULL;
    if (!p)
        return CLAVE_ENOMEM;
    p->web = w;
    list_init(&p->polls);
    list_push_back(&w->slot_places, &p->link);
    clave__timer_init(&p->keep, on_slot_wait_not_polled);
    clave_err err = slot_wait_open(p, o);
    if (err != CLAVE_OK) {
        slot_wait_free(p);
        return err;
    }
    p->sender = clave__sender_ref(s);
    clave__sender_add(w, s, SENDER_WAITS, 1);
    slot_wait_keep(p);
    *out = p;
    return CLAVE_OK;
}

struct slot_wait *clave__slot_wait_find(struct web *w, const char *path, const char *owner)
{
    struct slot_wait *left = NULL;
    for (struct list *e = w->slot_places.next; e != &w->slot_places; e = e->next) {
        struct slot_wait *p = LIST_ENTRY(e, struct slot_wait, link);
        if (strcmp(p->owner, owner) != 0 || strcmp(p->path, path) != 0)
            continue;
        if (!p->leaving)
            return p;
        left = p;
    }
    return left;
}

bool clave__slot_wait_is_left(const struct slot_wait *p)
{
    return p->leaving;
}

void clave__slot_wait_leave(struct slot_wait *p)
{
    if (p->leaving)
        return;
    p->leaving = true;
    clave__web_timer_clear(p->web, &p->keep);
    (void)clave_async_slots_cancel(p->slots, THE_TAKE); /* its callback comes in any case */
    clave__web_flush(p->web, p->web->own);
}

void clave__slot_places_judge(struct web *w)
{
    for (struct list *e = w->slot_places.next, *next; e != &w->slot_places; e = next) {
        struct slot_wait *p = LIST_ENTRY(e, struct slot_wait, link);
        next = e->next;
        if (list_empty(&p->polls))
            clave__slot_wait_leave(p);
    }
}
