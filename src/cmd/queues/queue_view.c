/* queue_view.c - reads the nodes of a lock of any kind, and shows what src/observe makes of them
 * (see queue_view.h). This takes two round trips: a sync and the names of all nodes; then the data
 * of the nodes. (A cache of the path would take two more, and would not know nodes whose Stat may
 * not be read.)
 *
 * The queue can be shown again after every change: a cache of its nodes tells us that something has
 * changed, and the queue is then read again, after a sync. */
#include "cmd/queues/queue_view.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/path.h"
#include "clave/cache.h"
#include "clave/uv.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/participant.h"
#include "cmd/cli/shell_command.h"
#include "cmd/znodes/request_window.h"
#include "observe/lock_model.h"
#include "recipe/queue/identity.h"

/* ---- reading -------------------------------------------------------------------------------- */

/* The requests of the first round trip: a sync, then the listings of each side in the order of
 * lock_listing.h, then the node that marks the kind. */
enum { FLIGHT_SYNC, FLIGHT_SIDES, FLIGHT_MARK = FLIGHT_SIDES + LOCK_SIDES, FLIGHT };

struct queue_view_read {
    struct queue_view *out;
    const char *path;
    char *sides[LOCK_SIDES], *mark;
    size_t n; /* how many nodes were listed and are to be read */
    clave_err err;
};

static void queue_view_fail(struct queue_view_read *r, clave_err err)
{
    if (r->err == CLAVE_OK)
        r->err = err;
}

static clave_err queue_view_submit_names(clave_async_client *c, size_t i, clave_result_cb *cb,
                                         void *cb_arg, void *arg)
{
    const struct queue_view_read *r = arg;
    if (i == FLIGHT_SYNC)
        return clave_async_sync(c, r->path, cb, cb_arg);
    if (i == FLIGHT_MARK)
        return clave_async_get(c, r->mark, NULL, cb, cb_arg);
    return clave_async_children(c, r->sides[i - FLIGHT_SIDES], NULL, cb, cb_arg);
}

/* The answers arrive in the order of the requests. A missing node is not an error. The mark, and
 * kazoo's queue beside the path, may belong to somebody else, so it is not an error either if they
 * may not be read. */
static void queue_view_got_names(size_t i, const clave_result *res, void *arg)
{
    struct queue_view_read *r = arg;
    assert(i < FLIGHT);
    enum lock_side side = (enum lock_side)(i - FLIGHT_SIDES);
    bool beside = i == FLIGHT_MARK || (i >= FLIGHT_SIDES && side == LOCK_SIDE_KAZOO);
    if (res->err == CLAVE_ENONODE || (beside && res->err == CLAVE_ENOAUTH))
        return;
    if (res->err != CLAVE_OK)
        queue_view_fail(r, res->err);
    else if (i == FLIGHT_MARK)
        queue_view_fail(
            r, clave__lock_listing_node(&r->out->listing, r->mark, res->stat, res->data, res->len));
    else if (i >= FLIGHT_SIDES)
        queue_view_fail(r,
                        clave__lock_listing_names(&r->out->listing, side, res->names, res->nnames));
}

static clave_err queue_view_submit_data(clave_async_client *c, size_t i, clave_result_cb *cb,
                                        void *cb_arg, void *arg)
{
    const struct queue_view_read *r = arg;
    return clave_async_get(c, r->out->nodes[i].of.path, NULL, cb, cb_arg);
}

/* Of a node that may not be read, only the place in the queue is known. A node that is gone has no
 * place. */
static void queue_view_got_data(size_t i, const clave_result *res, void *arg)
{
    struct queue_view_read *r = arg;
    assert(i < r->out->nnodes);
    struct queue_view_node *node = &r->out->nodes[i];
    bool promised;
    if (res->err == CLAVE_ENONODE) {
        clave__lock_listing_gone(&r->out->listing, node->of.path);
    } else if (res->err == CLAVE_OK) {
        queue_view_fail(r, clave__lock_listing_node(&r->out->listing, node->of.path, res->stat,
                                                    res->data, res->len));
        queue_view_fail(r, clave__queue_node_take(&node->of, &r->out->mem, res));
        node->held_since = clave__identity_granted(res->data, res->len, res->stat, &promised);
    } else if (res->err != CLAVE_ENOAUTH) {
        queue_view_fail(r, res->err);
    }
}

static clave_err queue_view_name_nodes(struct queue_view_read *r)
{
    struct queue_view *v = r->out;
    v->nodes = calloc(v->listing.model.nplaces + 1, sizeof *v->nodes);
    if (!v->nodes)
        return CLAVE_ENOMEM;
    for (const struct lock_node *p = NULL; (p = clave__lock_listing_after(&v->listing, p));) {
        assert(v->nnodes < v->listing.model.nplaces);
        struct queue_view_node *node = &v->nodes[v->nnodes];
        node->of.path = clave__lock_node_path(&v->mem, p);
        if (!node->of.path)
            return CLAVE_ENOMEM;
        node->of.name = clave__path_name(node->of.path);
        node->queue = p->queue;
        node->held_since = -1;
        v->nnodes++;
    }
    return CLAVE_OK;
}

