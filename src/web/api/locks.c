/* locks.c - what is read from the gate's copy of the tree: locks, elections, deadlocks, history,
 * events, metrics. These requests have in common that they wait until the tree is loaded, may ask
 * the servers first (?fresh) or wait for a change (Prefer: wait), report how old the copy may be,
 * and take the arguments prefix, limit and after.
 *
 * Invariants: a copy that is not current never shows that something is free or unchanged; a request
 * that waits for the first load is in observe.waiting until its owner lets go of it; a piece of an
 * answer shows a bounded number of places, each as it is at that moment; a deadlock is shown only
 * to those who may see all of its locks; a stream of events does not keep its client's session
 * alive. */
#include "web/api/api.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/prometheus.h"
#include "base/time_format.h"
#include "client/client_for_recipes.h"
#include "observe/lock_json.h"
#include "web/observe/lock_metrics.h"
#include "web/observe/observe.h"

/* ==== the copy that is read =================================================================== */

enum { LIST_LIMIT = 100, LIST_LIMIT_MAX = 1000 };

struct list_request {
    const char *prefix; /* "/" when there is none */
    const char *after;  /* NULL */
    size_t limit;
    int64_t as_of; /* by the engine's clock; -1: not known */
};
#define COPY_ETAG_NONE "\"none\"" /* the tag of a node that does not exist */
enum { COPY_ETAG_CAP = 24 };

/* Each takes a few kilobytes, and all of them are answered in one turn. */
enum { MOST_WAITING = 1000, MOST_PROBES = 100 };

/* The x->state of a request that asks the servers or waits for a change. */
struct observe_request {
    int64_t asked; /* when the servers were asked */
    unsigned probes;
    bool fresh;    /* the copy includes everything that they knew then */
    uint64_t gone; /* the count of gone nodes in struct observe, up to which the copy includes their
                    * replacements */
    bool joins;    /* it waits for what another request asks; not twice in a row, because a further
                    * node may have gone by then, and so on */
    bool polls;
    int64_t until; /* until when it waits for a change */
    struct lock_long_poll poll;
};

/* NULL: it has answered. */
static struct observe_request *observe_request_of(struct web_exchange *x)
{
    if (!x->state)
        x->state = clave__web_must_alloc(x, sizeof(struct observe_request));
    return x->state;
}

/* ---- until there is a copy ------------------------------------------------------------------- */

static void observe_request_leave(struct web_exchange *x)
{
    struct observe_reader *waiting = x->owned;
    assert(x->web->observe->nwaiting > 0);
    list_remove(&waiting->link);
    x->web->observe->nwaiting--;
}

/* Returns NULL: the request waits for the first load, and is then handled again. */
static struct observe *observe_request_wait(struct web_exchange *x)
{
    assert(!x->answered && !x->owner);
    struct observe *o = x->web->observe;
    if (o->nwaiting >= MOST_WAITING) {
        clave__web_problem(
            x, &(struct problem){.status = 503, .err = CLAVE_ETHROTTLED, .retry_after_s = 2},
            "the tree is being read for the first time, and %d requests wait for it", MOST_WAITING);
        return NULL;
    }
    struct observe_reader *waiting = clave__web_must_alloc(x, sizeof *waiting);
    if (!waiting)
        return NULL;
    waiting->x = x;
    clave__observe_wait(o, waiting);
    static const struct exchange_owner reader = {.leave = observe_request_leave};
    clave__web_own(x, &reader, waiting);
    return NULL;
}

/* ---- until the copy has what the servers know ------------------------------------------------ */

/* The servers have answered a sync, so every earlier event has arrived; what the events announced
 * may still have to be read. Each further answer tells how far that reading has come. */
static void observe_request_catch_up(struct web_exchange *x);

static void on_observe_probe(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    struct web *w = x->web;
    int64_t now = clave__client_now(c);
    bool is_expected = clave__web_expected(x);
    w->now = now > w->now ? now : w->now; /* ages are counted by this time */
    size_t others = --w->observe->probes;
    if (is_expected && (res->err == CLAVE_OK || res->err == CLAVE_ENONODE)) /* no chroot yet */
        observe_request_catch_up(x);
    else if (is_expected)
        clave__web_problem_as(x, 503, res->err, "ask the servers", NULL);
    if (w->observe->probes == others) /* it asks no more */
        clave__observe_probed(w->observe);
}

static void observe_request_probed(struct web_exchange *x, clave_err err)
{
    struct web *w = x->web;
    if (err != CLAVE_OK) {
        clave__web_problem_as(x, 503, err, "ask the servers", NULL);
        return;
    }
    w->observe->probes++;
    clave__web_expect(x);
    clave__web_flush(w, w->own);
}

