/* session_tracker.c - the table of sessions, and the ring that expires them; see session_tracker.h.
 * Every session in the table is in the ring or in `due`. It expires at the end of a tick, never
 * before its timeout. */
#include "server/request/session_tracker.h"

#include <assert.h>

#include "base/memory.h"

/* Apache puts the number of the server into the top byte of a session's id; a standalone server has
 * 1. */
enum { SERVER_ID = 1, ID_SHIFT = 56 };

/* ---- ids and passwords ----------------------------------------------------------------------- */

/* The algorithm is java.util.Random's, seeded with the id and Apache's constant. */
void clave__session_password(int64_t id, uint8_t out[WIRE_PASSWORD_LEN])
{
    const uint64_t multiplier = 0x5DEECE66Du, mask = ((uint64_t)1 << 48) - 1;
    uint64_t state = ((uint64_t)id ^ 0xB3415C00u ^ multiplier) & mask;
    for (int i = 0; i < WIRE_PASSWORD_LEN; i += 4) {
        state = (state * multiplier + 0xB) & mask;
        uint32_t word = (uint32_t)(state >> 16);
        for (int b = 0; b < 4; b++)
            out[i + b] = (uint8_t)(word >> (8 * b));
    }
}

int64_t clave__session_id_at(int64_t wall)
{
    return (int64_t)((uint64_t)wall << 24 >> 8) | (int64_t)SERVER_ID << ID_SHIFT;
}

/* Ids only go up, so setting the clock back cannot produce the same id twice. */
int64_t clave__sessions_new_id(const struct sessions *t)
{
    return t->newest_id < t->first_id ? t->first_id : t->newest_id + 1;
}

void clave__sessions_note_id(struct sessions *t, int64_t id)
{
    if (id >> ID_SHIFT == SERVER_ID && id > t->newest_id)
        t->newest_id = id;
}

/* ---- the ring -------------------------------------------------------------------------------- */

static int64_t session_tracker_end_of_tick(const struct sessions *t, int64_t at)
{
    assert(t->tick_ms > 0);
    return (at / t->tick_ms + 1) * t->tick_ms;
}

static void session_tracker_put_in_ring(struct sessions *t, struct session *s)
{
    assert(list_empty(&s->in_ring));
    int64_t tick = clave__session_expires(t, s) / t->tick_ms;
    if (tick <= t->done)
        tick = t->done + 1;
    if (tick >= t->done + SESSION_RING)
        tick = t->done + SESSION_RING - 1;
    list_push_back(&t->ring[tick % SESSION_RING], &s->in_ring);
}

/* Extends the session's life. Only the time is noted here; the session moves within the ring when
 * its old place comes up. */
static void session_tracker_touch(const struct sessions *t, struct session *s)
{
    s->expires = session_tracker_end_of_tick(t, t->now + s->timeout_ms);
}

/* In ms. The default timeouts are 4 to 40 s. */
static const struct histogram_bounds slack_bounds = {
    10, {100, 250, 500, 1000, 2500, 5000, 10000, 20000, 40000, 80000}};

void clave__session_heard(struct sessions *t, struct session *s)
{
    int64_t before = clave__session_expires(t, s);
    session_tracker_touch(t, s);
    s->lent = LENT_NOTHING;
    /* Noted once per tick: most requests arrive in the same tick as the one before. */
    if (clave__session_expires(t, s) != before)
        clave__histogram_note(&t->slack_ms, before > t->now ? before - t->now : 0);
}

bool clave__session_lend(struct session *s)
{
    if (s->lent == LENT_LAST)
        return false;
    s->lent = LENT_TIME;
    return true;
}

void clave__session_postpone(struct sessions *t, struct session *s)
{
    assert(!list_empty(&s->in_ring));
    s->expires = session_tracker_end_of_tick(t, t->now);
    list_remove(&s->in_ring);
    session_tracker_put_in_ring(t, s);
}