static clave_err queue_view_run(clave_client *c, struct queue_view_read *r, int64_t timeout_ms)
{
    struct request_window_plan names = {FLIGHT, queue_view_submit_names, queue_view_got_names, r};
    clave_err err = request_window_run(c, &names, timeout_ms);
    if (err == CLAVE_OK)
        err = r->err;
    if (err == CLAVE_OK)
        err = queue_view_name_nodes(r);
    if (err != CLAVE_OK || r->out->nnodes == 0)
        return err;
    struct request_window_plan data = {r->out->nnodes, queue_view_submit_data, queue_view_got_data,
                                       r};
    err = request_window_run(c, &data, timeout_ms);
    return err == CLAVE_OK ? r->err : err;
}

/* ---- the result ------------------------------------------------------------------------------ */

/* The node of a place. Every place has one, and they come in almost the same order, so the search
 * begins where the last one ended (*at). */
static const struct queue_view_node *queue_view_node_of(const struct queue_view *v,
                                                        const struct lock_node *p, size_t *at)
{
    assert(v->nnodes > 0);
    const struct queue_view_node *node;
    do
        node = &v->nodes[(*at)++ % v->nnodes];
    while (node->queue != p->queue || strcmp(node->of.name, p->name) != 0);
    return node;
}

static const char *queue_view_role(const struct queue_view *v, const struct lock_node *p)
{
    if (p->kind == QUEUE_LATCH && !p->left_over && !clave__lock_is_outside(p))
        return p->holds ? "holder" : "waiting";
    return clave__lock_listing_role(&v->listing, p);
}

static clave_err queue_view_place_all(struct queue_view *v)
{
    v->list = calloc(v->nnodes + 1, sizeof *v->list);
    v->participants = calloc(v->nnodes + 1, sizeof *v->participants);
    if (!v->list || !v->participants)
        return CLAVE_ENOMEM;
    size_t from = 0;
    for (const struct lock_node *p = NULL; (p = clave__lock_listing_after(&v->listing, p));) {
        assert(v->n < v->nnodes);
        const struct queue_view_node *node = queue_view_node_of(v, p, &from);
        struct queue_view_place *at = &v->list[v->n];
        clave_participant *who = &v->participants[v->n++];
        *who = (clave_participant){.node = node->of.name,
                                   .identity = node->of.identity,
                                   .stat = node->of.stat,
                                   .left_over = p->left_over};
        *at = (struct queue_view_place){.p = who,
                                        .path = node->of.path,
                                        .holds = clave__lock_listing_holds(&v->listing, p),
                                        .role = queue_view_role(v, p),
                                        .asked = participant_text_is_asked(who),
                                        .held_since = node->held_since};
    }
    return CLAVE_OK;
}

clave_err queue_view_read(clave_client *c, const char *path, int64_t timeout_ms,
                          struct queue_view *out)
{
    *out = (struct queue_view){.mem = clave__mem_or_default(NULL)};
    struct queue_view_read r = {.out = out, .path = path};
    clave_err err = clave__lock_listing_init(&out->listing, &out->mem, clave_random_seed(), path);
    r.mark = clave__lock_mark_path(&out->mem, path);
    if (!r.mark)
        err = CLAVE_ENOMEM;
    for (int i = 0; i < LOCK_SIDES; i++) {
        r.sides[i] = clave__lock_side_path(&out->mem, path, (enum lock_side)i);
        if (!r.sides[i])
            err = CLAVE_ENOMEM;
    }
    if (err == CLAVE_OK)
        err = queue_view_run(c, &r, timeout_ms);
    if (err == CLAVE_OK)
        err = queue_view_place_all(out);
    clave__mem_free(&out->mem, r.mark);
    for (int i = 0; i < LOCK_SIDES; i++)
        clave__mem_free(&out->mem, r.sides[i]);
    if (err != CLAVE_OK)
        queue_view_fini(out);
    return err;
}

void queue_view_fini(struct queue_view *v)
{
    for (size_t i = 0; i < v->nnodes; i++) {
        clave__mem_free(&v->mem, v->nodes[i].of.data);
        clave__mem_free(&v->mem, v->nodes[i].of.path);
    }
    free(v->nodes);
    free(v->participants);
    free(v->list);
    if (v->listing.path)
        clave__lock_listing_fini(&v->listing);
    *v = (struct queue_view){.n = 0};
}

/* ---- a path without a queue ----------------------------------------------------------------- */

/* The model (observe/lock_model.h) says which nodes are places in queues. */

