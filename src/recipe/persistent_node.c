/* persistent_node.c - keeps a node at a path for as long as its owner lives; see
 * clave/async/persistent_node.h.
 *
 * There is at most one request at a time, and what comes next depends on what is known of the node:
 *
 *                      ┌──── NODEEXISTS ────▶ LOOK ─── own ──▶ KEPT: set, touch
 *      CREATE ─────────┤                      ▲ │ │              │
 *      ▲  ▲            └──── created ─────────┘ │ └─ another's ─▶ WAITING (its watch is armed)
 *      │  │                                     │                │
 *      │  └──────── lost, BADVERSION ─── REPLACE ◀── of a former session of this object
 *      └──────────────── deleted, new session ──────────────────┘
 *
 * What must stay true:
 *   - An ephemeral node counts as own only if its owner is the current session. So a create whose
 *     answer was lost is just sent again: if that fails with NODEEXISTS, the node's owner tells
 *     whether the lost create has made it.
 *   - The node of a former session is replaced in one transaction that names the version that was
 *     seen. That session may be held open by nobody but this object, so nothing is taken away.
 *   - A set names the version, but another client's node may have the same version: the czxid in
 *     the answer tells whose node was written to.
 *   - Every look arms the watch, and every step that ends with a node is followed by a look.
 *   - After the end nothing is created: a create under way is awaited, and its node deleted. */
#include "clave/async/persistent_node.h"

#include <assert.h>
#include <string.h>

#include "base/err_class.h"
#include "base/path.h"
#include "client/client_for_recipes.h"

enum { PAUSE_MS = 100, PAUSE_MAX_MS = 5000, FORMER_SESSIONS = 4 };

/* What has to be requested next from the server. */
enum node_need { NEED_NOTHING, NEED_LOOK, NEED_CREATE, NEED_REPLACE };

struct node_data {
    void *bytes;
    size_t len;
};

/* A call of _set that has not been answered. */
struct node_writer {
    struct list link;
    uint64_t generation;
    clave_async_persistent_node_cb *cb;
    void *arg;
};

struct clave_async_persistent_node {
    clave_async_client *client;
    const struct clave_mem *mem;
    clave_persistent_node_kind kind;
    char *path; /* of a sequential node without the number, until it is `named` */
    bool named;
    char *touch; /* the path of the child that keeps a TTL node alive */
    int64_t ttl_ms;
    bool replace; /* what is there at the start */
    clave_acl *acls;
    size_t nacls;
    struct node_data data;
    /* Generations of the data: asked for, in the request under way, known to be in the node. */
    uint64_t wanted, sent, written;
    struct list writers;
    clave_persistent_node_event_cb *event_cb;
    void *event_arg;

    int64_t session;                 /* in which all that follows is known */
    int64_t former[FORMER_SESSIONS]; /* sessions that this object had before; the newest first */
    enum node_need need;
    bool mine;     /* the node is there, and it is this object's */
    bool doubt;    /* a create may have been done, or may yet be: until something is committed */
    bool proven;   /* the look under way shows all that was committed before it */
    int64_t czxid; /* of the node; 0: the answer to its create did not tell */
    int32_t version;
    int64_t told;     /* czxid of the node that was reported as PRESENT; 0: ABSENT was reported */
    int64_t conflict; /* czxid of the other client's node that was reported as CONFLICT */
    bool stuck;       /* the server refused: nothing is asked on this connection */
    bool touch_due, touch_missing;

    clave_async_watch *watch;
    struct listener listener;
    struct timer pause, touch_timer;
    int32_t failures; /* in a row */
    bool asking;      /* a request is under way */
    bool closing;     /* the node is no longer wanted */
    bool removes;     /* _close was called, which deletes even a node that is not ephemeral */
    bool over;
    bool freed;
    clave_async_persistent_node_cb *close_cb;
    void *close_arg;
    struct client_task leave;
    unsigned refs; /* the user, a request under way, the pause before one, and running calls */
};

