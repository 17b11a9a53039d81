/* observe_request.c - see observe_request.h. Called by the endpoints of the folder that read
 * struct observe. Invariant: a request that waits is in observe.waiting until its `cancel`. */
#include "web/api/observe_request.h"

#include "base/memory.h"
#include "web/http/answer.h"
#include "web/http/problem.h"
#include "web/http/query.h"
#include "web/observe/observe_feed.h"

/* Each takes some kilobytes, and all are answered in one turn. */
enum { MOST_WAITING = 1000 };

static void observe_request_cancel(struct web_exchange *x)
{
    struct observe_reader *waiting = x->pending;
    list_remove(&waiting->link);
    x->web->observe->nwaiting--;
}

/* NULL: it waits until that may be known, and is then handled again. */
static struct observe *observe_request_wait(struct web_exchange *x)
{
    struct observe *o = x->web->observe;
    if (o->nwaiting >= MOST_WAITING) {
        clave__web_problem(
            x, &(struct problem){.status = 503, .err = CLAVE_ETHROTTLED, .retry_after_s = 2},
            "the tree is being read for the first time, and %d requests wait for it", MOST_WAITING);
        return NULL;
    }
    struct observe_reader *waiting = clave__web_alloc(x, sizeof *waiting);
    if (!waiting) {
        clave__web_problem(x, &(struct problem){.status = 503, .err = CLAVE_ENOMEM},
                           "out of memory");
        return NULL;
    }
    waiting->x = x;
    list_push_back(&o->waiting, &waiting->link);
    o->nwaiting++;
    x->pending = waiting;
    x->cancel = observe_request_cancel;
    return NULL;
}

struct observe *clave__observe_for(struct web_exchange *x)
{
    struct observe *o = x->web->observe;
    clave__observe_feed_start(o);
    return o->loaded ? o : observe_request_wait(x);
}

struct observe *clave__observe_with_past(struct web_exchange *x)
{
    struct observe *o = clave__observe_for(x);
    return o && o->replays ? observe_request_wait(x) : o;
}

bool clave__list_request_read(struct web_exchange *x, struct list_request *out)
{
    static const int64_t limits[2] = {1, LIST_LIMIT_MAX};
    const char *prefix = clave__web_query(x, "prefix");
    int64_t n = LIST_LIMIT;
    *out = (struct list_request){.prefix = prefix && *prefix ? prefix : "/",
                                 .after = clave__web_query(x, "after")};
    if (!clave__query_int(x, "limit", limits, &n) ||
        (out->prefix == prefix && !clave__query_path(x, "prefix")))
        return false;
    out->limit = (size_t)n;
    return true;
}

void clave__list_request_close(const struct observe *o, struct json *j, const char *next)
{
    clave__json_close(j, ']');
    clave__json_string(j, "next", next);
    clave__json_int64(j, "zxid", o->zxid);
    clave__json_int(j, "unreadable", (int64_t)o->unreadable);
    clave__json_bool(j, "complete", clave__observe_is_complete(o));
    clave__json_bool(j, "current", o->current);
    clave__json_close(j, '}');
}

bool clave__observe_knows(struct web_exchange *x, const char *path)
{
    char *copy = clave__mem_strdup(&x->web->mem, path);
    const char *hidden = copy ? clave__observe_feed_unreadable(x->web->observe->feed, copy) : NULL;
    if (!copy)
        clave__web_problem_err(x, CLAVE_ENOMEM, "show", path);
    else if (hidden)
        clave__web_problem(x, &(struct problem){.status = 403, .err = CLAVE_ENOAUTH, .path = path},
                           "the gate may not read %s, so who holds %s is not known", hidden, path);
    clave__mem_free(&x->web->mem, copy);
    return copy && !hidden;
}

bool clave__observe_may_see(const struct web_exchange *x, const char *path)
{
    return clave__web_may(x, WEB_READ, path ? path : "/");
}
