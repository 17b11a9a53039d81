/* lock_view.c - how the queues of a model look to users: which of them are locks and of which kind,
 * and who has which place in them (lock_model.h).
 *
 * Some queues are not shown on their own. Clients that acquire a semaphore's lease or a slot queue
 * beside the leases or owners; they are shown as its waiters. Nodes named by a bare UUID right
 * below a path are leases of a kazoo semaphore only if kazoo's queue is there too, since they may
 * also be the members of a party.
 *
 * What must stay true: nothing here changes the model. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "observe/lock_holders.h"
#include "observe/lock_model.h"
#include "recipe/queue/identity.h"
#include "recipe/slots/slot_node.h"

/* ---- broken slots ---------------------------------------------------------------------------- */

int64_t clave__lock_broken_slot(const char *path, const void *data, size_t len)
{
    char token[24];
    bool says = strcmp(clave__path_name(path), "broken") == 0 &&
                clave__identity_is_form(data, len) &&
                clave__identity_get_field(data, len, "token", token, sizeof token);
    return says ? strtoll(token, NULL, 10) : 0;
}

/* ---- which queues are locks ------------------------------------------------------------------ */

/* True if these leases or slots are empty, but clients are waiting for one or a stranger's node
 * takes their room. A semaphore that nobody holds is recognised by the limit in its waiters' nodes,
 * where clave's clients write it; slots are recognised by the limit in the node beside their queue.
 */
static bool lock_awaits_leases(const struct lock_queue *q)
{
    if (!q->leases || q->places.count > 0)
        return false;
    if (clave__lock_is_slots(q))
        return (q->limited && q->nstrange[LOCK_STRANGE_OWNERS] > 0) ||
               (q->partner && q->partner->places.count > 0);
    return clave__lock_limit(q) != 0;
}

/* Nodes named by a bare UUID alone do not make a semaphore: they may belong to another recipe of
 * kazoo's, such as a party. */
static bool lock_is_semaphore(const struct lock_queue *q)
{
    return q->leases && (q->kazoo || q->nbare < q->places.count || lock_awaits_leases(q));
}

static bool lock_has_leases(const struct lock_queue *q)
{
    return (q->places.count > 0 || lock_awaits_leases(q)) && lock_is_semaphore(q);
}

const struct lock_queue *clave__lock_acquired(const struct lock_queue *q)
{
    const struct lock_queue *leases = q->leases ? NULL : q->partner;
    return leases && lock_has_leases(leases) ? leases : NULL;
}

bool clave__lock_is_shown(const struct lock_queue *q)
{
    return q->leases ? lock_has_leases(q) : q->places.count > 0 && !clave__lock_acquired(q);
}

struct lock_queue *clave__lock_model_after(const struct lock_model *m, const char *path,
                                           bool leases)
{
    struct lock_queue_key key = {path, strlen(path), leases};
    for (struct ordered_node *n; (n = clave__ordered_after(&m->queues, &key, ORDERED_ANY));) {
        struct lock_queue *q = ORDERED_ENTRY(n, struct lock_queue, node);
        if (clave__lock_is_shown(q))
            return q;
        key = (struct lock_queue_key){q->path, q->len, q->leases};
    }
    return NULL;
}

struct lock_queue *clave__lock_model_linked_after(const struct lock_model *m,
                                                  const struct lock_queue *q)
{
    struct lock_queue_key key = {q ? q->path : "", q ? q->len : 0, q && q->leases};
    struct ordered_node *n = clave__ordered_after(&m->queues, &key, LOCK_QUEUE_LINKED);
    return n ? ORDERED_ENTRY(n, struct lock_queue, node) : NULL;
}

struct lock_queue *clave__lock_model_get(const struct lock_model *m, const char *path, bool leases)
{
    struct lock_queue_key key = {path, strlen(path), leases};
    struct lock_queue *q = clave__lock_queue_at(m, &key);
    return q && clave__lock_is_shown(q) ? q : NULL;
}

