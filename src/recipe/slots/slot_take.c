/* slot_take.c - a take: its states, its end, its times. Called by slots.c and slot_take_steps.c. */
#include "recipe/slots/slot_take.h"

#include <assert.h>
#include <string.h>

#include "base/err_class.h"
#include "base/path.h"
#include "recipe/slots/slot_name.h"

enum { PAUSE_MS = 250 };

/* ---- states ---------------------------------------------------------------------------------- */

#define TO(state) (1U << (state))
static const unsigned slot_take_moves[] = {
    [TAKE_LOOKING] = TO(TAKE_PREPARING) | TO(TAKE_QUEUEING) | TO(TAKE_COUNTING) | TO(TAKE_READING) |
                     TO(TAKE_ENDED),
    [TAKE_PREPARING] = TO(TAKE_LOOKING) | TO(TAKE_ENDED),
    [TAKE_QUEUEING] = TO(TAKE_COUNTING) | TO(TAKE_TAKING) | TO(TAKE_ENDED),
    [TAKE_COUNTING] = TO(TAKE_LOOKING) | TO(TAKE_PREPARING) | TO(TAKE_COUNTING) | TO(TAKE_FULL) |
                      TO(TAKE_TAKING) | TO(TAKE_READING) | TO(TAKE_ENDED),
    [TAKE_FULL] = TO(TAKE_LOOKING) | TO(TAKE_COUNTING) | TO(TAKE_ENDED),
    [TAKE_TAKING] = TO(TAKE_LOOKING) | TO(TAKE_COUNTING) | TO(TAKE_READING) | TO(TAKE_ENDED),
    [TAKE_READING] = TO(TAKE_LOOKING) | TO(TAKE_ENDED),
    [TAKE_ENDED] = 0,
};

