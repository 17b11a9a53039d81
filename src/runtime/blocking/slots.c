/* slots.c - clave_slots: clave_async_slots for threads. */
#include "clave/slots.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/deadline.h"
#include "recipe/slots/slot_node.h"
#include "runtime/blocking/arena.h"
#include "runtime/blocking/thread_grant.h"

struct clave_slots {
    clave_client *client;
    clave_async_slots *slots; /* the loop's thread only, as is everything below */
    struct observer observer;
    struct list waiting; /* takes under way */
    uint64_t requests;
    size_t path_len;
};

/* ---- life ----------------------------------------------------------------------------------- */

struct slots_create {
    clave_slots *s;
    const char *path;
    const clave_slots_options *o;
    clave_err err;
};

static void blocking_slots_create(clave_async_client *c, void *arg)
{
    struct slots_create *b = arg;
    b->err = clave_async_slots_new(&b->s->slots, c, b->path, b->o);
    if (b->err == CLAVE_OK)
        clave__session_adopt(b->s->client, &b->s->observer);
}

static void blocking_slots_on_client_ended(struct observer *o)
{
    clave_slots *s = LIST_ENTRY(o, clave_slots, observer);
    clave_async_slots_free(s->slots);
    s->slots = NULL;
}

clave_err clave_slots_new(clave_slots **out, clave_client *c, const char *path,
                          const clave_slots_options *o)
{
    clave_slots_options own;
    *out = NULL;
    clave_err err = clave__session_take_options(c, &own, sizeof own, o, "clave_slots_options");
    if (err != CLAVE_OK)
        return err;
    clave_slots *s = calloc(1, sizeof *s);
    if (!s)
        return CLAVE_ENOMEM;
    s->client = c;
    s->path_len = strlen(path);
    s->observer.ended = blocking_slots_on_client_ended;
    list_init(&s->waiting);
    struct slots_create b = {.s = s, .path = path, .o = &own, .err = CLAVE_ECLOSED};
    clave__blocking_do(c, blocking_slots_create, &b);
    if (b.err != CLAVE_OK) {
        free(s);
        return b.err;
    }
    *out = s;
    return CLAVE_OK;
}

static void blocking_slots_destroy(clave_async_client *c, void *arg)
{
    clave_slots *s = arg;
    (void)c;
    list_remove(&s->observer.link);
    clave_async_slots_free(s->slots);
}

void clave_slots_free(clave_slots *s)
{
    if (!s || !clave__loop_is_here(s->client->loop))
        return;
    clave__blocking_do(s->client, blocking_slots_destroy, s);
    clave__session_unref(s->client);
    free(s);
}

/* ---- copies --------------------------------------------------------------------------------- */

static void blocking_slots_put(struct arena *p, const clave_slot *from, clave_slot *to)
{
    *to = *from;
    to->id = arena_text(p, from->id);
    to->host = arena_text(p, from->host);
    to->by = arena_text(p, from->by);
    to->reason = arena_text(p, from->reason);
    to->node = arena_text(p, from->node);
}

static size_t blocking_slots_measure(const clave_slot *slot)
{
    struct arena p = {0};
    clave_slot scratch;
    blocking_slots_put(&p, slot, &scratch);
    return p.n;
}

static clave_slots_view *blocking_slots_copy(const clave_slots_view *view)
{
    size_t bytes = blocking_slots_measure(&view->broken);
    for (size_t i = 0; i < view->n; i++)
        bytes += blocking_slots_measure(&view->slots[i]);
    clave_slots_view *copy = malloc(sizeof *copy + view->n * sizeof *view->slots + bytes);
    if (!copy)
        return NULL;
    clave_slot *slots = (clave_slot *)(copy + 1);
    struct arena p = {.at = (char *)(slots + view->n)};
    *copy = (clave_slots_view){.limit = view->limit, .slots = slots, .n = view->n};
    blocking_slots_put(&p, &view->broken, &copy->broken);
    for (size_t i = 0; i < view->n; i++)
        blocking_slots_put(&p, &view->slots[i], &slots[i]);
    assert(p.n == bytes); /* arena.h */
    return copy;
}

void clave_slot_free(clave_slot *slot)
{
    free(slot);
}

