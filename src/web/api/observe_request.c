/* observe_request.c - see observe_request.h. Called by the endpoints of the folder that read
 * struct observe. Invariants: a request that waits for the first load is in observe.waiting until
 * its `cancel`; nothing is said to be free, or unchanged, from a copy that is not current. */
#include "web/api/observe_request.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "client/client_for_recipes.h"
#include "web/http/answer.h"
#include "web/http/conditional.h"
#include "web/http/prefer.h"
#include "web/http/problem.h"
#include "web/http/request_args.h"
#include "web/http/request_limits.h"
#include "web/http/route.h"
#include "web/observe/lock_long_poll.h"
#include "web/observe/observe_feed.h"

/* Each takes some kilobytes, and all are answered in one turn. */
enum { MOST_WAITING = 1000, MOST_PROBES = 100 };

/* In x->state: of a request that asks the servers, or waits for a change. */
struct observe_request {
    int64_t asked; /* the servers, then */
    unsigned probes;
    bool fresh; /* the copy has what they knew then */
    bool polls;
    int64_t until; /* it waits for a change */
    struct lock_long_poll poll;
};

static void observe_request_no_memory(struct web_exchange *x)
{
    clave__web_problem(x, &(struct problem){.status = 503, .err = CLAVE_ENOMEM, .retry_after_s = 1},
                       "out of memory");
}

/* NULL: it has answered. */
static struct observe_request *observe_request_of(struct web_exchange *x)
{
    struct observe_request *r = x->state;
    if (r)
        return r;
    x->state = r = clave__web_alloc(x, sizeof *r);
    if (r)
        *r = (struct observe_request){0};
    else
        observe_request_no_memory(x);
    return r;
}

/* ---- until there is a copy ------------------------------------------------------------------- */

static void observe_request_cancel(struct web_exchange *x)
{
    struct observe_reader *waiting = x->pending;
    assert(x->web->observe->nwaiting > 0);
    list_remove(&waiting->link);
    x->web->observe->nwaiting--;
}

/* NULL: it waits until that may be known, and is then handled again. */
static struct observe *observe_request_wait(struct web_exchange *x)
{
    assert(!x->answered && !x->cancel);
    struct observe *o = x->web->observe;
    if (o->nwaiting >= MOST_WAITING) {
        clave__web_problem(
            x, &(struct problem){.status = 503, .err = CLAVE_ETHROTTLED, .retry_after_s = 2},
            "the tree is being read for the first time, and %d requests wait for it", MOST_WAITING);
        return NULL;
    }
    struct observe_reader *waiting = clave__web_alloc(x, sizeof *waiting);
    if (!waiting) {
        observe_request_no_memory(x);
        return NULL;
    }
    waiting->x = x;
    clave__observe_wait(o, waiting);
    x->pending = waiting;
    x->cancel = observe_request_cancel;
    return NULL;
}

/* ---- until the copy has what the servers know ------------------------------------------------ */

/* They have answered a sync: every event of before has come. What it told of may still have to be
 * read. Each answer to a further request says how far that is. */
static void observe_request_catch_up(struct web_exchange *x);

static void on_observe_probe(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    struct web *w = x->web;
    int64_t now = clave__client_now(c);
    if (!clave__web_expected(x))
        return;
    w->now = now > w->now ? now : w->now;                  /* ages are counted by it */
    if (res->err == CLAVE_OK || res->err == CLAVE_ENONODE) /* below a chroot that is not there */
        observe_request_catch_up(x);
    else
        clave__web_problem_as(x, 503, res->err, "ask the servers", NULL);
}

static void observe_request_catch_up(struct web_exchange *x)
{
    struct observe_request *r = x->state;
    struct web *w = x->web;
    int64_t age = clave__observe_age(w->observe);
    clave_err err = CLAVE_OK;
    r->fresh = w->observe->loaded && w->observe->current && age >= 0 && w->now - age >= r->asked;
    if (r->fresh) {
        /* That was for what was expected: it may wait for a change now. */
        clave__web_timer_clear(w, &x->timer);
        x->route->handle(x);
        return;
    }
    if (r->probes++ >= MOST_PROBES)
        err = CLAVE_EUNREACHABLE;
    else
        err = clave_async_exists(w->own, "/", NULL, on_observe_probe, x);
    if (err == CLAVE_OK) {
        clave__web_expect(x);
        clave__web_flush(w, w->own);
    } else {
        clave__web_problem_as(x, 503, err, "ask the servers", NULL);
    }
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
    if (err == CLAVE_OK) {
        clave__web_expect(x);
        clave__web_flush(w, w->own);
    } else {
        clave__web_problem_as(x, 503, err, "ask the servers", NULL);
    }
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

struct observe *clave__observe_with_past(struct web_exchange *x)
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

void clave__copy_json(struct json *j, const void *arg)
{
    const struct web_exchange *x = arg;
    observe_copy_json(x, j, clave__observe_age(x->web->observe));
}

/* Its first piece was made then. */
void clave__copy_json_since(const struct web_exchange *x, struct json *j, int64_t as_of)
{
    observe_copy_json(x, j, as_of < 0 ? -1 : x->web->now - as_of);
}

/* Age and Clave-Source. */
static void observe_copy_set_headers(struct web_exchange *x)
{
    int64_t age = clave__observe_age(x->web->observe);
    if (age >= 0)
        clave__web_set_header(x, "Age", "%" PRId64, (age + 999) / 1000);
    clave__web_set_header(x, "Clave-Source", "%s",
                          observe_request_is_fresh(x) ? "servers" : "copy");
}

static void observe_copy_answer_old(struct web_exchange *x, const char *path, const char *what)
{
    struct problem p = {.status = 503,
                        .err = CLAVE_EUNREACHABLE,
                        .path = path,
                        .retry_after_s = 1,
                        .members = clave__copy_json,
                        .arg = x};
    observe_copy_set_headers(x);
    clave__web_problem(x, &p, "%s %s is not known: the gate's copy of the tree is not current",
                       what, path);
}

/* ---- waiting for a change -------------------------------------------------------------------- */

void clave__copy_etag(char out[COPY_ETAG_CAP], uint64_t digest)
{
    snprintf(out, COPY_ETAG_CAP, "\"%016" PRIx64 "\"", digest);
}

/* true: it waits, or may not, which is answered. */
static bool observe_copy_waits(struct web_exchange *x, const char *path)
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
    if (!clave__lock_long_poll_enter(&r->poll, x, path, r->until))
        observe_request_no_memory(x);
    return true;
}