static void node_go(clave_async_persistent_node *n);

static bool node_is_ephemeral(const clave_async_persistent_node *n)
{
    return n->kind == CLAVE_KEPT_EPHEMERAL || n->kind == CLAVE_KEPT_EPHEMERAL_SEQUENTIAL;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void node_drop(clave_async_persistent_node *n)
{
    assert(n->refs > 0);
    if (--n->refs > 0)
        return;
    for (struct list *e; (e = list_pop_front(&n->writers));)
        clave__mem_free(n->mem, LIST_ENTRY(e, struct node_writer, link));
    clave__mem_free(n->mem, n->data.bytes);
    clave__mem_free(n->mem, n->acls);
    clave__mem_free(n->mem, n->touch);
    clave__mem_free(n->mem, n->path);
    clave_async_client *c = n->client;
    clave__client_unlisten(&n->listener);
    clave__mem_free(n->mem, n);
    clave__client_unref(c);
}

static clave_err node_copy_data(const clave_async_persistent_node *n, const void *data, size_t len,
                                struct node_data *out)
{
    *out = (struct node_data){.bytes = clave__mem_alloc(n->mem, len > 0 ? len : 1), .len = len};
    if (!out->bytes)
        return CLAVE_ENOMEM;
    if (len > 0)
        memcpy(out->bytes, data, len);
    return CLAVE_OK;
}

/* ---- what the user is told ------------------------------------------------------------------- */

static void node_tell(clave_async_persistent_node *n, const clave_persistent_node_event *ev)
{
    if (!n->event_cb || n->closing)
        return;
    n->refs++;
    n->event_cb(n, ev, n->event_arg);
    node_drop(n);
}

static void node_tell_absent(clave_async_persistent_node *n, clave_err why)
{
    if (n->told == 0)
        return;
    n->told = 0;
    node_tell(n, &(clave_persistent_node_event){
                     .type = CLAVE_PERSISTENT_NODE_ABSENT, .path = n->path, .err = why});
}

/* Answers the calls of _set whose data, or newer data, is in the node; after an error, answers all
 * of them. */
static void node_tell_writers(clave_async_persistent_node *n, clave_err err)
{
    struct list told;
    list_init(&told);
    for (struct list *e = n->writers.next, *next; e != &n->writers; e = next) {
        next = e->next;
        if (err == CLAVE_OK && LIST_ENTRY(e, struct node_writer, link)->generation > n->written)
            continue;
        list_remove(e);
        list_push_back(&told, e);
    }
    n->refs++;
    for (struct list *e; (e = list_pop_front(&told));) {
        struct node_writer *w = LIST_ENTRY(e, struct node_writer, link);
        if (w->cb && !n->freed)
            w->cb(n, err, w->arg);
        clave__mem_free(n->mem, w);
    }
    node_drop(n);
}

/* The node is no longer kept, and there is nothing more to do. */
static void node_finish(clave_async_persistent_node *n, clave_err err)
{
    clave_async_persistent_node_cb *cb = n->close_cb;
    n->over = true;
    n->close_cb = NULL;
    if (cb)
        cb(n, err, n->close_arg);
}

/* ---- what is known of the node --------------------------------------------------------------- */

static bool node_is_of_a_former_session(const clave_async_persistent_node *n, int64_t owner)
{
    for (int i = 0; i < FORMER_SESSIONS; i++)
        if (owner != 0 && n->former[i] == owner)
            return true;
    return false;
}

/* In another session nothing is known any more. */
static void node_note_session(clave_async_persistent_node *n)
{
    int64_t id = clave_async_client_session_id(n->client);
    if (id == n->session || id == 0)
        return;
    memmove(n->former + 1, n->former, sizeof n->former - sizeof n->former[0]);
    n->former[0] = n->session;
    n->session = id;
    n->doubt = false;
    n->need = NEED_CREATE;
    if (node_is_ephemeral(n))
        n->mine = false;
}

/* The node is this object's. `stat` may be NULL after a create: the look that follows has it. */
static void node_have(clave_async_persistent_node *n, const clave_stat *stat)
{
    n->mine = true;
    n->doubt = n->replace = false;
    n->failures = 0;
    n->conflict = 0;
    n->czxid = 0;
    if (!stat)
        return;
    n->version = stat->version;
    n->czxid = stat->czxid;
    if (n->told == stat->czxid)
        return;
    n->told = stat->czxid;
    n->touch_due = n->touch != NULL;
    node_tell(n, &(clave_persistent_node_event){
                     .type = CLAVE_PERSISTENT_NODE_PRESENT, .path = n->path, .czxid = stat->czxid});
}

/* Another's node is there; the watch on it is armed. */
static void node_wait(clave_async_persistent_node *n, const clave_stat *stat)
{
    n->need = NEED_NOTHING;
    if (n->conflict == stat->czxid)
        return;
    n->conflict = stat->czxid;
    node_tell(n, &(clave_persistent_node_event){.type = CLAVE_PERSISTENT_NODE_CONFLICT,
                                                .path = n->path,
                                                .owner = stat->ephemeral_owner});
}

static void node_is_gone(clave_async_persistent_node *n)
{
    n->mine = false;
    n->need = NEED_CREATE;
    node_tell_absent(n, CLAVE_ENONODE);
}

static void node_see(clave_async_persistent_node *n, const clave_stat *stat)
{
    int64_t owner = stat->ephemeral_owner;
    bool own = owner == (node_is_ephemeral(n) ? n->session : 0);
    /* made by a create whose answer was lost, or adopted: which data it has is unknown */
    if (own && !n->mine)
        n->written = 0;
    n->doubt = n->doubt && !n->proven;
    if (own) {
        n->need = NEED_NOTHING;
        node_have(n, stat);
        return;
    }
    n->mine = false;
    node_tell_absent(n, CLAVE_ENONODE);
    if (n->replace || node_is_of_a_former_session(n, owner)) {
        n->need = NEED_REPLACE;
        n->version = stat->version;
        n->czxid = stat->czxid;
    } else {
        node_wait(n, stat);
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Nothing is requested in the next `ms`. */
static void node_pause(clave_async_persistent_node *n, int64_t ms)
{
    n->refs += !n->pause.armed;
    clave__client_timer_set(n->client, &n->pause, clave__client_now(n->client) + ms);
}

static void node_end_pause(clave_async_persistent_node *n)
{
    if (!n->pause.armed)
        return;
    clave__client_timer_clear(n->client, &n->pause);
    node_drop(n);
}

/* A request has failed. One that may succeed later is repeated after a pause that grows, the first
 * time without one: it waits for a connection by itself. */
static void node_trouble(clave_async_persistent_node *n, clave_err err)
{
    if (err == CLAVE_ECLOSED) {
        n->over = true;
    } else if (clave__err_passes(err)) {
        int64_t ms = n->failures > 0 ? PAUSE_MS : 0;
        for (int32_t i = 1; i < n->failures && ms < PAUSE_MAX_MS; i++)
            ms *= 2;
        n->failures++;
        node_pause(n, ms);
    } else {
        n->stuck = true;
        node_tell_writers(n, err);
        node_tell(n, &(clave_persistent_node_event){
                         .type = CLAVE_PERSISTENT_NODE_FAILED, .path = n->path, .err = err});
    }
}

static void node_end_request(clave_async_persistent_node *n)
{
    n->asking = false;
    if (n->over)
        node_finish(n, CLAVE_ECLOSED);
    else
        node_go(n);
    node_drop(n);
}

static void node_on_looked(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_persistent_node *n = arg;
    (void)c;
    node_note_session(n);
    if (res->err == CLAVE_OK || res->err == CLAVE_ENONODE)
        n->failures = 0;
    if (res->err == CLAVE_OK) {
        node_see(n, res->stat);
        /* This look armed no watch because there was one, and that has fired since. */
        if (n->need == NEED_NOTHING && n->watch && !clave_async_watch_is_armed(n->watch))
            n->need = NEED_LOOK;
    } else if (res->err == CLAVE_ENONODE) {
        n->doubt = n->doubt && !n->proven;
        node_is_gone(n);
    } else {
        n->doubt = n->doubt && clave__err_passes(res->err);
        node_trouble(n, res->err);
    }
    n->proven = false;
    node_end_request(n);
}

static clave_err node_look(clave_async_persistent_node *n)
{
    bool arms = n->watch && !clave_async_watch_is_armed(n->watch);
    clave_err err =
        clave_async_exists(n->client, n->path, arms ? n->watch : NULL, node_on_looked, n);
    if (err == CLAVE_EINVAL && arms) /* its event is about to be delivered */
        err = clave_async_exists(n->client, n->path, NULL, node_on_looked, n);
    return err;
}

static clave_create_mode node_mode(const clave_async_persistent_node *n)
{
    switch (n->kind) {
    case CLAVE_KEPT_PERSISTENT:
        return CLAVE_PERSISTENT;
    case CLAVE_KEPT_TTL:
        return CLAVE_PERSISTENT_TTL;
    case CLAVE_KEPT_EPHEMERAL_SEQUENTIAL:
        if (!n->named)
            return CLAVE_EPHEMERAL_SEQUENTIAL;
        break;
    case CLAVE_KEPT_EPHEMERAL:
        break;
    }
    return CLAVE_EPHEMERAL;
}

/* From now on the node has the name that it was given. */
static clave_err node_take_name(clave_async_persistent_node *n, const char *path)
{
    char *copy = clave__mem_strdup(n->mem, path);
    if (!copy)
        return CLAVE_ENOMEM;
    clave__mem_free(n->mem, n->path);
    n->path = copy;
    n->named = true;
    return CLAVE_OK;
}

/* A create, alone or in a transaction, was answered. */
static void node_created(clave_async_persistent_node *n, clave_err err, const clave_stat *stat)
{
    if (err == CLAVE_OK) {
        n->written = n->sent;
        n->need = NEED_LOOK;
        node_have(n, stat);
        node_tell_writers(n, CLAVE_OK);
        return;
    }
    n->need = NEED_CREATE;
    n->doubt = n->doubt || clave_err_classify(err) == CLAVE_CLASS_UNKNOWN;
    node_trouble(n, err);
}

static void node_on_created(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_persistent_node *n = arg;
    clave_err err = res->err;
    node_note_session(n);
    if (err == CLAVE_OK && !n->named) {
        err = node_take_name(n, res->path);
        if (err != CLAVE_OK) /* there is no memory for its name; a second node must not be made */
            (void)clave_async_delete_guaranteed(c, res->path, NULL, NULL);
    }
    if (err == CLAVE_ENODEEXISTS)
        n->need = NEED_LOOK;
    else
        node_created(n, err, res->stat);
    node_end_request(n);
}

static clave_err node_create(clave_async_persistent_node *n)
{
    const clave_create_options o = {.size = sizeof o,
                                    .mode = node_mode(n),
                                    .flags = CLAVE_CREATE_PARENTS |
                                             (n->named ? 0U : (unsigned)CLAVE_CREATE_CERTAIN),
                                    .ttl_ms = n->ttl_ms,
                                    .acls = n->acls,
                                    .nacls = n->nacls};
    return clave_async_create(n->client, n->path, n->data.bytes, n->data.len, &o, node_on_created,
                              n);
}

static void node_on_replaced(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_persistent_node *n = arg;
    (void)c;
    node_note_session(n);
    if (res->err == CLAVE_OK) {
        node_created(n, CLAVE_OK, res->nops > 1 ? res->ops[1].stat : NULL);
    } else if (res->err == CLAVE_EBADVERSION || res->err == CLAVE_ENONODE) {
        n->need = NEED_CREATE; /* the node is another one by now, or gone */
    } else if (res->err == CLAVE_ENOTEMPTY) {
        n->replace = false;
        n->need = NEED_LOOK;
    } else {
        node_created(n, res->err, NULL);
    }
    node_end_request(n);
}

static clave_err node_replace(clave_async_persistent_node *n)
{
    const clave_op ops[] = {{.kind = CLAVE_OP_DELETE, .path = n->path, .version = n->version},
                            {.kind = CLAVE_OP_CREATE,
                             .path = n->path,
                             .data = n->data.bytes,
                             .len = n->data.len,
                             .mode = node_mode(n),
                             .acls = n->acls,
                             .nacls = n->nacls,
                             .ttl_ms = n->ttl_ms}};
    return clave_async_multi(n->client, ops, 2, node_on_replaced, n);
}

static void node_on_set(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_persistent_node *n = arg;
    (void)c;
    bool passes = clave__err_passes(res->err);
    if (res->err == CLAVE_OK && node_is_ephemeral(n) && res->stat->czxid != n->czxid) {
        n->need = NEED_LOOK; /* ours was gone; another's has the same version, and now our data */
    } else if (res->err == CLAVE_OK) {
        n->failures = 0;
        n->version = res->stat->version;
        n->written = n->sent;
        node_tell_writers(n, CLAVE_OK);
    } else if (passes || res->err == CLAVE_EBADVERSION || res->err == CLAVE_ENONODE) {
        n->need = n->need == NEED_NOTHING ? NEED_LOOK : n->need;
        if (passes)
            node_trouble(n, res->err);
    } else { /* the node is there, but with other data */
        n->written = n->wanted;
        node_tell_writers(n, res->err);
        node_tell(n, &(clave_persistent_node_event){
                         .type = CLAVE_PERSISTENT_NODE_FAILED, .path = n->path, .err = res->err});
    }
    node_end_request(n);
}

static clave_err node_set(clave_async_persistent_node *n)
{
    int32_t version = node_is_ephemeral(n) ? n->version : -1;
    return clave_async_set(n->client, n->path, n->data.bytes, n->data.len, version, node_on_set, n);
}

/* ---- the child that keeps a TTL node alive --------------------------------------------------- */

static void node_on_touched(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_persistent_node *n = arg;
    (void)c;
    bool missing = !n->touch_missing && res->err == CLAVE_ENONODE;
    if (n->touch_missing && res->err == CLAVE_ENONODE && n->need == NEED_NOTHING)
        n->need = NEED_LOOK; /* the node itself is missing */
    n->touch_missing = n->touch_due = missing;
    if (!missing && !n->closing)
        clave__client_timer_set(n->client, &n->touch_timer,
                                clave__client_now(n->client) + n->ttl_ms / 2);
    node_end_request(n);
}

static clave_err node_do_touch(clave_async_persistent_node *n)
{
    const clave_create_options o = {.size = sizeof o,
                                    .mode = CLAVE_PERSISTENT_TTL,
                                    .ttl_ms = n->ttl_ms,
                                    .acls = n->acls,
                                    .nacls = n->nacls};
    if (n->touch_missing)
        return clave_async_create(n->client, n->touch, "", 0, &o, node_on_touched, n);
    return clave_async_set(n->client, n->touch, "", 0, -1, node_on_touched, n);
}

static void node_on_touch_timer(struct timer *t, int64_t now)
{
    clave_async_persistent_node *n = LIST_ENTRY(t, struct clave_async_persistent_node, touch_timer);
    (void)now;
    n->touch_due = true;
    node_go(n);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void node_on_removed(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_persistent_node *n = arg;
    (void)c;
    n->asking = false;
    node_finish(n, res->err);
    node_drop(n);
}

static void node_on_proven(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_persistent_node *n = arg;
    bool answered = res->err == CLAVE_OK || clave_err_classify(res->err) == CLAVE_CLASS_FINAL;
    n->proven = answered;
    clave_err err = answered ? node_look(n) : res->err;
    if (err != CLAVE_OK)
        node_on_looked(c, &(clave_result){.err = err}, arg);
}

/* Commits a transaction that changes nothing, and looks. A sync would not do: a deposed leader
 * answers it on its own, and its successor may still commit the create that it had proposed. A
 * server that refuses the transaction for good can give no better proof. */
static clave_err node_prove(clave_async_persistent_node *n)
{
    static const clave_op nothing = {.kind = CLAVE_OP_CHECK, .path = "/", .version = -1};
    return clave_async_multi(n->client, &nothing, 1, node_on_proven, n);
}

/* Nobody wants the node any more, and nothing is under way. It has to be proven whether a create
 * whose answer was lost has made one. If the answer to a create did not tell which node it made,
 * that has to be found out as well, lest the delete spare our own node as somebody else's. */
static clave_err node_leave(clave_async_persistent_node *n)
{
    bool lost = clave_async_client_session_id(n->client) != n->session;
    if (node_is_ephemeral(n) ? lost : !n->removes) {
        /* whatever node there may be goes with its session, or is meant to stay */
        node_finish(n, CLAVE_OK);
        return CLAVE_OK;
    }
    if (n->doubt || (n->mine && n->czxid == 0))
        return node_prove(n);
    if (!n->mine) {
        node_finish(n, CLAVE_OK);
        return CLAVE_OK;
    }
    if (n->touch) /* both deletes are done in this order */
        (void)clave_async_delete(n->client, n->touch, -1, NULL, NULL);
    return clave__client_delete_node(n->client, n->path, n->czxid, node_on_removed, n);
}

/* ---- what comes next ------------------------------------------------------------------------- */

static clave_err node_ask(clave_async_persistent_node *n)
{
    if (n->need == NEED_LOOK)
        return node_look(n);
    if (n->need == NEED_CREATE)
        return node_create(n);
    if (n->need == NEED_REPLACE)
        return node_replace(n);
    if (n->written < n->wanted)
        return node_set(n);
    return node_do_touch(n);
}

static bool node_has_to_ask(const clave_async_persistent_node *n)
{
    bool keeps = n->mine && (n->written < n->wanted || n->touch_due);
    return !n->stuck && (n->need != NEED_NOTHING || keeps);
}

/* The only place that asks the server: sends the next request, unless one is under way or has to
 * wait. */
static void node_go(clave_async_persistent_node *n)
{
    if (n->asking || n->over || n->pause.armed || (!n->closing && !node_has_to_ask(n)))
        return;
    n->asking = true; /* the request may end inside this call */
    n->sent = n->wanted;
    n->refs++;
    clave_err err = n->closing ? node_leave(n) : node_ask(n);
    if (err == CLAVE_OK && !n->over)
        return;
    n->asking = false;
    if (err == CLAVE_ENOMEM && n->closing)
        node_pause(n, PAUSE_MS);
    else if (err != CLAVE_OK && n->closing)
        node_finish(n, err);
    else if (err != CLAVE_OK)
        node_trouble(n, err);
    node_drop(n);
}

static void node_on_pause(struct timer *t, int64_t now)
{
    clave_async_persistent_node *n = LIST_ENTRY(t, struct clave_async_persistent_node, pause);
    (void)now;
    node_go(n);
    node_drop(n);
}

static void node_on_event(clave_async_client *c, clave_async_watch *w, const clave_event *ev,
                          void *arg)
{
    clave_async_persistent_node *n = arg;
    (void)c;
    (void)w;
    if (ev->type == CLAVE_EVENT_LOST || n->closing)
        return; /* the state tells that the session is lost */
    n->refs++;
    if (ev->type == CLAVE_EVENT_DELETED)
        node_is_gone(n);
    else if (n->need == NEED_NOTHING)
        n->need = NEED_LOOK;
    node_go(n);
    node_drop(n);
}

static void node_on_state(struct listener *l, clave_state state, clave_err why)
{
    clave_async_persistent_node *n = LIST_ENTRY(l, struct clave_async_persistent_node, listener);
    (void)why;
    n->refs++;
    if (state == CLAVE_STATE_CLOSED || state == CLAVE_STATE_CONNECTED ||
        state == CLAVE_STATE_RECONNECTED)
        node_end_pause(n);
    if (state == CLAVE_STATE_LOST && node_is_ephemeral(n)) {
        n->mine = false;
        node_tell_absent(n, CLAVE_EEXPIRED);
    } else if (state == CLAVE_STATE_CLOSED) {
        n->over = true;
        node_tell_absent(n, CLAVE_ECLOSED);
        node_tell_writers(n, CLAVE_ECLOSED);
        if (!n->asking)
            node_finish(n, CLAVE_ECLOSED);
    } else if (state == CLAVE_STATE_CONNECTED || state == CLAVE_STATE_RECONNECTED) {
        n->stuck = false;
        node_note_session(n);
        if (n->need == NEED_NOTHING)
            n->need = NEED_LOOK;
        node_go(n);
    }
    node_drop(n);
}

/* ---- the calls ------------------------------------------------------------------------------- */

static void node_on_leave(struct client_task *t)
{
    clave_async_persistent_node *n = LIST_ENTRY(t, struct clave_async_persistent_node, leave);
    n->refs++;
    node_end_pause(n);
    node_tell_writers(n, CLAVE_ECANCELED);
    if (n->over && !n->asking)
        node_finish(n, CLAVE_ECLOSED);
    else
        node_go(n);
    node_drop(n);
}

clave_err clave_async_persistent_node_close(clave_async_persistent_node *n,
                                            clave_async_persistent_node_cb *cb, void *arg)
{
    if (n->closing)
        return CLAVE_EINVAL;
    if (n->over)
        return CLAVE_ECLOSED;
    n->closing = n->removes = true;
    n->close_cb = cb;
    n->close_arg = arg;
    clave__client_later(n->client, &n->leave);
    return CLAVE_OK;
}

void clave_async_persistent_node_free(clave_async_persistent_node *n)
{
    if (!n)
        return;
    n->closing = n->freed = true;
    n->close_cb = NULL;
    for (struct list *e = n->writers.next; e != &n->writers; e = e->next)
        LIST_ENTRY(e, struct node_writer, link)->cb = NULL;
    list_remove(&n->leave.link);
    clave__client_timer_clear(n->client, &n->touch_timer);
    node_end_pause(n);
    clave_async_watch_free(n->watch);
    n->watch = NULL;
    node_go(n);
    node_drop(n);
}

clave_err clave_async_persistent_node_set(clave_async_persistent_node *n, const void *data,
                                          size_t len, clave_async_persistent_node_cb *cb, void *arg)
{
    struct node_data copy;
    if (n->closing)
        return CLAVE_EINVAL;
    if (n->over)
        return CLAVE_ECLOSED;
    struct node_writer *w = clave__mem_zalloc(n->mem, sizeof *w);
    if (!w)
        return CLAVE_ENOMEM;
    clave_err err = node_copy_data(n, data, len, &copy);
    if (err != CLAVE_OK) {
        clave__mem_free(n->mem, w);
        return err;
    }
    clave__mem_free(n->mem, n->data.bytes);
    n->data = copy;
    *w = (struct node_writer){.generation = ++n->wanted, .cb = cb, .arg = arg};
    list_push_back(&n->writers, &w->link);
    node_go(n);
    return CLAVE_OK;
}

bool clave_async_persistent_node_is_present(const clave_async_persistent_node *n)
{
    return n->told != 0 && !n->closing;
}

const char *clave_async_persistent_node_path(const clave_async_persistent_node *n)
{
    return n->path;
}

static clave_err node_fill(clave_async_persistent_node *n, const char *path,
                           const clave_persistent_node_options *o)
{
    n->path = clave__mem_strdup(n->mem, path);
    clave_err err = n->path ? node_copy_data(n, o->data, o->len, &n->data) : CLAVE_ENOMEM;
    if (err == CLAVE_OK && o->acls) {
        n->acls = clave__mem_alloc(n->mem, clave__acls_size(o->acls, o->nacls));
        n->nacls = o->nacls;
        err = n->acls ? CLAVE_OK : CLAVE_ENOMEM;
        if (n->acls)
            clave__acls_copy(n->acls, o->acls, o->nacls);
    }
    if (err == CLAVE_OK && o->kind == CLAVE_KEPT_TTL) {
        n->touch = clave__path_child(n->mem, path, "touch");
        err = n->touch ? CLAVE_OK : CLAVE_ENOMEM;
    }
    return err == CLAVE_OK ? clave_async_watch_new(&n->watch, n->client, node_on_event, n) : err;
}

static bool node_options_ok(const clave_persistent_node_options *o)
{
    return (unsigned)o->kind <= CLAVE_KEPT_TTL && (o->kind == CLAVE_KEPT_TTL) == (o->ttl_ms > 0) &&
           o->ttl_ms >= 0 && (!o->acls || o->nacls > 0) && (o->data || o->len == 0);
}

clave_err clave_async_persistent_node_new(clave_async_persistent_node **out, clave_async_client *c,
                                          const char *path,
                                          const clave_persistent_node_options *given)
{
    clave_persistent_node_options o;
    *out = NULL;
    clave_err err =
        clave__client_take_options(c, &o, sizeof o, given, "clave_persistent_node_options");
    if (err == CLAVE_OK && !node_options_ok(&o))
        err = CLAVE_EINVAL;
    if (err != CLAVE_OK)
        return err;
    bool sequential = o.kind == CLAVE_KEPT_EPHEMERAL_SEQUENTIAL;
    const char *fault = clave__path_fault(path, strlen(path), sequential);
    if (fault || strcmp(path, "/") == 0) {
        clave__client_fault(c, "the node's path \"%s\" %s", path,
                            fault ? fault : "is the root, which is always there");
        return CLAVE_EPATH;
    }
    clave_async_persistent_node *n = clave__mem_zalloc(clave__client_mem(c), sizeof *n);
    if (!n)
        return CLAVE_ENOMEM;
    *n = (clave_async_persistent_node){.client = c,
                                       .mem = clave__client_mem(c),
                                       .kind = o.kind,
                                       .named = !sequential,
                                       .ttl_ms = o.ttl_ms,
                                       .replace = o.replace,
                                       .wanted = 1,
                                       .need = NEED_CREATE,
                                       .event_cb = o.event_cb,
                                       .event_arg = o.event_arg,
                                       .listener = {.on_state = node_on_state},
                                       .leave = {.run = node_on_leave},
                                       .refs = 1};
    list_init(&n->writers);
    list_init(&n->listener.link);
    list_init(&n->leave.link);
    clave__timer_init(&n->pause, node_on_pause);
    clave__timer_init(&n->touch_timer, node_on_touch_timer);
    clave__client_ref(c);
    n->session = clave_async_client_session_id(c);
    err = node_fill(n, path, &o);
    if (err == CLAVE_OK)
        node_go(n);
    if (err == CLAVE_OK && n->over)
        err = CLAVE_ECLOSED;
    if (err != CLAVE_OK) {
        n->over = true;
        clave_async_persistent_node_free(n);
        return err;
    }
    clave__client_listen(c, &n->listener);
    *out = n;
    return CLAVE_OK;
}
