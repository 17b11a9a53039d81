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
    struct child child;
    clave_async_slots *slots; /* used by the loop's thread only, as is everything below */
    struct list waiting;      /* takes under way */
    uint64_t requests;
    size_t path_len;
};

/* ---- creating and freeing -------------------------------------------------------------------- */

static clave_err slots_make(clave_async_client *c, const struct args *a)
{
    clave_slots *s = a->of;
    return clave_async_slots_new(&s->slots, c, a->path, a->options);
}

static void slots_on_ended(struct child *c)
{
    clave_slots *s = LIST_ENTRY(c, clave_slots, child);
    clave_async_slots_free(s->slots);
    s->slots = NULL;
}

clave_err clave_slots_new(clave_slots **out, clave_client *c, const char *path,
                          const clave_slots_options *o)
{
    static const struct child_kind kind = {.ended = slots_on_ended};
    clave_slots_options own;
    *out = NULL;
    clave_err err = clave__blocking_take_options(c, &own, sizeof own, o, "clave_slots_options");
    if (err != CLAVE_OK)
        return err;
    clave_slots *s = calloc(1, sizeof *s);
    if (!s)
        return CLAVE_ENOMEM;
    s->path_len = strlen(path);
    list_init(&s->waiting);
    err = clave__child_open(&s->child, c, &kind, slots_make,
                            &(struct args){.of = s, .path = path, .options = &own});
    if (err == CLAVE_OK)
        *out = s;
    else
        free(s);
    return err;
}

void clave_slots_free(clave_slots *s)
{
    if (s && clave__child_close(&s->child))
        free(s);
}

/* ---- copies --------------------------------------------------------------------------------- */

static void put_slot(struct arena *p, const clave_slot *from, clave_slot *to)
{
    *to = *from;
    to->id = arena_text(p, from->id);
    to->host = arena_text(p, from->host);
    to->by = arena_text(p, from->by);
    to->reason = arena_text(p, from->reason);
    to->node = arena_text(p, from->node);
}

static size_t measure_slot(const clave_slot *slot)
{
    struct arena p = {0};
    clave_slot scratch;
    put_slot(&p, slot, &scratch);
    return p.n;
}