void clave_slots_view_free(clave_slots_view *view)
{
    free(view);
}

/* ---- take ----------------------------------------------------------------------------------- */

/* On the stack of the thread that waits. */
struct slots_take {
    struct list link;
    clave_slots *s;
    struct call *call;
    uint64_t request;
    const clave_slot *as;
    int64_t deadline;
    clave_slot *out; /* room for `cap` bytes of texts, allocated beforehand: a take cannot fail */
    size_t cap;
    bool taken;
};

/* One that the id owned before may say more than there is room for. */
static clave_err blocking_slots_keep(struct slots_take *t, const clave_slot *slot)
{
    size_t bytes = blocking_slots_measure(slot);
    if (bytes > t->cap) {
        clave_slot *larger = realloc(t->out, sizeof *larger + bytes);
        if (!larger)
            return CLAVE_ENOMEM;
        t->out = larger;
    }
    struct arena p = {.at = (char *)(t->out + 1)};
    blocking_slots_put(&p, slot, t->out);
    return CLAVE_OK;
}

static void blocking_slots_on_taken(clave_async_slots *s, clave_err err, const clave_slot *slot,
                                    bool taken, void *arg)
{
    struct slots_take *t = arg;
    (void)s;
    list_remove(&t->link);
    t->taken = taken;
    if (err == CLAVE_OK)
        err = blocking_slots_keep(t, slot);
    clave__call_finish(t->call, err);
}

static clave_err blocking_slots_begin_take(struct call *c, void *args)
{
    struct slots_take *t = args;
    clave_slots *s = t->s;
    t->call = c;
    t->request = s->requests++;
    clave_err err = clave_async_slots_take(s->slots, t->request, t->as, t->deadline,
                                           blocking_slots_on_taken, t);
    if (err == CLAVE_OK)
        list_push_back(&s->waiting, &t->link);
    return err;
}

clave_err clave_slots_take(clave_slots *s, const clave_slot *as, int64_t timeout_ms,
                           clave_slot **out, bool *taken)
{
    clave_slot own = *as;
    struct slots_take t = {.s = s, .as = &own};
    struct call_spec spec = {.begin = blocking_slots_begin_take, .args = &t};
    *out = NULL;
    own.node = NULL;
    t.cap = blocking_slots_measure(&own) + s->path_len + sizeof "/owners/" + SLOT_NAME_CAP +
            SLOT_BELOW_CAP;
    t.out = calloc(1, sizeof *t.out + t.cap);
    if (!t.out)
        return CLAVE_ENOMEM;
    t.deadline = timeout_ms == 0 ? CLAVE_TRY : clave__deadline_after(timeout_ms);
    list_init(&t.link);
    /* The only clock is the engine's timer: the call itself has no deadline, and so `t` is still
     * there for the callback. */
    clave_err err = clave__call(s->client, &spec, -1, NULL);
    if (err != CLAVE_OK) {
        free(t.out);
        return err;
    }
    *out = t.out;
    if (taken)
        *taken = t.taken;
    return CLAVE_OK;
}

static void blocking_slots_cancel_all(clave_async_client *c, void *arg)
{
    clave_slots *s = arg;
    (void)c;
    for (struct list *e = s->waiting.next; e != &s->waiting; e = e->next)
        (void)clave_async_slots_cancel(s->slots, LIST_ENTRY(e, struct slots_take, link)->request);
}

void clave_slots_cancel(clave_slots *s)
{
    clave__blocking_do(s->client, blocking_slots_cancel_all, s);
}

/* ---- give, break, limit --------------------------------------------------------------------- */

struct slots_give {
    clave_slots *s;
    const clave_slot *which;
    bool breaks;
    int64_t deadline;
};

/* The reply exists as long as the call, even if the waiting thread has given up. Its zxid is that
 * of the slot. */
static void blocking_slots_on_given(clave_async_slots *s, clave_err err, const clave_slot *slot,
                                    void *arg)
{
    struct call *c = arg;
    (void)s;
    c->reply->err = err;
    c->reply->stat.czxid = slot ? slot->token : 0;
    clave__call_finish(c, err);
}