struct lock_queue *clave__lock_model_find(const struct lock_model *m, const char *path)
{
    struct lock_queue *q = clave__lock_model_get(m, path, false);
    return q ? q : clave__lock_model_get(m, path, true);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

enum lock_queue_kind clave__lock_kind(const struct lock_queue *q)
{
    const struct lock_queue *acquired = clave__lock_acquired(q);
    bool sides = q->of_kind[QUEUE_READ] + q->of_kind[QUEUE_WRITE] + q->of_kind[QUEUE_KAZOO_READ];
    bool latches = q->of_kind[QUEUE_LATCH], locks = q->of_kind[QUEUE_LOCK];
    const struct lock_queue *leases = acquired ? acquired : q;
    if (leases->leases)
        return clave__lock_is_slots(leases) ? LOCK_KIND_SLOT : LOCK_KIND_SEMAPHORE;
    if (sides + latches + locks > 1)
        return LOCK_KIND_MIXED;
    if (sides)
        return LOCK_KIND_RW;
    return latches ? LOCK_KIND_ELECTION : LOCK_KIND_LOCK;
}

const char *clave__lock_kind_name(enum lock_queue_kind kind)
{
    static const char *const names[LOCK_KINDS] = {
        [LOCK_KIND_LOCK] = "lock",           [LOCK_KIND_RW] = "rw",
        [LOCK_KIND_SEMAPHORE] = "semaphore", [LOCK_KIND_SLOT] = "slot",
        [LOCK_KIND_ELECTION] = "election",   [LOCK_KIND_MIXED] = "mixed",
    };
    assert(names[kind]);
    return names[kind];
}

/* ---- steps of an acquire --------------------------------------------------------------------- */

static bool lock_is_owners_turn(const struct lock_node *slot, const struct lock_node *turn)
{
    char id[CLAVE_SLOT_ID_MAX + 1], waits[CLAVE_SLOT_ID_MAX + 1];
    return slot->kept && turn->data && clave__slot_name_parse(slot->name, id) &&
           clave__identity_get_field(turn->data, turn->ndata, "name", waits, sizeof waits) &&
           strcmp(id, waits) == 0;
}

const struct lock_node *clave__lock_turn_of(const struct lock_node *p)
{
    const struct lock_node *turn =
        p->queue->leases ? clave__lock_waiter_after(p->queue, NULL) : NULL;
    while (turn && p->kept &&
           !lock_is_owners_turn(
               p, turn)) /* a take that finds a free slot need not be first in the queue */
        turn = clave__lock_waiter_after(p->queue, turn);
    bool own = turn && (p->kept ? lock_is_owners_turn(p, turn) : turn->session == p->session);
    return own ? turn : NULL;
}

/* True if this change is only a step of an acquire that is reported elsewhere. To acquire a lease,
 * clients queue, and the first in that queue has the turn but not yet a lease; when the lease then
 * appears, that is not another queueing. */
static bool lock_is_step(enum lock_change what, const struct lock_node *p)
{
    const struct lock_queue *leases = clave__lock_acquired(p->queue);
    if (p->queue->leases && what == LOCK_QUEUED)
        return clave__lock_turn_of(p) != NULL;
    if (!leases || what != LOCK_ENDED)
        return leases && what != LOCK_QUEUED;
    struct ordered_node *last = clave__ordered_last(&leases->places, ORDERED_ANY);
    const struct lock_node *newest = last ? ORDERED_ENTRY(last, struct lock_node, node) : NULL;
    if (!newest || newest->token <= p->token)
        return false;
    return newest->kept ? lock_is_owners_turn(newest, p) : newest->session == p->session;
}

const char *clave__lock_told_path(enum lock_change what, const struct lock_node *p)
{
    bool lease = p->kind != QUEUE_LEASE || lock_is_semaphore(p->queue);
    if (!lease || lock_is_step(what, p))
        return NULL;
    const struct lock_queue *acquired = clave__lock_acquired(p->queue);
    return acquired ? acquired->path : p->queue->path;
}

/* ---- places ---------------------------------------------------------------------------------- */

int64_t clave__lock_held_since(const struct lock_node *p, enum lock_since *how)
{
    bool seen = !p->held_before && !(p->unreadable && p->held == p->queued);
    bool waited = seen && p->held != p->queued;
    *how = LOCK_SINCE_NODE;
    if (p->kept)
        return p->queued; /* a slot's node is made when it is taken */
    if (p->recorded >= 0 && !(p->promised && waited))
        return p->recorded;
    *how = seen ? LOCK_SINCE_SEEN : LOCK_SINCE_UNKNOWN;
    return seen ? p->held : -1;
}

size_t clave__lock_nwaiters(const struct lock_queue *q)
{
    if (q->leases)
        return q->partner ? q->partner->places.count - q->partner->nleft_over : 0;
    return q->places.count - q->nholders - q->nleft_over;
}

size_t clave__lock_nleft_over(const struct lock_queue *q)
{
    return q->nleft_over + (q->leases && q->partner ? q->partner->nleft_over : 0);
}

bool clave__lock_has_bad_limit(const struct lock_queue *q)
{
    return q->bad_limit && clave__lock_is_slots(q);
}

/* The directories of slots, or of a semaphore. */
static uint32_t lock_stranger_marks(const struct lock_queue *q)
{
    if (!q->leases)
        return 0;
    return clave__lock_is_slots(q) ? 1U << LOCK_STRANGE_OWNERS | 1U << LOCK_STRANGE_QUEUE
                                   : 1U << LOCK_STRANGE_LEASES | 1U << LOCK_STRANGE_LOCKS;
}

size_t clave__lock_nstrangers(const struct lock_queue *q)
{
    size_t n = 0;
    for (size_t i = 0; i < LOCK_STRANGE_SIDES; i++)
        n += lock_stranger_marks(q) & 1U << i ? q->nstrange[i] : 0;
    return n;
}

const struct lock_stranger *clave__lock_stranger_after(const struct lock_queue *q, const char *name)
{
    uint32_t marks = lock_stranger_marks(q);
    struct ordered_node *n = marks ? clave__ordered_after(&q->strangers, name, marks) : NULL;
    return n ? ORDERED_ENTRY(n, struct lock_stranger, node) : NULL;
}

static struct lock_node *lock_place_after(const struct lock_queue *q, const struct lock_key *key,
                                          uint32_t marks)
{
    struct ordered_node *n = clave__ordered_after(&q->places, key, marks);
    return n ? ORDERED_ENTRY(n, struct lock_node, node) : NULL;
}

struct lock_node *clave__lock_holder_after_key(const struct lock_queue *q,
                                               const struct lock_key *key)
{
    return lock_place_after(q, key, clave__lock_mark_holding(~0u));
}

struct lock_node *clave__lock_waiter_after_key(const struct lock_queue *q,
                                               const struct lock_key *key)
{
    if (!q->leases)
        return lock_place_after(q, key, clave__lock_mark_waiting(~0u));
    const uint32_t live = clave__lock_mark_waiting(~0u) | clave__lock_mark_holding(~0u);
    return q->partner ? lock_place_after(q->partner, key, live) : NULL;
}

/* The left-over places of a semaphore can be in either of its queues. */
struct lock_node *clave__lock_left_over_after_key(const struct lock_queue *q,
                                                  const struct lock_key *key)
{
    const uint32_t marks = clave__lock_mark_left_over(~0u);
    struct lock_node *p = lock_place_after(q, key, marks);
    struct lock_node *other =
        q->leases && q->partner ? lock_place_after(q->partner, key, marks) : NULL;
    if (!p || !other)
        return p ? p : other;
    struct lock_key a = clave__lock_key(p), b = clave__lock_key(other);
    int cmp = strcmp(a.number, b.number);
    return cmp < 0 || (cmp == 0 && strcmp(a.name, b.name) < 0) ? p : other;
}

struct lock_node *clave__lock_holder_after(const struct lock_queue *q, const struct lock_node *p)
{
    struct lock_key key = p ? clave__lock_key(p) : (struct lock_key){"", ""};
    return clave__lock_holder_after_key(q, &key);
}

struct lock_node *clave__lock_waiter_after(const struct lock_queue *q, const struct lock_node *p)
{
    struct lock_key key = p ? clave__lock_key(p) : (struct lock_key){"", ""};
    return clave__lock_waiter_after_key(q, &key);
}

struct lock_node *clave__lock_left_over_after(const struct lock_queue *q, const struct lock_node *p)
{
    struct lock_key key = p ? clave__lock_key(p) : (struct lock_key){"", ""};
    return clave__lock_left_over_after_key(q, &key);
}