void clave__sessions_postpone_all(struct sessions *t, int64_t now)
{
    t->none_before = session_tracker_end_of_tick(t, now + t->tick_ms);
}

void clave__sessions_advance(struct sessions *t, int64_t now)
{
    assert(now >= t->now);
    int64_t target = now / t->tick_ms;
    int64_t first = t->done + 1;
    t->now = now;
    if (target < first)
        return;
    int64_t steps = target - first < SESSION_RING ? target - first + 1 : SESSION_RING;
    for (int64_t i = 0; i < steps; i++)
        list_splice(&t->due, &t->ring[(first + i) % SESSION_RING]);
    t->done = target;
}

struct session *clave__sessions_next_due(struct sessions *t, int *looks)
{
    struct list *e;
    while (*looks > 0 && (e = list_pop_front(&t->due))) {
        --*looks;
        struct session *s = LIST_ENTRY(e, struct session, in_ring);
        if (clave__session_expires(t, s) <= t->now && s->lent == LENT_TIME) {
            s->lent = LENT_LAST;
            session_tracker_touch(t, s);
        }
        session_tracker_put_in_ring(t, s);
        if (clave__session_expires(t, s) <= t->now)
            return s;
    }
    return NULL;
}

int64_t clave__sessions_deadline(const struct sessions *t)
{
    if (!list_empty(&t->due))
        return t->now + 1;
    for (int64_t i = 1; i <= SESSION_RING; i++)
        if (!list_empty(&t->ring[(t->done + i) % SESSION_RING]))
            return (t->done + i) * t->tick_ms;
    return INT64_MAX;
}

/* ---- sessions without a connection, by address ----------------------------------------------- */

struct detached {
    struct map_node node; /* the hash is the key */
    size_t count;         /* never 0 */
};

static bool detached_matches(const struct map_node *node, const void *key)
{
    (void)node;
    (void)key;
    return true;
}

static struct detached *detached_find(const struct sessions *t, uint32_t hash)
{
    struct map_node *n = clave__map_find(&t->detached, hash, detached_matches, NULL);
    return n ? MAP_ENTRY(n, struct detached, node) : NULL;
}

/* The hash of an address; never 0, which means none. */
static uint32_t detached_hash(const struct sessions *t, const struct peer_addr *from)
{
    uint32_t hash = clave__map_hash_bytes(&t->detached, from->ip, clave__peer_counted(from));
    return hash ? hash : 1;
}

static void detached_count_out(struct sessions *t, struct session *s)
{
    struct detached *d = s->detached_from ? detached_find(t, s->detached_from) : NULL;
    s->detached_from = 0;
    assert(!d || d->count > 0);
    if (!d || --d->count > 0)
        return;
    clave__map_remove(&t->detached, &d->node);
    clave__mem_free(t->mem, d);
}

/* If there is no memory, the session is not counted. */
static void detached_count_in(struct sessions *t, struct session *s, uint32_t hash)
{
    assert(hash != 0 && s->detached_from == 0);
    struct detached *d = detached_find(t, hash);
    if (!d && (d = clave__mem_zalloc(t->mem, sizeof *d)))
        clave__map_insert(&t->detached, &d->node, hash);
    if (!d)
        return;
    d->count++;
    s->detached_from = hash;
}

void clave__session_attach(struct sessions *t, struct session *s, struct server_conn *conn)
{
    assert(!s->conn); /* the previous connection was cut */
    s->conn = conn;
    detached_count_out(t, s);
}

void clave__session_detach(struct sessions *t, struct session *s, const struct peer_addr *from)
{
    assert(s->conn);
    s->conn = NULL;
    if (from->family != 0)
        detached_count_in(t, s, detached_hash(t, from));
}

size_t clave__sessions_detached(const struct sessions *t, const struct peer_addr *from)
{
    const struct detached *d = from->family != 0 ? detached_find(t, detached_hash(t, from)) : NULL;
    return d ? d->count : 0;
}