bool clave__copy_is_news(struct web_exchange *x, const char *path, const char *etag)
{
    if (!clave__condition_knows(x, etag, COPY_ETAG_NONE)) {
        clave__web_set_header(x, "ETag", "%s", etag);
        observe_copy_set_headers(x);
        return true;
    }
    if (observe_copy_waits(x, path))
        return false;
    if (clave__observe_is_current(x->web->observe)) {
        clave__web_set_header(x, "ETag", "%s", etag);
        observe_copy_set_headers(x);
        clave__web_answer_empty(x, 304);
    } else {
        observe_copy_answer_old(x, path, "whether anything has changed at");
    }
    return false;
}

/* What is below a node that the gate may not read may be held by anybody. */
static bool observe_copy_knows(struct web_exchange *x, const char *path)
{
    char *copy = clave__web_strndup(x, path, strlen(path));
    const char *hidden = copy ? clave__observe_feed_unreadable(x->web->observe->feed, copy) : NULL;
    if (!copy)
        observe_request_no_memory(x);
    else if (hidden)
        clave__web_problem(x, &(struct problem){.status = 403, .err = CLAVE_ENOAUTH, .path = path},
                           "the gate may not read %s, so who holds %s is not known", hidden, path);
    return copy && !hidden;
}

void clave__copy_answer_none(struct web_exchange *x, const char *path, const char *text)
{
    struct problem p = {
        .status = 404, .err = CLAVE_ENONODE, .path = path, .members = clave__copy_json, .arg = x};
    if (!observe_copy_knows(x, path))
        return;
    if (!clave__observe_is_current(x->web->observe))
        observe_copy_answer_old(x, path, "who holds");
    else if (clave__copy_is_news(x, path, COPY_ETAG_NONE))
        clave__web_problem(x, &p, "%s %s", text, path);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Where a page goes on is a path that another page has told. */
static bool list_request_is_below(struct web_exchange *x, const struct list_request *l)
{
    if (!l->after || !*l->after)
        return true;
    if (!clave__query_path(x, "after"))
        return false;
    if (clave__observe_is_below(l->after, l->prefix))
        return true;
    clave__web_problem(x, &(struct problem){.status = 400, .err = CLAVE_EINVAL, .path = l->after},
                       "after is the \"next\" of a page of this list: %s is not below %s", l->after,
                       l->prefix);
    return false;
}

bool clave__list_request_read(struct web_exchange *x, struct list_request *out)
{
    static const int64_t limits[2] = {1, LIST_LIMIT_MAX};
    const char *prefix = clave__web_query(x, "prefix");
    int64_t n = LIST_LIMIT, age = clave__observe_age(x->web->observe);
    *out = (struct list_request){.prefix = prefix && *prefix ? prefix : "/",
                                 .after = clave__web_query(x, "after"),
                                 .as_of = age < 0 ? -1 : x->web->now - age};
    if (!clave__query_int(x, "limit", limits, &n) ||
        (out->prefix == prefix && !clave__query_path(x, "prefix")) ||
        !list_request_is_below(x, out))
        return false;
    out->limit = (size_t)n;
    observe_copy_set_headers(x);
    return true;
}

void clave__list_request_close(struct web_exchange *x, const struct list_request *l, struct json *j,
                               const char *next)
{
    const struct observe *o = x->web->observe;
    clave__json_close(j, ']');
    clave__json_string(j, "next", next);
    clave__json_int64(j, "zxid", o->zxid);
    clave__json_int(j, "unreadable", (int64_t)o->unreadable);
    clave__json_bool(j, "complete", clave__observe_is_complete(o));
    clave__copy_json_since(x, j, l->as_of);
    clave__json_close(j, '}');
}

bool clave__observe_may_see(const struct web_exchange *x, const char *path)
{
    return clave__web_may(x, WEB_READ, path ? path : "/");
}