/* How many children of each sort there are: candidates; places in other queues; "leases" and
 * "locks", which belong to a semaphore; others; and "owners" and "limit", which together belong to
 * slots. */
struct no_queue {
    size_t latches, places, sides, others, slots;
};

static void no_queue_count(struct no_queue *q, const char *path, const char *name)
{
    char *node = clave__path_child(NULL, path, name);
    if (strcmp(name, "leases") == 0 || strcmp(name, "locks") == 0)
        q->sides++;
    else if (strcmp(name, "owners") == 0 || strcmp(name, "limit") == 0)
        q->slots++;
    else if (clave__queue_kind_of(name) == QUEUE_LATCH)
        q->latches++;
    else if (node && clave__lock_is_place(node))
        q->places++;
    else
        q->others++;
    free(node);
}

bool no_queue_report(const struct options *o, clave_client *c, const char *path)
{
    struct no_queue q = {0};
    clave_reply *r = NULL;
    char hint[HINT_CAP];
    const char *const locks[] = {"locks", NULL}, *const one[] = {"locks", path, NULL},
                      *const slots[] = {"slot", "list", path, NULL};
    if (clave_children(c, path, o->timeout_ms, &r) == CLAVE_OK)
        for (size_t i = 0; i < r->nnames; i++)
            no_queue_count(&q, path, r->names[i]);
    clave_reply_free(r);
    bool elects = o->verb->elects;
    if (q.slots == 2) {
        diag_end(o, path, EXIT_PATH, "no %s, but slots; to see them: %s",
                 elects ? "election" : "lock", hint_command(o, slots, hint));
        return true;
    }
    q.others += q.slots;
    if (q.latches > 0 || (!elects && q.places > 0))
        return false;
    if (elects && q.places + q.sides > 0 && q.others == 0)
        diag_end(o, path, EXIT_PATH, "no election, but a lock; to see it: %s",
                 hint_command(o, one, hint));
    else if (q.others > 0)
        diag_end(o, path, EXIT_PATH,
                 "no %s: none of its children is a %s; to see all locks and elections: %s",
                 elects ? "election" : "lock", elects ? "candidate" : "place in a queue",
                 hint_command(o, locks, hint));
    else
        return false;
    return true;
}

/* ---- again after every change --------------------------------------------------------------- */

/* Changes that come within this time, as those of a hand-over do, are shown together. */
enum { GATHER_MS = 50 };

static void queue_repeat_on_event(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    (void)cache;
    if (ev->type != CLAVE_CACHE_INITIALIZED) /* which may come after the wait for it */
        (void)!write(*(int *)arg, &(uint64_t){1}, sizeof(uint64_t));
}

/* false: there will be no more events. */
static bool queue_repeat_wait(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint64_t n;
    int ready;
    do
        ready = poll(&p, 1, -1);
    while (ready < 0 && errno == EINTR);
    poll(NULL, 0, GATHER_MS);
    return ready == 1 && read(fd, &n, sizeof n) == sizeof n;
}

static int queue_repeat_show(struct options *o, clave_client *c, const char *path, int fd,
                             queue_show *show)
{
    bool screen = isatty(STDOUT_FILENO);
    for (size_t shown = 0;; shown++) {
        if (screen)
            fputs("\033[H\033[2J", stdout);
        else if (shown > 0 && !o->json)
            putchar('\n');
        int code = show(o, c, path);
        int written = finish_stdout(o);
        if (written != EXIT_OK)
            return written;
        if (code != EXIT_OK && code != EXIT_PATH) /* the queue may come into being later */
            return code;
        if (!queue_repeat_wait(fd))
            return EXIT_INTERNAL;
    }
}

static int queue_repeat_watch(struct options *o, clave_client *c, const char *path,
                              queue_show *show)
{
    clave_cache *cache;
    clave_cache_options options = CLAVE_CACHE_OPTIONS_INIT;
    options.without_data = true;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return diag_end(o, path, EXIT_INTERNAL, "cannot watch it: %s", strerror(errno));
    clave_err err = clave_cache_new(&cache, c, path, &options, queue_repeat_on_event, &fd);
    if (err != CLAVE_OK) {
        close(fd);
        return diag_err(o, path, err, c);
    }
    uint64_t told;
    (void)clave_cache_wait(cache, o->timeout_ms); /* what exists already is not a change */
    (void)!read(fd, &told, sizeof told);
    int code = queue_repeat_show(o, c, path, fd, show);
    clave_cache_free(cache);
    close(fd);
    return code;
}

int queue_repeat(struct options *o, const char *path, bool watch, queue_show *show)
{
    clave_client *c;
    int code = connect_open(o, NULL, &c);
    if (code != EXIT_OK)
        return code;
    code = watch ? queue_repeat_watch(o, c, path, show) : show(o, c, path);
    connect_close(c);
    return code;
}