static void observe_request_catch_up(struct web_exchange *x)
{
    struct observe_request *r = x->state;
    struct web *w = x->web;
    int64_t age = clave__observe_age(w->observe);
    clave_err err = CLAVE_OK;
    r->fresh = w->observe->loaded && w->observe->current && age >= 0 && w->now - age >= r->asked;
    if (r->fresh) {
        r->gone = w->observe->gone;
        /* The timer bounded the callbacks; from here on the request may wait for a change. */
        clave__web_timer_clear(w, &x->timer);
        x->route->handle(x);
        return;
    }
    if (r->probes++ >= MOST_PROBES)
        err = CLAVE_EUNREACHABLE;
    else
        err = clave_async_exists(w->own, "/", NULL, on_observe_probe, x);
    observe_request_probed(x, err);
}

static void observe_request_ask(struct web_exchange *x)
{
    struct observe_request *r = observe_request_of(x);
    struct web *w = x->web;
    if (!r)
        return;
    r->asked = w->now;
    clave_err err = clave_async_client_is_connected(w->own)
                        ? clave_async_sync(w->own, "/", on_observe_probe, x)
                        : CLAVE_EUNREACHABLE;
    observe_request_probed(x, err);
}

static bool observe_request_is_fresh(const struct web_exchange *x)
{
    const struct observe_request *r = x->state;
    return r && r->fresh;
}

struct observe *clave__observe_for(struct web_exchange *x)
{
    struct observe *o = x->web->observe;
    clave__observe_feed_start(o);
    if (!o->loaded)
        return observe_request_wait(x);
    if (!clave__web_query(x, "fresh") || observe_request_is_fresh(x))
        return o;
    observe_request_ask(x);
    return NULL;
}

struct observe *clave__observe_settled_for(struct web_exchange *x)
{
    struct observe *o = clave__observe_for(x);
    struct observe_request *r = o ? observe_request_of(x) : NULL;
    if (!r)
        return NULL;
    bool has_asked = r->fresh && r->gone == o->gone;
    bool is_settled = has_asked || !clave__observe_is_settling(o);
    r->joins = !is_settled && !r->joins && o->probes > 0 && o->nwaiting < MOST_WAITING;
    if (is_settled)
        return o;
    if (r->joins)
        return observe_request_wait(x);
    observe_request_ask(x);
    return NULL;
}

static struct observe *observe_with_past(struct web_exchange *x)
{
    struct observe *o = clave__observe_for(x);
    return o && o->replays ? observe_request_wait(x) : o;
}

/* ---- how old the copy may be ----------------------------------------------------------------- */

static void observe_copy_json(const struct web_exchange *x, struct json *j, int64_t age)
{
    const struct observe *o = x->web->observe;
    clave__json_string(j, "source", observe_request_is_fresh(x) ? "servers" : "copy");
    clave__json_bool(j, "current", o->current && age >= 0 && age <= OBSERVE_CURRENT_MS);
    if (age >= 0)
        clave__json_int(j, "age_ms", age);
    else
        clave__json_string(j, "age_ms", NULL);
}

void clave__observe_copy_json(struct json *j, const void *arg)
{
    const struct web_exchange *x = arg;
    observe_copy_json(x, j, clave__observe_age(x->web->observe));
}

/* For an answer in pieces: the age as of its first piece. */
static void copy_json_since(const struct web_exchange *x, struct json *j, int64_t as_of)
{
    observe_copy_json(x, j, as_of < 0 ? -1 : x->web->now - as_of);
}

/* Sets the headers Age and Clave-Source. */
void clave__observe_copy_set_headers(struct web_exchange *x)
{
    int64_t age = clave__observe_age(x->web->observe);
    if (age >= 0)
        clave__web_set_header(x, "Age", "%" PRId64, (age + 999) / 1000);
    clave__web_set_header(x, "Clave-Source", "%s",
                          observe_request_is_fresh(x) ? "servers" : "copy");
}

void clave__observe_copy_answer_old(struct web_exchange *x, const char *path, const char *what)
{
    struct problem p = {.status = 503,
                        .err = CLAVE_EUNREACHABLE,
                        .path = path,
                        .retry_after_s = 1,
                        .members = clave__observe_copy_json,
                        .arg = x};
    clave__observe_copy_set_headers(x);
    clave__web_problem(x, &p, "%s %s is not known: the gate's copy of the tree is not current",
                       what, path);
}

/* ---- waiting for a change -------------------------------------------------------------------- */

static void copy_etag(char out[COPY_ETAG_CAP], uint64_t digest)
{
    snprintf(out, COPY_ETAG_CAP, "\"%016" PRIx64 "\"", digest);
}

/* Returns false if the time to wait is over; true if the request waits, or was refused. */
static bool observe_copy_waits(struct web_exchange *x, enum long_poll_of of, const char *path)
{
    struct observe_request *r = observe_request_of(x);
    int64_t wait = clave__web_prefer_wait(x), now = x->web->now;
    if (!r)
        return true;
    if (!r->polls)
        r->until = wait > 0 ? now + (wait < LONGEST_POLL_MS ? wait : LONGEST_POLL_MS) : now;
    r->polls = true;
    if (now >= r->until)
        return false;
    if (!clave__web_may_wait(x))
        return true;
    if (!clave__lock_long_poll_enter(&r->poll, x, of, path, r->until))
        clave__web_problem_err(x, CLAVE_ENOMEM, "wait for a change", NULL);
    return true;
}