static void detached_fini(struct sessions *t)
{
    struct map_node *at = clave__map_next(&t->detached, NULL);
    while (at) {
        struct map_node *next = clave__map_next(&t->detached, at);
        clave__mem_free(t->mem, MAP_ENTRY(at, struct detached, node));
        at = next;
    }
    clave__map_fini(&t->detached);
}

/* ---- the table ------------------------------------------------------------------------------- */

static bool server_session_has_id(const struct map_node *node, const void *key)
{
    const struct session *s = (const void *)node; /* its first member */
    return s->id == *(const int64_t *)key;
}

struct session *clave__sessions_find(const struct sessions *t, int64_t id)
{
    struct map_node *n =
        clave__map_find(&t->table, clave__map_hash_u64((uint64_t)id), server_session_has_id, &id);
    return n ? MAP_ENTRY(n, struct session, in_table) : NULL;
}

clave_err clave__sessions_add(struct sessions *t, int64_t id, int32_t timeout_ms,
                              struct session **out)
{
    struct session *s = clave__sessions_find(t, id);
    if (!s) {
        s = clave__mem_zalloc(t->mem, sizeof *s);
        if (!s)
            return CLAVE_ENOMEM;
        s->id = id;
        s->saved = t->saved;
        list_init(&s->in_ring);
        list_push_back(&t->all, &s->in_all);
        clave__map_insert(&t->table, &s->in_table, clave__map_hash_u64((uint64_t)id));
        clave__sessions_note_id(t, id);
        if (id == SESSION_OF_RESTORE)
            t->of_restore = s;
        s->barred = id == SESSION_OF_RESTORE;
    }
    s->timeout_ms = s->logged_timeout_ms = timeout_ms;
    session_tracker_touch(t, s);
    list_remove(&s->in_ring);
    session_tracker_put_in_ring(t, s);
    *out = s;
    return CLAVE_OK;
}

void clave__sessions_remove(struct sessions *t, struct session *s)
{
    if (t->before_remove && s->saved != t->saved)
        t->before_remove(t, s);
    if (s == t->of_restore)
        t->of_restore = NULL;
    detached_count_out(t, s);
    list_remove(&s->in_all);
    list_remove(&s->in_ring);
    clave__map_remove(&t->table, &s->in_table);
    clave__mem_free(t->mem, s);
}

void clave__sessions_start(struct sessions *t, int64_t now, int64_t wall)
{
    t->first_id = clave__session_id_at(wall);
    t->now = now;
    t->done = now / t->tick_ms;
    for (struct map_node *n = NULL; (n = clave__map_next(&t->table, n));) {
        struct session *s = MAP_ENTRY(n, struct session, in_table);
        session_tracker_touch(t, s);
        list_remove(&s->in_ring);
        session_tracker_put_in_ring(t, s);
    }
}

clave_err clave__sessions_init(struct sessions *t, const struct clave_mem *mem, int32_t tick_ms,
                               uint64_t seed)
{
    assert(tick_ms > 0);
    *t = (struct sessions){
        .mem = mem, .tick_ms = tick_ms, .first_id = (int64_t)SERVER_ID << ID_SHIFT};
    clave__histogram_init(&t->slack_ms, &slack_bounds);
    list_init(&t->all);
    list_init(&t->due);
    for (size_t i = 0; i < SESSION_RING; i++)
        list_init(&t->ring[i]);
    clave_err err = clave__map_init(&t->table, mem, 0);
    return err == CLAVE_OK ? clave__map_init(&t->detached, mem, seed) : err;
}

void clave__sessions_fini(struct sessions *t)
{
    struct map_node *at = clave__map_next(&t->table, NULL);
    while (at) {
        struct map_node *next = clave__map_next(&t->table, at);
        clave__mem_free(t->mem, MAP_ENTRY(at, struct session, in_table));
        at = next;
    }
    clave__map_fini(&t->table);
    detached_fini(t);
}