static clave_err blocking_slots_begin_give(struct call *c, void *args)
{
    const struct slots_give *g = args;
    const clave_slot *w = g->which;
    if (g->breaks)
        return clave_async_slots_break(g->s->slots, w, g->deadline, blocking_slots_on_given, c);
    return clave_async_slots_give(g->s->slots, w->id, w->token, g->deadline,
                                  blocking_slots_on_given, c);
}

static clave_err blocking_slots_give(struct slots_give *g, int64_t timeout_ms, int64_t *given)
{
    struct call_spec spec = {.begin = blocking_slots_begin_give, .args = g};
    clave_reply *reply = NULL;
    /* The engine's timer is the only clock: nothing goes on after the answer. */
    g->deadline = clave__deadline_after(timeout_ms);
    clave_err err = clave__call(g->s->client, &spec, -1, &reply);
    if (err == CLAVE_OK && given)
        *given = reply->stat.czxid;
    clave_reply_free(reply);
    return err;
}

clave_err clave_slots_give(clave_slots *s, const char *id, int64_t token, int64_t timeout_ms,
                           int64_t *given)
{
    const clave_slot which = {.id = id, .token = token};
    struct slots_give g = {.s = s, .which = &which};
    return blocking_slots_give(&g, timeout_ms, given);
}

clave_err clave_slots_break(clave_slots *s, const clave_slot *which, int64_t timeout_ms,
                            int64_t *broken)
{
    struct slots_give g = {.s = s, .which = which, .breaks = true};
    return blocking_slots_give(&g, timeout_ms, broken);
}

struct slots_limit_change {
    clave_slots *s;
    uint32_t limit;
};

static void blocking_slots_on_limit(clave_async_slots *s, clave_err err, void *arg)
{
    (void)s;
    clave__call_finish(arg, err);
}

static clave_err blocking_slots_begin_limit(struct call *c, void *args)
{
    const struct slots_limit_change *l = args;
    return clave_async_slots_set_limit(l->s->slots, l->limit, blocking_slots_on_limit, c);
}

clave_err clave_slots_set_limit(clave_slots *s, uint32_t limit, int64_t timeout_ms)
{
    struct slots_limit_change l = {.s = s, .limit = limit};
    struct call_spec spec = {.begin = blocking_slots_begin_limit, .args = &l};
    return clave__call(s->client, &spec, timeout_ms, NULL);
}

/* ---- the list ------------------------------------------------------------------------------- */

struct slots_query {
    const char *path;
};

static void blocking_slots_on_list(clave_async_client *client, clave_err err,
                                   const clave_slots_view *view, void *arg)
{
    struct call *c = arg;
    (void)client;
    if (err == CLAVE_OK) {
        c->reply->data = blocking_slots_copy(view);
        err = c->reply->data ? CLAVE_OK : CLAVE_ENOMEM;
    }
    c->reply->err = err;
    clave__call_finish(c, err);
}

static clave_err blocking_slots_begin_list(struct call *c, void *args)
{
    const struct slots_query *q = args;
    return clave_async_slots_list(c->client->async, q->path, blocking_slots_on_list, c);
}

clave_err clave_slots_list(clave_client *c, const char *path, int64_t timeout_ms,
                           clave_slots_view **out)
{
    struct slots_query q = {path};
    struct call_spec spec = {.begin = blocking_slots_begin_list, .args = &q};
    clave_reply *reply = NULL;
    *out = NULL;
    clave_err err = clave__call(c, &spec, timeout_ms, &reply);
    if (err != CLAVE_OK)
        return err;
    *out = reply->data;
    reply->data = NULL;
    clave_reply_free(reply);
    return CLAVE_OK;
}

/* ---- what is owned -------------------------------------------------------------------------- */

struct slots_grant_request {
    clave_slots *s;
    const clave_slot *slot;
};

static clave_err blocking_slots_find_grant(void *holder, uint64_t owner, clave_async_grant **out)
{
    const struct slots_grant_request *r = holder;
    (void)owner;
    return clave_async_slots_grant(r->s->slots, r->slot, out);
}

clave_err clave_slots_grant(clave_slots *s, const clave_slot *slot, clave_grant **out)
{
    struct slots_grant_request r = {s, slot};
    return clave__thread_grant_take(out, s->client, blocking_slots_find_grant, &r, 0);
}