static clave_slots_view *copy_view(const clave_slots_view *view)
{
    size_t bytes = measure_slot(&view->broken);
    for (size_t i = 0; i < view->n; i++)
        bytes += measure_slot(&view->slots[i]);
    clave_slots_view *copy = malloc(sizeof *copy + view->n * sizeof *view->slots + bytes);
    if (!copy)
        return NULL;
    clave_slot *slots = (clave_slot *)(copy + 1);
    struct arena p = {.at = (char *)(slots + view->n)};
    *copy = (clave_slots_view){.limit = view->limit, .slots = slots, .n = view->n};
    put_slot(&p, &view->broken, &copy->broken);
    for (size_t i = 0; i < view->n; i++)
        put_slot(&p, &view->slots[i], &slots[i]);
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

/* Lives on the stack of the thread that waits. */
struct take {
    struct list link;
    clave_slots *s;
    struct call *call;
    uint64_t request;
    const clave_slot *as;
    int64_t deadline;
    /* Room for `cap` bytes of texts, allocated beforehand, so that a take cannot fail. */
    clave_slot *out;
    size_t cap;
    bool taken;
};

/* Copies the slot. One that the id already owned may have longer texts than there is room for. */
static clave_err keep_slot(struct take *t, const clave_slot *slot)
{
    size_t bytes = measure_slot(slot);
    if (bytes > t->cap) {
        clave_slot *larger = realloc(t->out, sizeof *larger + bytes);
        if (!larger)
            return CLAVE_ENOMEM;
        t->out = larger;
    }
    struct arena p = {.at = (char *)(t->out + 1)};
    put_slot(&p, slot, t->out);
    return CLAVE_OK;
}

static void on_taken(clave_async_slots *s, clave_err err, const clave_slot *slot, bool taken,
                     void *arg)
{
    struct take *t = arg;
    (void)s;
    list_remove(&t->link);
    t->taken = taken;
    if (err == CLAVE_OK)
        err = keep_slot(t, slot);
    clave__call_finish(t->call, err);
}

static clave_err begin_take(struct call *c, const struct args *a)
{
    struct take *t = a->of;
    clave_slots *s = t->s;
    t->call = c;
    t->request = s->requests++;
    clave_err err = clave_async_slots_take(s->slots, t->request, t->as, t->deadline, on_taken, t);
    if (err == CLAVE_OK)
        list_push_back(&s->waiting, &t->link);
    return err;
}

clave_err clave_slots_take(clave_slots *s, const clave_slot *as, int64_t timeout_ms,
                           clave_slot **out, bool *taken)
{
    clave_slot own = *as;
    struct take t = {.s = s, .as = &own};
    *out = NULL;
    own.node = NULL;
    t.cap = measure_slot(&own) + s->path_len + sizeof "/owners/" + SLOT_NAME_CAP + SLOT_BELOW_CAP;
    t.out = calloc(1, sizeof *t.out + t.cap);
    if (!t.out)
        return CLAVE_ENOMEM;
    t.deadline = timeout_ms == 0 ? CLAVE_TRY : clave__deadline_after(timeout_ms);
    list_init(&t.link);
    /* The only clock is the engine's timer. The call itself has no deadline, so `t` still exists
     * when the callback runs. */
    clave_err err = clave__call(s->child.client, begin_take, &(struct args){.of = &t}, -1, NULL);
    if (err != CLAVE_OK) {
        free(t.out);
        return err;
    }
    *out = t.out;
    if (taken)
        *taken = t.taken;
    return CLAVE_OK;
}

static clave_err cancel_takes(clave_async_client *c, const struct args *a)
{
    clave_slots *s = a->of;
    (void)c;
    for (struct list *e = s->waiting.next; e != &s->waiting; e = e->next)
        (void)clave_async_slots_cancel(s->slots, LIST_ENTRY(e, struct take, link)->request);
    return CLAVE_OK;
}

void clave_slots_cancel(clave_slots *s)
{
    (void)clave__visit(s->child.client, cancel_takes, &(struct args){.of = s});
}

/* ---- give, break, limit --------------------------------------------------------------------- */

/* The zxid in the reply is the token of the slot. */
static void on_given(clave_async_slots *s, clave_err err, const clave_slot *slot, void *arg)
{
    struct call *c = arg;
    (void)s;
    c->reply->err = err;
    c->reply->stat.czxid = slot ? slot->token : 0;
    clave__call_finish(c, err);
}

static clave_err begin_give(struct call *c, const struct args *a)
{
    const clave_slots *s = a->of;
    const clave_slot *which = a->data;
    return clave_async_slots_give(s->slots, which->id, which->token, a->deadline, on_given, c);
}

static clave_err begin_break(struct call *c, const struct args *a)
{
    const clave_slots *s = a->of;
    return clave_async_slots_break(s->slots, a->data, a->deadline, on_given, c);
}

static clave_err give(clave_slots *s, call_begin *begin, const clave_slot *which,
                      int64_t timeout_ms, int64_t *given)
{
    /* The engine's timer is the only clock: nothing continues after the answer. */
    struct args a = {.of = s, .data = which, .deadline = clave__deadline_after(timeout_ms)};
    clave_reply *reply = NULL;
    clave_err err = clave__call(s->child.client, begin, &a, -1, &reply);
    if (err == CLAVE_OK && given)
        *given = reply->stat.czxid;
    clave_reply_free(reply);
    return err;
}

clave_err clave_slots_give(clave_slots *s, const char *id, int64_t token, int64_t timeout_ms,
                           int64_t *given)
{
    return give(s, begin_give, &(clave_slot){.id = id, .token = token}, timeout_ms, given);
}

clave_err clave_slots_break(clave_slots *s, const clave_slot *which, int64_t timeout_ms,
                            int64_t *broken)
{
    return give(s, begin_break, which, timeout_ms, broken);
}

static void on_limit(clave_async_slots *s, clave_err err, void *arg)
{
    (void)s;
    clave__call_finish(arg, err);
}

static clave_err begin_limit(struct call *c, const struct args *a)
{
    const clave_slots *s = a->of;
    return clave_async_slots_set_limit(s->slots, (uint32_t)a->owner, on_limit, c);
}

clave_err clave_slots_set_limit(clave_slots *s, uint32_t limit, int64_t timeout_ms)
{
    struct args a = {.of = s, .owner = limit};
    return clave__call(s->child.client, begin_limit, &a, timeout_ms, NULL);
}

/* ---- the list ------------------------------------------------------------------------------- */

static void on_list(clave_async_client *client, clave_err err, const clave_slots_view *view,
                    void *arg)
{
    (void)client;
    clave__call_answer_block(arg, err, err == CLAVE_OK ? copy_view(view) : NULL);
}

static clave_err begin_list(struct call *c, const struct args *a)
{
    return clave_async_slots_list(c->client->async, a->path, on_list, c);
}

clave_err clave_slots_list(clave_client *c, const char *path, int64_t timeout_ms,
                           clave_slots_view **out)
{
    void *view;
    clave_err err =
        clave__call_block(c, begin_list, &(struct args){.path = path}, timeout_ms, &view);
    *out = view;
    return err;
}

/* ---- grants ---------------------------------------------------------------------------------- */

struct grant_request {
    clave_slots *s;
    const clave_slot *slot;
};

static clave_err slot_find_grant(void *holder, uint64_t owner, clave_async_grant **out)
{
    const struct grant_request *r = holder;
    (void)owner;
    return clave_async_slots_grant(r->s->slots, r->slot, out);
}

clave_err clave_slots_grant(clave_slots *s, const clave_slot *slot, clave_grant **out)
{
    struct grant_request r = {s, slot};
    return clave__thread_grant_take(out, s->child.client, slot_find_grant, &r, 0);
}