static bool copy_is_news(struct web_exchange *x, enum long_poll_of of, const char *path,
                         const char *etag)
{
    if (!clave__condition_knows(x, etag, COPY_ETAG_NONE)) {
        clave__web_set_header(x, "ETag", "%s", etag);
        clave__observe_copy_set_headers(x);
        return true;
    }
    if (observe_copy_waits(x, of, path))
        return false;
    if (clave__observe_is_current(x->web->observe)) {
        clave__web_set_header(x, "ETag", "%s", etag);
        clave__observe_copy_set_headers(x);
        clave__web_answer_empty(x, 304);
    } else {
        clave__observe_copy_answer_old(x, path, "whether anything has changed at");
    }
    return false;
}

bool clave__observe_list_is_news(struct web_exchange *x, bool grandchildren, const char *path,
                                 uint64_t digest)
{
    char etag[COPY_ETAG_CAP];
    copy_etag(etag, digest);
    return copy_is_news(x, grandchildren ? POLL_GRANDCHILDREN : POLL_CHILDREN, path, etag);
}

bool clave__observe_copy_covers(struct web_exchange *x, const char *path, const char *what)
{
    char *copy = clave__web_strndup(x, path, strlen(path));
    const char *hidden = copy ? clave__observe_feed_unreadable(x->web->observe->feed, copy) : NULL;
    if (!copy)
        clave__web_problem_err(x, CLAVE_ENOMEM, "look at", path);
    else if (hidden)
        clave__web_refuse(x, 403, CLAVE_ENOAUTH, path,
                          "the gate may not read %s, so %s %s is not known", hidden, what, path);
    return copy && !hidden;
}