void clave__slot_take_enter(struct slot_take *t, enum slot_take_state to)
{
    bool allowed = slot_take_moves[t->state] & TO(to);
    assert(allowed);
    (void)allowed;
    t->state = to;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void slot_take_free(struct slot_take *t)
{
    clave_async_slots *s = t->slots;
    assert(!t->place);
    clave__client_unlisten(&t->listener);
    clave__slot_count_fini(&t->count);
    clave__mem_free(s->mem, t->node);
    clave__mem_free(s->mem, t->data);
    clave__mem_free(s->mem, t->found);
    clave__mem_free(s->mem, t);
}

void clave__slot_take_settle(struct slot_take *t)
{
    if (t->state != TAKE_ENDED || t->cb || t->busy > 0 || t->count.pending > 0)
        return;
    clave_async_slots *s = t->slots;
    slot_take_free(t);
    clave__slots_drop(s);
}

void clave__slot_take_leave(struct slot_take *t, bool spent)
{
    struct contender *place = t->place;
    t->place = NULL;
    if (place && spent)
        clave__contender_spend(place);
    else if (place)
        clave__contender_leave(place, NULL, NULL);
}

void clave__slot_take_answer(struct slot_take *t, clave_err err)
{
    clave_async_client *c = t->slots->client;
    clave__slot_take_enter(t, TAKE_ENDED);
    clave__client_timer_clear(c, &t->limit);
    clave__client_timer_clear(c, &t->pause);
    clave__client_unlisten(&t->listener);
    clave__slot_count_unwatch(&t->count);
    clave__slot_take_leave(t, false);
    bool done = err == CLAVE_OK;
    t->verdict = !done && t->doubt != CLAVE_OK ? t->doubt : err;
    clave__client_later(c, &t->due);
}

static void slot_take_on_due(struct client_task *task)
{
    struct slot_take *t = LIST_ENTRY(task, struct slot_take, due);
    clave_async_slots *s = t->slots;
    clave_async_slots_take_cb *cb = t->cb;
    bool ok = t->verdict == CLAVE_OK;
    bool taken = ok && t->slot.node == t->node;
    list_remove(&t->link);
    t->cb = NULL;
    t->busy++;
    cb(s, t->verdict, ok ? &t->slot : NULL, taken, t->arg);
    t->busy--;
    clave__slot_take_settle(t);
}

bool clave__slot_take_is_late(const struct slot_take *t)
{
    return !t->trying && t->deadline <= clave__client_now(t->slots->client);
}

clave_err clave__slot_take_not_in_time(const struct slot_take *t)
{
    if (t->canceled)
        return CLAVE_ECANCELED;
    if (t->state == TAKE_QUEUEING && t->place &&
        clave__contender_not_in_time(t->place) == CLAVE_EBUSY)
        return CLAVE_EBUSY;
    return clave__client_not_in_time(t->slots->client, t->full_on);
}

void clave__slot_take_retry_or_fail(struct slot_take *t, clave_err err)
{
    clave_async_client *c = t->slots->client;
    bool again = clave__err_passes(err) && clave_async_client_state(c) != CLAVE_STATE_CLOSED;
    if (again && (t->canceled || clave__slot_take_is_late(t)))
        clave__slot_take_answer(t, clave__slot_take_not_in_time(t));
    else if (again)
        clave__client_timer_set(c, &t->pause, clave__client_now(c) + PAUSE_MS);
    else
        clave__slot_take_answer(t, err);
}

/* ---- time and the session -------------------------------------------------------------------- */

static void slot_take_on_pause(struct timer *timer, int64_t now)
{
    (void)now;
    struct slot_take *t = LIST_ENTRY(timer, struct slot_take, pause);
    if (t->state == TAKE_LOOKING)
        clave__slot_take_look(t);
    else if (t->state == TAKE_COUNTING)
        clave__slot_take_count(t);
}

/* The answer of the transaction decides. */
static void slot_take_on_limit(struct timer *timer, int64_t now)
{
    (void)now;
    struct slot_take *t = LIST_ENTRY(timer, struct slot_take, limit);
    if (t->state != TAKE_TAKING)
        clave__slot_take_answer(t, clave__slot_take_not_in_time(t));
}

/* A reconnect: the watches are armed again, but what they told of may be late. */
static void slot_take_on_state(struct listener *l, clave_state state, clave_err why)
{
    (void)why;
    struct slot_take *t = LIST_ENTRY(l, struct slot_take, listener);
    if (state == CLAVE_STATE_CLOSED && t->state != TAKE_TAKING)
        clave__slot_take_answer(t, CLAVE_ECLOSED);
    else if (state == CLAVE_STATE_SUSPENDED && t->trying && t->state != TAKE_TAKING)
        clave__slot_take_answer(t, clave__slot_take_not_in_time(t));
    else if (state == CLAVE_STATE_RECONNECTED && t->state == TAKE_FULL)
        clave__slot_take_count(t);
}

void clave__slot_take_cancel(struct slot_take *t, bool at_once)
{
    t->canceled = true;
    if (at_once && t->state == TAKE_TAKING)
        t->doubt = CLAVE_ECONNLOSS;
    if (at_once || (t->state != TAKE_TAKING && t->state != TAKE_READING && t->doubt == CLAVE_OK))
        clave__slot_take_answer(t, CLAVE_ECANCELED);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct slot_take *clave__slot_take_first(const clave_async_slots *s)
{
    for (struct list *e = s->takes.next; e != &s->takes; e = e->next) {
        struct slot_take *t = LIST_ENTRY(e, struct slot_take, link);
        if (t->state != TAKE_ENDED)
            return t;
    }
    return NULL;
}

struct slot_take *clave__slot_take_find(const clave_async_slots *s, uint64_t request)
{
    for (struct list *e = s->takes.next; e != &s->takes; e = e->next) {
        struct slot_take *t = LIST_ENTRY(e, struct slot_take, link);
        if (t->request == request && t->state != TAKE_ENDED)
            return t;
    }
    return NULL;
}

static const char *slot_take_copy(char **at, const char *text)
{
    if (!text)
        return NULL;
    char *copy = *at;
    size_t n = strlen(text) + 1;
    memcpy(copy, text, n);
    *at += n;
    return copy;
}

static size_t slot_take_text_len(const clave_slot *as)
{
    return strlen(as->id) + (as->host ? strlen(as->host) : 0) + (as->by ? strlen(as->by) : 0) +
           (as->reason ? strlen(as->reason) : 0) + 4;
}

static clave_err slot_take_fill(struct slot_take *t, const clave_slot *as)
{
    clave_async_slots *s = t->slots;
    char *at = t->texts;
    char prefix[CLAVE_PROTECTED_PREFIX + 1]; /* "_c_<uuid>-" */
    char name[SLOT_NAME_CAP];
    t->as = (clave_slot){.id = slot_take_copy(&at, as->id),
                         .host = slot_take_copy(&at, as->host),
                         .by = slot_take_copy(&at, as->by),
                         .reason = slot_take_copy(&at, as->reason)};
    clave__client_protect(s->client, prefix);
    prefix[3 + CLAVE_UUID_TEXT] = '\0';
    clave__slot_name_format(name, t->as.id, prefix + 3);
    t->node = clave__path_child(s->mem, s->paths.owners, name);
    t->data = clave__slot_data_format(s->mem, &t->as, &t->ndata);
    clave_err err = clave__slot_count_init(&t->count, s, t->as.id, clave__slot_take_on_count,
                                           clave__slot_take_on_changed);
    return t->node && t->data ? err : CLAVE_ENOMEM;
}

clave_err clave__slot_take_new(struct slot_take **out, clave_async_slots *s, uint64_t request,
                               const clave_slot *as)
{
    struct slot_take *t = clave__mem_zalloc(s->mem, sizeof *t + slot_take_text_len(as));
    *out = t;
    if (!t)
        return CLAVE_ENOMEM;
    t->slots = s;
    t->request = request;
    list_init(&t->link);
    list_init(&t->due.link);
    list_init(&t->listener.link);
    t->due.run = slot_take_on_due;
    t->listener.on_state = slot_take_on_state;
    clave__timer_init(&t->limit, slot_take_on_limit);
    clave__timer_init(&t->pause, slot_take_on_pause);
    clave_err err = slot_take_fill(t, as);
    if (err == CLAVE_OK)
        return CLAVE_OK;
    slot_take_free(t);
    *out = NULL;
    return err;
}

void clave__slot_take_start(struct slot_take *t, int64_t deadline, clave_async_slots_take_cb *cb,
                            void *arg)
{
    clave_async_slots *s = t->slots;
    int64_t now = clave__client_now(s->client);
    t->deadline = deadline;
    t->trying = deadline <= now;
    t->cb = cb;
    t->arg = arg;
    clave__slots_hold(s);
    list_push_back(&s->takes, &t->link);
    clave__client_listen(s->client, &t->listener);
    if (!t->trying && deadline != CLAVE_NEVER)
        clave__client_timer_set(s->client, &t->limit, deadline);
    /* A try never waits, not even for a connection. */
    if (t->trying && !clave_async_client_is_connected(s->client))
        clave__slot_take_answer(t, clave__slot_take_not_in_time(t));
    else
        clave__slot_take_look(t);
}
