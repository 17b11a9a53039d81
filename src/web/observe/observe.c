/* observe.c - what is seen of the tree, and requests that wait until it changes. Called by web.c,
 * observe_feed.c, the endpoints, and the parts of the engine that have something to tell.
 * Invariants: after a flush the ring has an event for every lock that changed, and every stream was
 * woken; a long poll is in one list and its timer is armed, until it is called off or its exchange
 * is handled again. */
#include "web/observe/observe.h"

#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "observe/lock_replay.h"
#include "recipe/cache/cache_progress.h"
#include "web/http/exchange.h"

enum {
    FLUSH_MS = 20,
    DONE_A_TURN = 500, /* changes that are told, ends that are settled */
    LOOK_MS = 80,
    PLACES_PER_MS = 50,
    EVENT_MAX = 256 << 10, /* bytes of an event's data */
    MOST_CANDIDATES = 20,  /* that it shows */
    PATIENCE_MS = 1500,
};

int64_t clave__observe_now(const struct observe *o)
{
    return o->web->now + o->wall;
}

void clave__observe_set_wall(struct observe *o, int64_t wall)
{
    o->wall = wall;
}

bool clave__observe_is_below(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);
    if (n == 1)
        return true; /* the root */
    return strncmp(path, prefix, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* ---- telling --------------------------------------------------------------------------------- */

/* If there were several leaders since the last flush, only the newest is reported; the terms have
 * all of them. */
static void observe_tell_election(struct observe *o, struct election *e)
{
    const struct lock_queue *q = clave__lock_model_get(&o->model, e->path, false);
    const struct lock_node *leader = q ? clave__lock_holder_after(q, NULL) : NULL;
    int64_t id = clave__election_leader_id(leader);
    if (!clave__election_is_shown(e, &o->model) ||
        (id == e->told_leader && !e->value_changed && e->over == e->told_over))
        return;
    struct buf text;
    clave__buf_init(&text, &o->web->mem, EVENT_MAX);
    struct json j = clave__json_to(&text);
    clave__election_json(
        &j, NULL, e,
        &(struct election_view){.locks = &o->model, .most_candidates = MOST_CANDIDATES});
    if (j.err == CLAVE_OK && clave__buf_append(&text, "", 1) == CLAVE_OK)
        clave__event_ring_put(&o->ring,
                              &(struct event_text){.name = leader ? "leader" : "vacant",
                                                   .path = e->path,
                                                   .data = (char *)clave__buf_bytes(&text)});
    clave__buf_fini(&text);
    e->told_leader = id;
    e->told_over = e->over;
    e->value_changed = false;
}

/* The pause before the next look grows with the number of places that the last one had to
 * examine. */
static void observe_set_look(struct observe *o)
{
    bool linked = clave__lock_model_linked_after(&o->model, NULL) != NULL;
    if (!o->current || (!linked && o->waits.nfound == 0))
        return;
    o->waits_changed = true;
    if (!o->look.armed)
        clave__web_timer_set(o->web, &o->look,
                             o->web->now + LOOK_MS + (int64_t)o->waits.nplaces / PLACES_PER_MS);
}

static void observe_wake(struct observe *o)
{
    for (struct list *e = o->streams.next, *next; e != &o->streams; e = next) {
        next = e->next;
        clave__web_wake(LIST_ENTRY(e, struct observe_reader, link)->x);
    }
}

void clave__observe_look_for_deadlocks(struct observe *o)
{
    static const char none[] = "{\"text\": \"there is no deadlock\", \"certain\": true, "
                               "\"members\": [], \"victim\": null}";
    size_t before = o->waits.nfound;
    if (!o->waits_changed || !o->current)
        return;
    o->waits_changed = false;
    clave__lock_deadlocks_look(&o->waits, &o->model);
    for (struct list *at = o->waits.found.next; at != &o->waits.found; at = at->next) {
        const struct lock_deadlock *d = LIST_ENTRY(at, struct lock_deadlock, link);
        if (d->fresh)
            clave__event_ring_put(
                &o->ring,
                &(struct event_text){.name = "deadlock", .path = d->paths[0], .data = d->data});
    }
    if (before > 0 && o->waits.nfound == 0)
        clave__event_ring_put(&o->ring, &(struct event_text){.name = "deadlock", .data = none});
    observe_wake(o);
}

static void observe_on_look(struct timer *t, int64_t now)
{
    (void)now;
    clave__observe_look_for_deadlocks(LIST_ENTRY(t, struct observe, look));
}

/* true: there may be more. */
static bool observe_flush_some(struct observe *o)
{
    int left = DONE_A_TURN;
    for (struct lock_queue *q; left > 0 && (q = clave__lock_model_take_dirty(&o->model)); left--) {
        bool shown = clave__lock_is_shown(q);
        if (o->loaded && (shown || q->told)) {
            clave__event_ring_lock(&o->ring, q);
            clave__lock_long_poll_changed(o, q->path);
        }
        q->told = shown;
        clave__lock_model_settle(&o->model, q);
    }
    for (struct election *e; left > 0 && (e = clave__election_take_changed(&o->elections));
         left--) {
        if (o->loaded) {
            observe_tell_election(o, e);
            clave__lock_long_poll_changed(o, e->path);
        }
        clave__election_settle(&o->elections, e,
                               clave__lock_model_get(&o->model, e->path, false) != NULL);
    }
    return left == 0;
}

static void observe_flush(struct timer *t, int64_t now)
{
    struct observe *o = LIST_ENTRY(t, struct observe, flush);
    if (observe_flush_some(o))
        clave__web_timer_set(o->web, t, now + 1); /* not in this turn */
    observe_set_look(o);
    observe_wake(o);
}

static void observe_changed(struct observe *o)
{
    if (!o->flush.armed)
        clave__web_timer_set(o->web, &o->flush, o->web->now + FLUSH_MS);
}

void clave__observe_event(struct observe *o, const struct event_text *e)
{
    clave__event_ring_put(&o->ring, e);
    observe_changed(o);
}

void clave__observe_cause(struct observe *o, int64_t token, enum lock_cause cause)
{
    clave__lock_end_causes_say(&o->ends, token, cause);
}

void clave__observe_deed(const struct web_exchange *x, int64_t token, enum lock_change what)
{
    const char *by = x->who.name[0] ? x->who.name : x->peer.address;
    clave__history_say(&x->web->observe->history,
                       &(struct history_deed){token, what, by, x->deed.reason});
}

void clave__observe_suppose_cause(struct observe *o, int64_t token, enum lock_cause cause)
{
    clave__lock_end_causes_suppose(&o->ends, token, cause);
    if (clave__lock_end_causes_deadline(&o->ends) != CLAVE_NEVER)
        clave__web_timer_set(o->web, &o->settle, o->web->now);
}

/* ---- what happened --------------------------------------------------------------------------- */

static void observe_settle(struct timer *t, int64_t now)
{
    struct observe *o = LIST_ENTRY(t, struct observe, settle);
    int left = DONE_A_TURN;
    struct lock_end *end;
    for (; left > 0 && (end = clave__lock_end_causes_take(&o->ends, now, &o->model)); left--) {
        clave__lock_counters_note_cause(&o->metrics, end);
        clave__history_set_cause(&o->history, end->entry, end->cause);
        clave__election_set_cause(&o->elections, end->path, end->token, end->cause);
        clave__lock_end_causes_free(&o->ends, end);
    }
    int64_t next = clave__lock_end_causes_deadline(&o->ends);
    if (next != CLAVE_NEVER)
        clave__web_timer_set(o->web, t, left > 0 ? next : now + 1);
}

/* True if the driver reports this change, which is older than the first load. In a tree that never
 * rests, the load ends while some nodes are still to be read. */
static bool observe_is_replayed(const struct observe *o, enum lock_change what,
                                const struct lock_node *p, int64_t at)
{
    return what != LOCK_ENDED && at == p->queued && p->token <= o->replayed && !p->unreadable;
}

/* The place that waited for this slot was seen to go before the slot appeared. Its end is taken
 * back: it was a grant, and how long it waited is known. false: there was no such place. */
static bool observe_take_back_end(struct observe *o, const struct lock_node *slot, const char *path)
{
    struct lock_end *end = clave__lock_end_causes_taken(&o->ends, slot, path);
    if (!end)
        return false;
    clave__history_forget(&o->history, end->entry);
    clave__lock_counters_note_taken(&o->metrics, end);
    clave__lock_end_causes_free(&o->ends, end);
    o->taken = slot->token;
    return true;
}

/* NULL: nobody. The same leader again, after the tree was reported anew, has led all the time: no
 * earlier node can have come. */
static void observe_see_leader(const struct observe *o, struct election *e,
                               const struct lock_node *leader)
{
    int64_t id = clave__election_leader_id(leader);
    if (e->seen_leader == id)
        return;
    e->seen_leader = id;
    e->seen_from = o->web->now;
}

/* A candidate is told of as leader once only: one that led for a moment, since an earlier node was
 * read later than its own, is seen to lead again at the first question. */
int64_t clave__observe_led_ms(const struct observe *o, const struct lock_node *leader)
{
    struct election *e = clave__election_find(&o->elections, leader->queue->path);
    if (!e)
        return 0;
    observe_see_leader(o, e, leader);
    return o->web->now - e->seen_from;
}

static void observe_on_change(void *arg, enum lock_change what, const struct lock_node *p,
                              int64_t at)
{
    struct observe *o = arg;
    const char *path = clave__lock_told_path(what, p);
    if (!path)
        return;
    if (p->kept && what == LOCK_QUEUED && observe_take_back_end(o, p, path))
        return;
    clave__election_note(&o->elections, what, at, p);
    struct election *e = p->kind == QUEUE_LATCH ? clave__election_find(&o->elections, path) : NULL;
    if (e && what == LOCK_GRANTED)
        observe_see_leader(o, e, p);
    else if (e && what == LOCK_ENDED && p->holds)
        observe_see_leader(o, e, NULL);
    if (what != LOCK_GRANTED || p->token != o->taken)
        clave__lock_counters_note(&o->metrics, what, p, at);
    uint64_t n = observe_is_replayed(o, what, p, at)
                     ? 0
                     : clave__history_add(&o->history, at, what == LOCK_QUEUED ? p->token : 0, what,
                                          p, path);
    if (what != LOCK_ENDED)
        return;
    struct lock_end *end = clave__lock_end_causes_add(&o->ends, o->web->now, p, path);
    if (end) {
        end->entry = n;
        end->waited = at > p->queued ? at - p->queued : 0;
    }
    if (!o->settle.armed)
        clave__web_timer_set(o->web, &o->settle, o->web->now);
}

/* ---- the tree -------------------------------------------------------------------------------- */

void clave__observe_node(struct observe *o, const struct observe_node *n)
{
    if (n->stat->mzxid > o->zxid)
        o->zxid = n->stat->mzxid;
    clave__lock_model_node(&o->model, clave__observe_now(o), n->path, n->stat, n->data, n->len);
    clave__election_node(&o->elections, n->path, n->data, n->len);
    int64_t broken = clave__lock_broken_slot(n->path, n->data, n->len);
    if (broken && o->loaded)
        clave__observe_suppose_cause(o, broken, LOCK_BROKEN);
    observe_changed(o);
}

void clave__observe_gone(struct observe *o, const char *path)
{
    clave__lock_model_gone(&o->model, clave__observe_now(o), path);
    clave__election_node_gone(&o->elections, path);
    observe_changed(o);
    if (clave__lock_is_place(path))
        return;
    o->gone++;
    o->gone_at = o->web->now;
}

/* Removes the next waiting request; NULL: there is none. */
static struct web_exchange *observe_pop_waiting(struct observe *o, struct list *from)
{
    struct list *e = list_pop_front(from);
    if (!e)
        return NULL;
    struct web_exchange *x = LIST_ENTRY(e, struct observe_reader, link)->x;
    assert(o->nwaiting > 0 && x->owner && !x->answered);
    o->nwaiting--;
    clave__web_disown(x);
    return x;
}

/* Handles all waiting requests; each may have to wait again. */
static void observe_answer_waiting(struct observe *o)
{
    struct list ready;
    list_init(&ready);
    list_splice(&ready, &o->waiting);
    for (struct web_exchange *x; (x = observe_pop_waiting(o, &ready));)
        x->route->handle(x);
}

void clave__observe_probed(struct observe *o)
{
    if (o->loaded)
        observe_answer_waiting(o);
}

/* Called once. When the cache is lost, the tree is reported again and the history continues. */
static void observe_begin(struct observe *o, int64_t zxid)
{
    const struct web_env *env = o->web->o.env;
    o->begun = true;
    clave__history_begin(&o->history, clave__observe_now(o));
    o->replays = env->loaded != NULL;
    o->replayed = o->replays ? zxid : 0;
    if (env->loaded)
        env->loaded(env->arg, zxid);
}

static void observe_see_leaders(struct observe *o)
{
    struct election *e = NULL;
    while ((e = clave__election_after(&o->elections, e ? e->path : ""))) {
        const struct lock_queue *q = clave__lock_model_get(&o->model, e->path, false);
        const struct lock_node *leader = q ? clave__lock_holder_after(q, NULL) : NULL;
        if (leader)
            observe_see_leader(o, e, leader);
    }
}

void clave__observe_loaded(struct observe *o, int64_t zxid)
{
    bool first = !o->loaded;
    o->zxid = zxid > o->zxid ? zxid : o->zxid;
    o->current = o->loaded = true;
    o->model.blind = false;
    observe_changed(o);
    if (!first)
        return;
    clave__lock_model_loaded(&o->model);
    clave__election_begin(&o->elections, &o->model, clave__observe_now(o));
    observe_see_leaders(o);
    if (!o->begun)
        observe_begin(o, zxid);
    observe_answer_waiting(o);
    clave__lock_long_poll_all_changed(o);
}

void clave__observe_take_replay(struct observe *o, struct lock_replay *r)
{
    assert(o->replays);
    o->replays = false;
    if (r) {
        clave__history_take_before(&o->history, &r->history);
        clave__election_take_before(&o->elections, &r->elections, clave__observe_now(o));
        clave__lock_replay_date(r, &o->model);
        observe_changed(o);
    }
    clave__lock_replay_free(r);
    observe_answer_waiting(o);
}

/* A load in progress may take any time, but without a server there is none. */
static void observe_on_patience(struct timer *t, int64_t now)
{
    struct observe *o = LIST_ENTRY(t, struct observe, patience);
    bool loads = clave_async_client_is_connected(o->web->own);
    if (loads && o->nwaiting > 0)
        clave__web_timer_set(o->web, t, now + PATIENCE_MS);
    if (loads)
        return;
    for (struct web_exchange *x; (x = observe_pop_waiting(o, &o->waiting));)
        clave__web_refuse(x, 503, CLAVE_EUNREACHABLE, NULL,
                          "not connected to a ZooKeeper server: %s",
                          clave_async_client_errmsg(o->web->own));
}

void clave__observe_wait(struct observe *o, struct observe_reader *waiting)
{
    list_push_back(&o->waiting, &waiting->link);
    if (o->nwaiting++ == 0)
        clave__web_timer_set(o->web, &o->patience, o->web->now + PATIENCE_MS);
}

void clave__observe_failed(struct observe *o, clave_err err)
{
    assert(err != CLAVE_OK);
    for (struct web_exchange *x; (x = observe_pop_waiting(o, &o->waiting));)
        clave__web_problem(x, &(struct problem){.status = 503, .err = err, .retry_after_s = 2},
                           "the locks of the tree cannot be read: %s", clave_strerror(err));
}

void clave__observe_clear(struct observe *o)
{
    clave__lock_model_clear(&o->model);
    clave__election_clear(&o->elections);
    clave__event_ring_clear(&o->ring);
    o->loaded = o->current = o->partial = false;
    o->unreadable = 0;
}

bool clave__observe_is_complete(const struct observe *o)
{
    return !o->partial && o->model.left_out == 0;
}

void clave__observe_stale(struct observe *o)
{
    o->current = false;
    o->model.blind = true;
}

int64_t clave__observe_age(const struct observe *o)
{
    int64_t as_of = o->copy ? clave__cache_as_of(o->copy) : o->as_of, now = o->web->now;
    if (as_of == INT64_MIN)
        return -1;
    return now > as_of ? now - as_of : 0;
}

bool clave__observe_is_settling(const struct observe *o)
{
    return o->web->now - clave__observe_age(o) <= o->gone_at;
}

bool clave__observe_is_current(const struct observe *o)
{
    int64_t age = clave__observe_age(o);
    return o->current && age >= 0 && age <= OBSERVE_CURRENT_MS;
}

/* ---- life ------------------------------------------------------------------------------------ */

clave_err clave__observe_new(struct web *w)
{
    struct observe *o = clave__mem_zalloc(&w->mem, sizeof *o);
    w->observe = o;
    if (!o)
        return CLAVE_ENOMEM;
    o->web = w;
    o->as_of = INT64_MIN;
    o->gone_at = INT64_MIN;
    list_init(&o->streams);
    list_init(&o->waiting);
    list_init(&o->woken);
    clave__timer_init(&o->poll_turn, clave__lock_long_poll_turn);
    clave__timer_init(&o->flush, observe_flush);
    clave__timer_init(&o->settle, observe_settle);
    clave__timer_init(&o->patience, observe_on_patience);
    clave__timer_init(&o->look, observe_on_look);
    clave__lock_deadlocks_init(&o->waits, &w->mem, clave__rand_u64(&w->rand));
    clave__election_model_init(&o->elections, &w->mem, clave__rand_u64(&w->rand));
    clave__lock_counters_init(&o->metrics);
    clave__history_init(&o->history, &w->mem, clave__rand_u64(&w->rand));
    clave_err err =
        clave__lock_model_init(&o->model, &w->mem, clave__rand_u64(&w->rand), LOCK_MODEL_BYTES);
    clave_err ring = clave__event_ring_init(&o->ring, &w->mem, clave__rand_u64(&w->rand));
    clave_err ends = clave__lock_end_causes_init(&o->ends, &w->mem, clave__rand_u64(&w->rand));
    clave_err polls = clave__map_init(&o->polls, &w->mem, clave__rand_u64(&w->rand));
    o->model.changed = observe_on_change;
    o->model.arg = o;
    if (err == CLAVE_OK)
        err = ring;
    if (err == CLAVE_OK)
        err = ends;
    return err != CLAVE_OK ? err : polls;
}

void clave__observe_free(struct web *w)
{
    struct observe *o = w->observe;
    w->observe = NULL;
    if (!o)
        return;
    assert(!o->feed && o->nwaiting == 0 && o->polls.count == 0);
    assert(list_empty(&o->streams) && list_empty(&o->woken));
    clave__web_timer_clear(w, &o->flush);
    clave__web_timer_clear(w, &o->poll_turn);
    clave__map_fini(&o->polls);
    clave__web_timer_clear(w, &o->settle);
    clave__web_timer_clear(w, &o->patience);
    clave__web_timer_clear(w, &o->look);
    clave__lock_deadlocks_fini(&o->waits);
    clave__lock_end_causes_fini(&o->ends);
    clave__history_fini(&o->history);
    clave__election_model_fini(&o->elections);
    clave__event_ring_fini(&o->ring);
    clave__lock_model_fini(&o->model);
    clave__mem_free(&w->mem, o);
}

/* ==== long polls ============================================================================== */

enum { HANDLED_A_TURN = 100 };

struct poll_key {
    const char *path;
    size_t len;
    enum long_poll_of of;
};

struct lock_long_poll_path {
    struct map_node node;
    struct list polls;
    struct poll_key key; /* of `path` */
    char path[];
};

static bool poll_is_at(const struct map_node *node, const void *wanted)
{
    const struct poll_key *key = wanted;
    const char *at = (const char *)node - offsetof(struct lock_long_poll_path, node);
    const struct poll_key *have = &((const struct lock_long_poll_path *)(const void *)at)->key;
    return have->of == key->of && have->len == key->len &&
           memcmp(have->path, key->path, key->len) == 0;
}

static uint32_t poll_hash(const struct observe *o, const struct poll_key *key)
{
    return clave__map_hash_bytes(&o->polls, key->path, key->len) + (uint32_t)key->of;
}

static struct lock_long_poll_path *poll_find(struct observe *o, const struct poll_key *key)
{
    struct map_node *node = clave__map_find(&o->polls, poll_hash(o, key), poll_is_at, key);
    return node ? MAP_ENTRY(node, struct lock_long_poll_path, node) : NULL;
}

/* NULL: no memory. */
static struct lock_long_poll_path *poll_path(struct observe *o, const struct poll_key *key)
{
    struct lock_long_poll_path *at = poll_find(o, key);
    if (at)
        return at;
    at = clave__mem_zalloc(&o->web->mem, sizeof *at + key->len + 1);
    if (!at)
        return NULL;
    memcpy(at->path, key->path, key->len);
    at->key = (struct poll_key){.path = at->path, .len = key->len, .of = key->of};
    list_init(&at->polls);
    clave__map_insert(&o->polls, &at->node, poll_hash(o, key));
    return at;
}

/* Removes the poll from the list of its path. */
static void poll_part(struct observe *o, struct lock_long_poll *p)
{
    struct lock_long_poll_path *at = p->at;
    list_remove(&p->link);
    p->at = NULL;
    if (!at || !list_empty(&at->polls))
        return;
    clave__map_remove(&o->polls, &at->node);
    clave__mem_free(&o->web->mem, at);
}

static void poll_leave(struct web_exchange *x)
{
    struct lock_long_poll *p = x->owned;
    poll_part(x->web->observe, p);
    clave__web_timer_clear(x->web, &p->timer);
}

static void poll_handle(struct lock_long_poll *p)
{
    struct web_exchange *x = p->x;
    assert(!x->answered && x->owned == p);
    clave__web_leave(x);
    x->route->handle(x);
}

static void poll_on_time(struct timer *t, int64_t now)
{
    (void)now;
    poll_handle(LIST_ENTRY(t, struct lock_long_poll, timer));
}

bool clave__lock_long_poll_enter(struct lock_long_poll *p, struct web_exchange *x,
                                 enum long_poll_of of, const char *path, int64_t until)
{
    assert(!x->answered);
    const struct poll_key key = {.path = path, .len = strlen(path), .of = of};
    *p = (struct lock_long_poll){.x = x, .at = poll_path(x->web->observe, &key)};
    if (!p->at)
        return false;
    list_push_back(&p->at->polls, &p->link);
    clave__timer_init(&p->timer, poll_on_time);
    clave__web_timer_set(x->web, &p->timer, until);
    static const struct exchange_owner poll = {.leave = poll_leave};
    clave__web_own(x, &poll, p);
    return true;
}

/* ---- waking ---------------------------------------------------------------------------------- */

static void poll_wake_all(struct observe *o, struct lock_long_poll_path *at, int64_t when)
{
    assert(!list_empty(&at->polls));
    while (!list_empty(&at->polls)) {
        struct lock_long_poll *p = LIST_ENTRY(at->polls.next, struct lock_long_poll, link);
        bool last = at->polls.next == at->polls.prev;
        poll_part(o, p); /* removing the last one frees `at` */
        list_push_back(&o->woken, &p->link);
        if (last)
            break;
    }
    if (!o->poll_turn.armed || o->poll_turn.at > when)
        clave__web_timer_set(o->web, &o->poll_turn, when);
}

static void poll_wake(struct observe *o, const struct poll_key *key, int64_t when)
{
    struct lock_long_poll_path *at = poll_find(o, key);
    if (at)
        poll_wake_all(o, at, when);
}

void clave__lock_long_poll_changed(struct observe *o, const char *path)
{
    const struct poll_key key = {.path = path, .len = strlen(path), .of = POLL_AT};
    poll_wake(o, &key, o->web->now);
}

void clave__lock_long_poll_node_changed(struct observe *o, const char *path)
{
    struct poll_key key = {.path = path, .len = strlen(path)};
    if (o->polls.count == 0)
        return;
    for (key.of = POLL_CHILDREN; key.of <= POLL_GRANDCHILDREN && key.len > 1; key.of++) {
        key.len = clave__path_parent_len(path, key.len);
        poll_wake(o, &key, o->web->now + FLUSH_MS);
    }
}

void clave__lock_long_poll_all_changed(struct observe *o)
{
    for (struct map_node *node; (node = clave__map_next(&o->polls, NULL));)
        poll_wake_all(o, MAP_ENTRY(node, struct lock_long_poll_path, node), o->web->now);
}

void clave__lock_long_poll_turn(struct timer *t, int64_t now)
{
    struct observe *o = LIST_ENTRY(t, struct observe, poll_turn);
    for (int left = HANDLED_A_TURN; left > 0 && !list_empty(&o->woken); left--)
        poll_handle(LIST_ENTRY(o->woken.next, struct lock_long_poll, link));
    if (!list_empty(&o->woken))
        clave__web_timer_set(o->web, t, now + 1); /* not in this turn */
}