static void copy_answer_none(struct web_exchange *x, const char *path, const char *text)
{
    struct problem p = {.status = 404,
                        .err = CLAVE_ENONODE,
                        .path = path,
                        .members = clave__observe_copy_json,
                        .arg = x};
    if (!clave__observe_copy_covers(x, path, "who holds"))
        return;
    if (!clave__observe_is_current(x->web->observe))
        clave__observe_copy_answer_old(x, path, "who holds");
    else if (copy_is_news(x, POLL_AT, path, COPY_ETAG_NONE))
        clave__web_problem(x, &p, "%s %s", text, path);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* `after` must be a path that an earlier page of this list returned as "next". */
static bool list_request_is_below(struct web_exchange *x, const struct list_request *l)
{
    if (!l->after || !*l->after)
        return true;
    if (!clave__query_path(x, "after"))
        return false;
    if (clave__observe_is_below(l->after, l->prefix))
        return true;
    return clave__web_refuse(x, 400, CLAVE_EINVAL, l->after,
                             "after is the \"next\" of a page of this list: %s is not below %s",
                             l->after, l->prefix);
}

static bool list_request_read(struct web_exchange *x, struct list_request *out)
{
    const char *prefix = clave__web_query(x, "prefix");
    int64_t n = LIST_LIMIT, age = clave__observe_age(x->web->observe);
    *out = (struct list_request){.prefix = prefix && *prefix ? prefix : "/",
                                 .after = clave__web_query(x, "after"),
                                 .as_of = age < 0 ? -1 : x->web->now - age};
    if (!clave__query_int(x, "limit", 1, LIST_LIMIT_MAX, &n) ||
        (out->prefix == prefix && !clave__query_path(x, "prefix")) ||
        !list_request_is_below(x, out))
        return false;
    out->limit = (size_t)n;
    clave__observe_copy_set_headers(x);
    return true;
}

static void list_request_close(struct web_exchange *x, const struct list_request *l, struct json *j,
                               const char *next)
{
    const struct observe *o = x->web->observe;
    clave__json_close(j, ']');
    clave__json_string(j, "next", next);
    clave__json_int64(j, "zxid", o->zxid);
    clave__json_int(j, "unreadable", (int64_t)o->unreadable);
    clave__json_bool(j, "complete", clave__observe_is_complete(o));
    copy_json_since(x, j, l->as_of);
    clave__json_close(j, '}');
}

bool clave__observe_may_see(const struct web_exchange *x, const char *path)
{
    return clave__web_may(x, WEB_READ, path ? path : "/");
}

/* A list by path, in pieces. */
struct copy_list {
    struct web_exchange *x;
    struct observe *o;
    struct list_request request;
    bool begun;
    size_t written;
    struct buf at; /* the path that was looked at last, with its NUL; "": none */
    bool at_leases;
};

static void copy_list_end(void *arg)
{
    struct copy_list *l = arg;
    clave__buf_fini(&l->at);
}

static void copy_list_begin(struct copy_list *l, struct json *j, const char *name)
{
    if (!l->begun) {
        clave__json_open(j, NULL, '{');
        clave__json_open(j, name, '[');
    }
    l->begun = true;
}

static clave_err copy_list_remember(struct copy_list *l, const char *path, bool leases)
{
    l->at_leases = leases;
    return clave__buf_set_text(&l->at, path);
}

static bool copy_list_takes(const struct copy_list *l, const char *path)
{
    return clave__observe_is_below(path, l->request.prefix) && clave__observe_may_see(l->x, path);
}

/* `o` NULL: the request waits for the copy, or is answered. */
static void copy_list_answer(struct web_exchange *x, struct observe *o, pieces_next *piece)
{
    struct list_request request;
    struct copy_list *l =
        o && list_request_read(x, &request) ? clave__web_must_alloc(x, sizeof *l) : NULL;
    clave_err err = CLAVE_OK;
    if (!l)
        return;
    *l = (struct copy_list){.x = x, .o = o, .request = request};
    clave__buf_init(&l->at, &x->web->mem, SIZE_MAX);
    if (request.after && *request.after)
        err = copy_list_remember(l, request.after, true);
    if (err == CLAVE_OK)
        clave__web_answer_pieces(x, piece, copy_list_end, l);
    else
        clave__web_problem_err(x, err, "list", request.prefix);
}

/* ==== /v1/locks =============================================================================== */

enum {
    PIECE_PLACES = 400, /* that one piece shows */
    PIECE_LOCKS = 2000, /* that it looks at */
    MOST_PLACES = 20,   /* of each side of a lock in a list */
};

/* ---- the list -------------------------------------------------------------------------------- */

/* Paths that begin with the prefix are together, in the order of paths, but not all of them are
 * below it: "/a-b" is between "/a" and "/a/b". NULL: that was the last one. */
static struct lock_queue *lock_list_next(const struct copy_list *l)
{
    const struct lock_model *m = &l->o->model;
    const char *prefix = l->request.prefix, *at = clave__buf_text(&l->at);
    struct lock_queue *q = *at ? NULL : clave__lock_model_get(m, prefix, false);
    if (!q)
        q = clave__lock_model_after(m, *at ? at : prefix, l->at_leases);
    return q && strncmp(q->path, prefix, strlen(prefix)) == 0 ? q : NULL;
}

/* Two locks with the same path (a semaphore, and a queue directly at its path) are kept on one
 * page, because `next` is a path. */
static bool lock_list_is_full(const struct copy_list *l, const struct lock_queue *q)
{
    return l->written >= l->request.limit && strcmp(q->path, clave__buf_text(&l->at)) != 0;
}

static size_t lock_list_shown(size_t places)
{
    return places < MOST_PLACES ? places : MOST_PLACES;
}

static clave_err lock_list_next_piece(void *arg, struct json *j, bool *done)
{
    struct copy_list *l = arg;
    clave_err err = CLAVE_OK;
    size_t places = 0;
    copy_list_begin(l, j, "locks");
    for (size_t i = 0; i < PIECE_LOCKS && places < PIECE_PLACES && err == CLAVE_OK; i++) {
        const struct lock_queue *q = lock_list_next(l);
        *done = !q || lock_list_is_full(l, q);
        if (*done) {
            list_request_close(l->x, &l->request, j, q ? clave__buf_text(&l->at) : NULL);
            return CLAVE_OK;
        }
        err = copy_list_remember(l, q->path, q->leases);
        if (!copy_list_takes(l, q->path))
            continue;
        clave__lock_json(j, NULL, q, clave__observe_now(l->o), MOST_PLACES);
        places += 1 + lock_list_shown(q->nholders) + lock_list_shown(clave__lock_nwaiters(q)) +
                  lock_list_shown(clave__lock_nleft_over(q));
        l->written++;
    }
    return err;
}

void clave__web_get_locks(struct web_exchange *x)
{
    copy_list_answer(x, clave__observe_for(x), lock_list_next_piece);
}

/* ---- one lock -------------------------------------------------------------------------------- */

struct lock_one {
    struct observe *o;
    struct lock_walk walk;
};

static void lock_one_end(void *arg)
{
    struct lock_one *l = arg;
    clave__lock_walk_fini(&l->walk);
}

static clave_err lock_one_next_piece(void *arg, struct json *j, bool *done)
{
    struct lock_one *l = arg;
    clave_err err =
        clave__lock_walk_piece(&l->walk, j, &l->o->model, clave__observe_now(l->o), PIECE_PLACES);
    *done = l->walk.phase == LOCK_WALK_DONE;
    return err;
}

void clave__web_get_lock(struct web_exchange *x)
{
    const char *path = x->params[0];
    if (!clave__param_path(x))
        return;
    struct observe *o = clave__observe_for(x);
    if (!o)
        return;
    const struct lock_queue *q = clave__lock_model_find(&o->model, path);
    if (!q) {
        copy_answer_none(x, path, "nobody holds, and nobody waits for");
        return;
    }
    char etag[COPY_ETAG_CAP];
    copy_etag(etag, clave__lock_etag(q));
    if (!copy_is_news(x, POLL_AT, path, etag))
        return;
    struct lock_one *l = clave__web_must_alloc(x, sizeof *l);
    if (!l)
        return;
    l->o = o;
    clave_err err = clave__lock_walk_init(&l->walk, &x->web->mem, q);
    l->walk.members = clave__observe_copy_json;
    l->walk.arg = x;
    if (err == CLAVE_OK)
        clave__web_answer_pieces(x, lock_one_next_piece, lock_one_end, l);
    else
        clave__web_problem_err(x, err, "show", path);
}

/* ==== /v1/elections =========================================================================== */

enum {
    PIECE_ELECTIONS = 40,  /* that one piece shows */
    ELECTION_LOOKS = 2000, /* that it looks at */
    MOST_CANDIDATES = 20,  /* of each in a list */
    ALL_CANDIDATES = 1000  /* of one */
};

static clave_err election_list_piece(void *arg, struct json *j, bool *done)
{
    struct copy_list *l = arg;
    struct election_view view = {.locks = &l->o->model, .most_candidates = MOST_CANDIDATES};
    clave_err err = CLAVE_OK;
    size_t written = 0;
    copy_list_begin(l, j, "elections");
    for (int i = 0; i < ELECTION_LOOKS && written < PIECE_ELECTIONS && err == CLAVE_OK; i++) {
        const char *at = clave__buf_text(&l->at);
        const struct election *e = clave__election_after(&l->o->elections, at);
        *done = !e || l->written >= l->request.limit;
        if (*done) {
            list_request_close(l->x, &l->request, j, e ? at : NULL);
            return CLAVE_OK;
        }
        err = copy_list_remember(l, e->path, false);
        if (!clave__election_is_shown(e, &l->o->model) || !copy_list_takes(l, e->path))
            continue;
        clave__election_json(j, NULL, e, &view);
        l->written++;
        written++;
    }
    return err;
}

void clave__web_get_elections(struct web_exchange *x)
{
    copy_list_answer(x, observe_with_past(x), election_list_piece);
}

void clave__web_get_election(struct web_exchange *x)
{
    const char *path = x->params[0];
    struct observe *o = clave__param_path(x) ? observe_with_past(x) : NULL;
    if (!o)
        return;
    const struct election *e = clave__election_find(&o->elections, path);
    if (!e || !clave__election_is_shown(e, &o->model)) {
        copy_answer_none(x, path, "there is no election at");
        return;
    }
    char etag[COPY_ETAG_CAP];
    copy_etag(etag, clave__election_digest(e, clave__lock_model_get(&o->model, path, false)));
    if (!copy_is_news(x, POLL_AT, path, etag))
        return;
    struct election_view view = {&o->model, ALL_CANDIDATES, clave__observe_copy_json, x};
    clave__election_json(&x->json, NULL, e, &view);
    clave__web_answer_json(x, 200);
}

/* ==== /v1/deadlocks =========================================================================== */

static bool deadlock_is_seen(const struct web_exchange *x, const struct lock_deadlock *d,
                             const char *prefix)
{
    bool below = false;
    for (size_t i = 0; i < d->npaths; i++) {
        below = below || clave__observe_is_below(d->paths[i], prefix);
        if (!clave__observe_may_see(x, d->paths[i]))
            return false;
    }
    return below;
}

void clave__web_get_deadlocks(struct web_exchange *x)
{
    struct observe *o = clave__observe_for(x);
    struct list_request request;
    if (!o || !list_request_read(x, &request))
        return;
    clave__observe_look_for_deadlocks(o);
    clave__json_open(&x->json, NULL, '{');
    clave__json_open(&x->json, "deadlocks", '[');
    for (struct list *at = o->waits.found.next; at != &o->waits.found; at = at->next) {
        const struct lock_deadlock *d = LIST_ENTRY(at, struct lock_deadlock, link);
        if (deadlock_is_seen(x, d, request.prefix))
            clave__json_number(&x->json, NULL, d->data);
    }
    clave__json_close(&x->json, ']');
    clave__json_bool(&x->json, "complete", o->waits.complete);
    clave__observe_copy_json(&x->json, x);
    clave__web_answer_object(x, 200);
}

/* ==== /v1/history ============================================================================= */

enum { PIECE_ENTRIES = 200, HISTORY_LOOKS = 2000 };

struct history_list {
    struct web_exchange *x;
    struct observe *o;
    const char *path; /* of the lock; NULL: any */
    int64_t from;     /* wall clock */
    uint64_t n;       /* the entry looked at last; SEEKING: the one looked at next */
    size_t left;      /* how many are left to write */
    size_t before;    /* SEEKING: how many entries to go back */
    int64_t as_of;    /* of list_request */
    enum { HISTORY_SEEKING, HISTORY_BEGINNING, HISTORY_WRITING } phase;
};

static bool history_list_takes(const struct history_list *l, const struct history_entry *e)
{
    return e->at >= l->from && (!l->path || strcmp(l->path, e->path) == 0) &&
           clave__observe_may_see(l->x, e->path);
}

/* Goes back one entry, until `before` matching entries have been passed. */
static void history_list_seek(struct history_list *l)
{
    const struct history *h = &l->o->history;
    const struct history_entry *first = clave__history_after(h, 0);
    if (l->before == 0 || !first || l->n < first->n) {
        l->phase = HISTORY_BEGINNING;
        return;
    }
    const struct history_entry *e = clave__history_find(h, l->n); /* NULL: it was forgotten */
    l->before -= e && history_list_takes(l, e);
    l->n--;
}

/* Writes one entry. Returns false after the last one. */
static bool history_list_write(struct history_list *l, struct json *j, size_t *written)
{
    const struct history_entry *e = l->left > 0 ? clave__history_after(&l->o->history, l->n) : NULL;
    if (!e)
        return false;
    l->n = e->n;
    if (!history_list_takes(l, e))
        return true;
    clave__history_json(j, e);
    l->left--;
    ++*written;
    return true;
}

static clave_err history_list_piece(void *arg, struct json *j, bool *done)
{
    struct history_list *l = arg;
    size_t written = 0;
    for (int i = 0; i < HISTORY_LOOKS && written < PIECE_ENTRIES && !*done; i++) {
        if (l->phase == HISTORY_SEEKING) {
            history_list_seek(l);
            continue;
        }
        if (l->phase == HISTORY_BEGINNING) {
            clave__json_open(j, NULL, '{');
            clave__lock_time_json(j, "from", l->o->history.from);
            clave__json_open(j, "entries", '[');
            l->phase = HISTORY_WRITING;
        }
        *done = !history_list_write(l, j, &written);
    }
    if (*done) {
        clave__json_close(j, ']');
        copy_json_since(l->x, j, l->as_of);
        clave__json_close(j, '}');
    }
    return CLAVE_OK;
}

/* Begins after a number, or at a time. Returns false if `since` is neither. */
static bool history_list_since(struct history_list *l, const char *since)
{
    int64_t n;
    l->phase = since ? HISTORY_BEGINNING : HISTORY_SEEKING;
    if (!since)
        l->n = l->o->history.last;
    else if (clave__web_parse_int(since, &n) && n >= 0)
        l->n = (uint64_t)n <= l->o->history.last ? (uint64_t)n : 0; /* or the number is from another
                                                                     * history */
    else
        return clave__rfc3339_parse(since, &l->from);
    return true;
}

void clave__web_get_history(struct web_exchange *x)
{
    struct observe *o = observe_with_past(x);
    struct list_request request;
    if (!o || !list_request_read(x, &request) || !clave__query_path(x, "path"))
        return;
    struct history_list *l = clave__web_must_alloc(x, sizeof *l);
    if (!l)
        return;
    *l = (struct history_list){.x = x,
                               .o = o,
                               .path = clave__web_query(x, "path"),
                               .from = INT64_MIN,
                               .left = request.limit,
                               .before = request.limit,
                               .as_of = request.as_of};
    if (history_list_since(l, clave__web_query(x, "since")))
        clave__web_answer_pieces(x, history_list_piece, NULL, l);
    else
        clave__web_bad_request(
            x, "since is the number of an entry, or a time as 2026-11-23T09:35:19Z");
}

/* ==== /v1/events ============================================================================== */

/* Server-sent events for one reader: from an event that it has seen already, or after the state of
 * all locks.
 *
 *     id: EPOCH-N
 *     event: lock
 *     data: {"path":"/jobs/nightly",...}
 *
 * A reader that has no id, or one of another run or too old, first gets `reset`, and each lock as a
 * `lock` event. A line ": " comes after COMMENT_MS without an event, so that each side, and every
 * proxy between them, sees that the other is there. A reader that is so slow that the ring of
 * events overtakes it is cut off. Invariant: every event up to number `n` was written, or was not
 * for this reader; nothing is produced before the driver asks for more. */
enum {
    COMMENT_MS = 15000,
    EVENTS_PIECE = 32768,  /* bytes at a time, or a little more */
    EVENTS_SKIPPED = 2000, /* events for others at a time */
};

struct event_stream {
    struct observe_reader reader;
    struct observe *o;
    const char *prefix;  /* only events of this path and below; NULL: of all paths */
    const char *path;    /* only events of this path; NULL: of all paths */
    const char *session; /* also the events of this HTTP session; NULL: no such events */
    struct timer comment;
    uint64_t n;
    enum { STREAM_RESET, STREAM_SNAPSHOT, STREAM_LIVE } phase;
    bool comment_due;
    struct buf at; /* SNAPSHOT: the path of the lock written last, with its NUL */
    bool at_leases;
};

/* ---- writing --------------------------------------------------------------------------------- */

static clave_err stream_put(struct buf *out, const char *text)
{
    return clave__buf_append(out, text, strlen(text));
}

static clave_err stream_begin(const struct event_stream *s, struct buf *out, uint64_t n,
                              const char *name)
{
    char id[EVENT_ID_CAP], head[EVENT_ID_CAP + 64];
    clave__event_id_format(&s->o->ring, n, id);
    snprintf(head, sizeof head, "id: %s\nevent: %.16s\ndata: ", id, name);
    return stream_put(out, head);
}

static clave_err stream_put_lock(const struct event_stream *s, struct buf *out, uint64_t n,
                                 const struct lock_queue *q)
{
    clave_err err = stream_begin(s, out, n, "lock");
    struct json j = clave__json_to(out);
    clave__lock_json(&j, NULL, q, clave__observe_now(s->o), MOST_PLACES);
    err = err == CLAVE_OK ? j.err : err;
    return err == CLAVE_OK ? stream_put(out, "\n\n") : err;
}

/* A lock that has vanished: nobody holds it, and nobody waits for it. */
static clave_err stream_put_vanished(const struct event_stream *s, struct buf *out,
                                     const struct event *e)
{
    clave_err err = stream_begin(s, out, e->n, "lock");
    struct json j = clave__json_to(out);
    clave__lock_json_vanished(&j, e->path, e->kind);
    err = err == CLAVE_OK ? j.err : err;
    return err == CLAVE_OK ? stream_put(out, "\n\n") : err;
}

static clave_err stream_put_event(const struct event_stream *s, struct buf *out,
                                  const struct event *e)
{
    if (!e->data) {
        const struct lock_queue *q = clave__lock_model_get(&s->o->model, e->path, e->leases);
        return q ? stream_put_lock(s, out, e->n, q) : stream_put_vanished(s, out, e);
    }
    clave_err err = stream_begin(s, out, e->n, e->name);
    if (err == CLAVE_OK)
        err = stream_put(out, e->data);
    return err == CLAVE_OK ? stream_put(out, "\n\n") : err;
}

/* ---- which events ---------------------------------------------------------------------------- */

static bool stream_takes_path(const struct event_stream *s, const char *path)
{
    if (s->path && !(path && strcmp(path, s->path) == 0))
        return false;
    if (s->prefix && !(path && clave__observe_is_below(path, s->prefix)))
        return false;
    return clave__observe_may_see(s->reader.x, path);
}

/* The event names every lock of the deadlock, so the reader must be allowed to see all of them. A
 * deadlock that is over is not reported any more. */
static bool stream_may_see_deadlock(const struct event_stream *s, const struct event *e)
{
    const struct list *found = &s->o->waits.found;
    for (struct list *at = found->next; at != found; at = at->next) {
        const struct lock_deadlock *d = LIST_ENTRY(at, struct lock_deadlock, link);
        if (strcmp(d->data, e->data) != 0)
            continue;
        for (size_t i = 0; i < d->npaths; i++)
            if (!clave__observe_may_see(s->reader.x, d->paths[i]))
                return false;
        return true;
    }
    return false;
}

static bool stream_takes(const struct event_stream *s, const struct event *e)
{
    if (e->session)
        return s->session && strcmp(e->session, s->session) == 0;
    bool names_others = strcmp(e->name, "deadlock") == 0;
    if (names_others && !e->path) /* the last deadlock is over: this event names no lock */
        return true;
    return stream_takes_path(s, e->path) && (!names_others || stream_may_see_deadlock(s, e));
}

/* ---- in pieces ------------------------------------------------------------------------------- */

static clave_err stream_put_reset(struct event_stream *s, struct buf *out)
{
    s->n = s->o->ring.last;
    clave_err err = stream_put(out, "retry: 1000\n");
    if (err == CLAVE_OK)
        err = stream_begin(s, out, s->n, "reset");
    s->phase = STREAM_SNAPSHOT;
    return err == CLAVE_OK ? stream_put(out, "{}\n\n") : err;
}

/* Writes one lock. Locks that change in the meantime follow as events. */
static clave_err stream_put_next_lock(struct event_stream *s, struct buf *out)
{
    const struct lock_queue *q =
        clave__lock_model_after(&s->o->model, clave__buf_text(&s->at), s->at_leases);
    if (!q) {
        s->phase = STREAM_LIVE;
        return CLAVE_OK;
    }
    s->at_leases = q->leases;
    clave_err err = clave__buf_set_text(&s->at, q->path);
    if (err != CLAVE_OK || !stream_takes_path(s, q->path))
        return err;
    return stream_put_lock(s, out, s->n, q);
}

/* Sets *idle if there is nothing to write at present. */
static clave_err stream_put_next_event(struct event_stream *s, struct buf *out, bool *idle)
{
    const struct event *e = clave__event_ring_after(&s->o->ring, s->n);
    *idle = !e;
    if (!e)
        return CLAVE_OK;
    s->n = e->n;
    return stream_takes(s, e) ? stream_put_event(s, out, e) : CLAVE_OK;
}

static clave_err stream_put_some(struct event_stream *s, struct buf *out)
{
    size_t before = clave__buf_len(out);
    bool idle = false;
    clave_err err = CLAVE_OK;
    for (int i = 0; i < EVENTS_SKIPPED && !idle && err == CLAVE_OK; i++) {
        if (clave__buf_len(out) - before > EVENTS_PIECE)
            return CLAVE_OK;
        if (s->phase == STREAM_RESET)
            err = stream_put_reset(s, out);
        else if (s->phase == STREAM_SNAPSHOT)
            err = stream_put_next_lock(s, out);
        else
            err = stream_put_next_event(s, out, &idle);
    }
    if (!idle && clave__buf_len(out) == before)
        clave__web_wake(s->reader.x);
    return err;
}

static clave_err stream_more(void *arg, struct buf *out, bool *done)
{
    struct event_stream *s = arg;
    size_t before = clave__buf_len(out);
    if (s->phase != STREAM_RESET && !clave__event_ring_reaches(&s->o->ring, s->n)) {
        *done = true; /* the reader is too slow */
        return CLAVE_OK;
    }
    clave_err err = stream_put_some(s, out);
    if (err == CLAVE_OK && s->comment_due && clave__buf_len(out) == before)
        err = stream_put(out, ":\n\n");
    s->comment_due = false;
    if (clave__buf_len(out) > before)
        clave__web_timer_set(s->o->web, &s->comment, s->o->web->now + COMMENT_MS);
    return err;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void stream_on_silence(struct timer *t, int64_t now)
{
    struct event_stream *s = LIST_ENTRY(t, struct event_stream, comment);
    s->comment_due = true;
    clave__web_timer_set(s->o->web, t, now + COMMENT_MS);
    clave__web_wake(s->reader.x);
}

static void stream_end(void *arg)
{
    struct event_stream *s = arg;
    clave__web_timer_clear(s->o->web, &s->comment);
    list_remove(&s->reader.link);
    clave__buf_fini(&s->at);
}

static void events_open(struct web_exchange *x, const char *session)
{
    struct observe *o = x->web->observe;
    const char *last_id = clave__web_header(x, "Last-Event-ID");
    struct event_stream *s = clave__web_may_wait(x) ? clave__web_must_alloc(x, sizeof *s) : NULL;
    if (!s)
        return;
    *s = (struct event_stream){.reader.x = x,
                               .o = o,
                               .prefix = clave__web_query(x, "prefix"),
                               .path = clave__web_query(x, "path"),
                               .session = session};
    clave__buf_init(&s->at, &x->web->mem, SIZE_MAX);
    clave__timer_init(&s->comment, stream_on_silence);
    if (last_id && clave__event_id_parse(&o->ring, last_id, &s->n) &&
        clave__event_ring_reaches(&o->ring, s->n))
        s->phase = STREAM_LIVE;
    list_push_back(&o->streams, &s->reader.link);
    clave__web_timer_set(x->web, &s->comment, x->web->now + COMMENT_MS);
    x->answer.more = stream_more;
    x->answer.end = stream_end;
    x->answer.arg = s;
    clave__web_answer_stream(x, 200, "text/event-stream");
}

static void events_on_session(struct session_request *k)
{
    struct web_exchange *x = k->x;
    const char *session = clave__web_sprintf(x, "%" PRId64, k->s->id);
    if (session)
        events_open(x, session);
    else
        clave__web_problem_err(x, CLAVE_ENOMEM, "follow", "/");
}

void clave__web_get_events(struct web_exchange *x)
{
    if (!clave__observe_for(x) || !clave__query_path(x, "prefix") || !clave__query_path(x, "path"))
        return;
    if (clave__web_query(x, "claims"))
        clave__session_request(x, NULL, events_on_session);
    else
        events_open(x, NULL);
}

/* ==== /metrics ================================================================================ */

struct metrics_answer {
    struct web_exchange *x;
    struct metrics_page page;
    bool own_written;
};

static void metrics_answer_end(void *arg)
{
    struct metrics_answer *a = arg;
    clave__lock_metrics_fini(&a->page);
}

static clave_err metrics_answer_more(void *arg, struct buf *out, bool *done)
{
    struct metrics_answer *a = arg;
    size_t before = clave__buf_len(out);
    if (!a->own_written) {
        a->own_written = true;
        a->page.p.out = out;
        clave__http_metrics_put(a->x->web, &a->page.p);
        return a->page.p.err;
    }
    clave_err err = clave__lock_metrics_piece(&a->page, out, done);
    if (*done)
        clave__prometheus_end(&a->page.p);
    else if (clave__buf_len(out) == before) /* a piece in which every lock counts as "other" */
        clave__web_wake(a->x);
    return err == CLAVE_OK ? a->page.p.err : err;
}

/* The metrics contain paths and names from the whole tree, so they require the right to read
 * everything. */
void clave__web_get_metrics(struct web_exchange *x)
{
    const struct web_options *o = &x->web->o;
    struct metrics_labels labels = {o->metric_paths, o->nmetric_paths, o->max_metric_paths};
    enum prometheus_format format = clave__prometheus_accepted(clave__web_header(x, "Accept"));
    if (!clave__observe_may_see(x, NULL)) {
        clave__web_refuse(x, 403, CLAVE_ENOAUTH, NULL, "metrics need the role read on /");
        return;
    }
    struct metrics_answer *a = clave__web_must_alloc(x, sizeof *a);
    if (!a)
        return;
    clave__observe_feed_start(x->web->observe);
    *a = (struct metrics_answer){.x = x};
    clave__lock_metrics_init(&a->page, x->web->observe, &labels, format);
    x->answer.more = metrics_answer_more;
    x->answer.end = metrics_answer_end;
    x->answer.arg = a;
    clave__web_answer_stream(x, 200, clave__prometheus_content_type(format));
}
