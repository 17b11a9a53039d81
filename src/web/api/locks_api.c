/* locks_api.c - see locks_api.h. Called by routes.c. Invariant: a piece of an answer shows a
 * bounded number of places, and a lock is shown as it is at that moment. */
#include "web/api/locks_api.h"

#include <string.h>

#include "observe/lock_json.h"
#include "web/api/observe_request.h"
#include "web/http/json_pieces.h"
#include "web/http/problem.h"
#include "web/http/request_args.h"

enum {
    PIECE_PLACES = 400, /* that one piece shows */
    PIECE_LOCKS = 2000, /* that it looks at */
    MOST_PLACES = 20,   /* of each side of a lock in a list */
};

/* ---- the list -------------------------------------------------------------------------------- */

struct lock_list {
    struct web_exchange *x;
    struct observe *o;
    struct list_request request;
    bool begun;
    size_t written;
    struct buf at; /* the path of the lock looked at last, with its NUL */
    bool at_leases;
};

static void lock_list_end(void *arg)
{
    struct lock_list *l = arg;
    clave__buf_fini(&l->at);
}

/* Paths that begin with the prefix are together, in the order of paths, but not all of them are
 * below it: "/a-b" is between "/a" and "/a/b". NULL: that was the last one. */
static struct lock_queue *lock_list_next(const struct lock_list *l)
{
    const struct lock_model *m = &l->o->model;
    const char *prefix = l->request.prefix, *at = clave__buf_text(&l->at);
    struct lock_queue *q = *at ? NULL : clave__lock_model_get(m, prefix, false);
    if (!q)
        q = clave__lock_model_after(m, *at ? at : prefix, l->at_leases);
    return q && strncmp(q->path, prefix, strlen(prefix)) == 0 ? q : NULL;
}

static clave_err lock_list_remember(struct lock_list *l, const char *path, bool leases)
{
    l->at_leases = leases;
    return clave__buf_set_text(&l->at, path);
}

/* Two locks of one path (a semaphore, and a queue right at it) are on one page, since `next` is a
 * path. */
static bool lock_list_is_full(const struct lock_list *l, const struct lock_queue *q)
{
    return l->written >= l->request.limit && strcmp(q->path, clave__buf_text(&l->at)) != 0;
}

static size_t lock_list_shown(size_t places)
{
    return places < MOST_PLACES ? places : MOST_PLACES;
}

static clave_err lock_list_next_piece(void *arg, struct json *j, bool *done)
{
    struct lock_list *l = arg;
    clave_err err = CLAVE_OK;
    size_t places = 0;
    if (!l->begun) {
        clave__json_open(j, NULL, '{');
        clave__json_open(j, "locks", '[');
        l->begun = true;
    }
    for (size_t i = 0; i < PIECE_LOCKS && places < PIECE_PLACES && err == CLAVE_OK; i++) {
        const struct lock_queue *q = lock_list_next(l);
        *done = !q || lock_list_is_full(l, q);
        if (*done) {
            clave__list_request_close(l->x, &l->request, j, q ? clave__buf_text(&l->at) : NULL);
            return CLAVE_OK;
        }
        err = lock_list_remember(l, q->path, q->leases);
        if (!clave__observe_is_below(q->path, l->request.prefix) ||
            !clave__observe_may_see(l->x, q->path))
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
    struct observe *o = clave__observe_for(x);
    struct list_request request;
    if (!o || !clave__list_request_read(x, &request))
        return;
    struct lock_list *l = clave__web_alloc(x, sizeof *l);
    clave_err err = l ? CLAVE_OK : CLAVE_ENOMEM;
    if (l) {
        *l = (struct lock_list){.x = x, .o = o, .request = request};
        clave__buf_init(&l->at, &x->web->mem, SIZE_MAX);
        if (request.after && strcmp(request.after, request.prefix) >= 0)
            err = lock_list_remember(l, request.after, true);
    }
    if (err == CLAVE_OK)
        clave__web_answer_pieces(x, lock_list_next_piece, lock_list_end, l);
    else
        clave__web_problem_err(x, err, "list", request.prefix);
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
        clave__copy_answer_none(x, path, "nobody holds, and nobody waits for");
        return;
    }
    char etag[COPY_ETAG_CAP];
    clave__copy_etag(etag, clave__lock_etag(q));
    if (!clave__copy_is_news(x, path, etag))
        return;
    struct lock_one *l = clave__web_alloc(x, sizeof *l);
    clave_err err = l ? CLAVE_OK : CLAVE_ENOMEM;
    if (l) {
        l->o = o;
        err = clave__lock_walk_init(&l->walk, &x->web->mem, q);
        l->walk.members = clave__copy_json;
        l->walk.arg = x;
    }
    if (err == CLAVE_OK)
        clave__web_answer_pieces(x, lock_one_next_piece, lock_one_end, l);
    else
        clave__web_problem_err(x, err, "show", path);
}
