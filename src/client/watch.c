/* watch.c - the client's watches: the registry of watch.h and the public clave_async_watch calls.
 * request.c reports when a watch is asked for and answered, link.c passes events, session.c says
 * when all are owed again or lost. client_watch_enter is the only function that changes a watch's
 * phase: a watch is in the map exactly while it is not IDLE. */
#include "client/watch.h"

#include <string.h>

#include "client/engine.h"
#include "wire/opcode.h"

/* As in Apache's client, no setWatches is longer than this, however many watches there are. */
enum { SET_WATCHES_BYTES = 128 * 1024 };

clave_err clave__client_watches_init(struct watches *w, const struct clave_mem *mem, uint64_t seed)
{
    list_init(&w->armed);
    list_init(&w->owed);
    return clave__map_init(&w->by_path, mem, seed);
}

void clave__client_watches_fini(struct watches *w)
{
    clave__map_fini(&w->by_path);
}

/* ---- the map: several watches may have one path ---------------------------------------------- */

static bool path_eq(const struct map_node *node, const void *key)
{
    const struct clave_async_watch *w =
        (const void *)((const char *)node - offsetof(struct clave_async_watch, node));
    struct jbytes path = *(const struct jbytes *)key;
    return strlen(w->path) == (size_t)path.n && memcmp(w->path, path.p, (size_t)path.n) == 0;
}

static clave_async_watch *next_match(struct map_node *n, uint32_t hash, struct jbytes path)
{
    while (n && !(n->hash == hash && path_eq(n, &path)))
        n = n->next;
    return n ? MAP_ENTRY(n, clave_async_watch, node) : NULL;
}

static clave_async_watch *first_match(struct watches *ws, uint32_t hash, struct jbytes path)
{
    struct map_node *n = clave__map_find(&ws->by_path, hash, path_eq, &path);
    return n ? MAP_ENTRY(n, clave_async_watch, node) : NULL;
}

/* Does another watch rely on the server's entry that serves this one? */
static bool is_shared(const clave_async_watch *w)
{
    struct watches *ws = &w->client->watches;
    struct jbytes path = clave__jbytes(w->path);
    uint32_t hash = w->node.hash;
    for (clave_async_watch *o = first_match(ws, hash, path); o;
         o = next_match(o->node.next, hash, path))
        if (o != w && (o->kind == WATCH_CHILD) == (w->kind == WATCH_CHILD))
            return true;
    return false;
}

/* ---- phases ---------------------------------------------------------------------------------- */

static void client_watch_enter(clave_async_watch *w, enum watch_phase phase)
{
    struct watches *ws = &w->client->watches;
    if (w->phase == WATCH_ARMED)
        list_remove(&w->link);
    if (w->phase == WATCH_IDLE && phase != WATCH_IDLE)
        clave__map_insert(&ws->by_path, &w->node,
                          clave__map_hash_bytes(&ws->by_path, w->path, strlen(w->path)));
    if (w->phase != WATCH_IDLE && phase == WATCH_IDLE)
        clave__map_remove(&ws->by_path, &w->node);
    if (phase == WATCH_ARMED) {
        list_remove(&w->link);
        list_push_back(&ws->armed, &w->link);
    }
    if (phase != WATCH_ASKED)
        w->request = NULL;
    w->phase = phase;
}

clave_err clave__client_watch_prepare(clave_async_watch *w, const char *path)
{
    size_t need = strlen(path) + 1;
    bool event_waits = !list_empty(&w->link);
    if (w->phase != WATCH_IDLE || event_waits)
        return CLAVE_EINVAL;
    if (need > w->path_cap) {
        char *grown = clave__mem_realloc(&w->client->mem, w->path, need);
        if (!grown)
            return CLAVE_ENOMEM;
        w->path = grown;
        w->path_cap = need;
    }
    memcpy(w->path, path, need);
    return CLAVE_OK;
}

static enum watch_kind kind_of_op(int32_t op)
{
    return clave__opcode(op)->flags & OPCODE_WATCH_CHILD ? WATCH_CHILD : WATCH_DATA;
}

void clave__client_watch_asked(clave_async_watch *w, struct request *r)
{
    w->kind = kind_of_op(r->op);
    client_watch_enter(w, WATCH_ASKED);
    w->request = r;
    r->watch = w;
}

/* ---- disarming ------------------------------------------------------------------------------- */

/* Best effort: without memory or a connection the entry stays at the server until its event, which
 * the client then ignores. */
static void send_remove_watches(clave_async_client *c, const char *path, bool child)
{
    struct request *r;
    struct jbytes full;
    if (!clave__link_is_open(&c->link) || clave__full_path(c, path, &full) != CLAVE_OK)
        return;
    union wire_body body = {
        .typed = {.path = full, .type = child ? WATCHER_CHILDREN : WATCHER_DATA}};
    struct request_spec spec = {.again = AGAIN_NEVER, .op = OP_REMOVE_WATCHES, .path = path};
    if (clave__request_new(c, &spec, &body, &r) != CLAVE_OK)
        return;
    r->quiet = true;
    clave__pipeline_submit(c, r);
}

void clave_async_watch_disarm(clave_async_watch *w)
{
    if (w->phase == WATCH_IDLE) {
        list_remove(&w->link); /* its event may be pending */
        return;
    }
    if (w->phase == WATCH_ASKED) {
        w->request->watch = NULL;
        w->request->watch_freed = true;
        client_watch_enter(w, WATCH_IDLE);
        return;
    }
    bool tell = !is_shared(w);
    client_watch_enter(w, WATCH_IDLE);
    if (tell)
        send_remove_watches(w->client, w->path, w->kind == WATCH_CHILD);
}

void clave__client_watch_answered(struct request *r, clave_err err)
{
    bool exist = err == CLAVE_ENONODE && (clave__opcode(r->op)->flags & OPCODE_WATCH_ABSENT);
    bool armed = err == CLAVE_OK || exist;
    clave_async_watch *w = r->watch;
    r->watch = NULL;
    if (w) {
        if (exist)
            w->kind = WATCH_EXIST;
        client_watch_enter(w, armed ? WATCH_ARMED : WATCH_IDLE);
        return;
    }
    if (!r->watch_freed || !armed)
        return;
    clave_async_watch gone = {.client = r->client, .path = r->path, .kind = kind_of_op(r->op)};
    gone.node.hash = clave__map_hash_bytes(&r->client->watches.by_path, r->path, strlen(r->path));
    if (!is_shared(&gone))
        send_remove_watches(r->client, r->path, gone.kind == WATCH_CHILD);
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool concerns(int32_t type, enum watch_kind kind)
{
    switch (type) {
    case EVENT_CREATED:
    case EVENT_DATA_CHANGED:
        return kind != WATCH_CHILD;
    case EVENT_DELETED:
        return true;
    case EVENT_CHILDREN_CHANGED:
        return kind == WATCH_CHILD;
    default:
        return false;
    }
}

/* Makes every armed watch that the event is for idle and moves it to `fired`. */
static void client_watch_collect(clave_async_client *c, int32_t type, struct jbytes path,
                                 struct list *fired)
{
    uint32_t hash = clave__map_hash_bytes(&c->watches.by_path, path.p, (size_t)path.n);
    clave_async_watch *w = first_match(&c->watches, hash, path);
    while (w) {
        clave_async_watch *next = next_match(w->node.next, hash, path);
        if (w->phase == WATCH_ARMED && concerns(type, w->kind)) {
            client_watch_enter(w, WATCH_IDLE);
            list_push_back(fired, &w->link);
        }
        w = next;
    }
}

/* The event takes the path along: its callback may use the watch for another path, or free it. */
static void client_watch_fire(clave_async_watch *w, clave_event_type type)
{
    clave_async_client *c = w->client;
    char *path = w->path;
    clave_event ev = {.type = type, .path = path, .connection = c->link.connections};
    w->path = NULL;
    w->path_cap = 0;
    w->cb(c, w, &ev, w->arg);
    clave__mem_free(&c->mem, path);
}

void clave__client_watch_event(clave_async_client *c, const struct wire_event *ev)
{
    struct list fired;
    struct jbytes path = clave__strip_chroot(c, ev->path);
    list_init(&fired);
    c->watches.events++;
    if (path.n >= 0)
        client_watch_collect(c, ev->type, path, &fired);
    for (struct list *l; (l = list_pop_front(&fired));)
        client_watch_fire(LIST_ENTRY(l, clave_async_watch, link), (clave_event_type)ev->type);
}

/* ---- connections and sessions ---------------------------------------------------------------- */

void clave__client_watches_attached(clave_async_client *c)
{
    struct watches *ws = &c->watches;
    list_splice(&ws->owed, &ws->armed);
    ws->owed_since = c->session.last_zxid;
    ws->unanswered = 0;
}

bool clave__client_watches_settled(const clave_async_client *c)
{
    return list_empty(&c->watches.owed) && c->watches.unanswered == 0;
}

bool clave__client_watches_answered(clave_async_client *c)
{
    bool asked = c->watches.unanswered > 0;
    c->watches.unanswered -= asked;
    return asked;
}

/* Appends the paths of one kind, from the head of `owed` up to `end`, to c->encode as one vector.
 */
static struct jvec paths_of_kind(clave_async_client *c, enum watch_kind kind,
                                 const struct list *end, size_t *at)
{
    struct jwriter w = clave__jwriter(&c->encode);
    struct jvec v = {0};
    *at = clave__buf_len(&c->encode);
    for (struct list *l = c->watches.owed.next; l != end; l = l->next) {
        const clave_async_watch *watch = LIST_ENTRY(l, clave_async_watch, link);
        struct jbytes full;
        if (watch->kind != kind)
            continue;
        if (clave__full_path(c, watch->path, &full) != CLAVE_OK)
            w.err = CLAVE_ENOMEM;
        clave__jput_bytes(&w, full);
        v.count++;
    }
    v.n = clave__buf_len(&c->encode) - *at;
    if (w.err)
        v.count = -1;
    return v;
}

/* Where the part of `owed` that fits in one setWatches ends: bounded in bytes, never empty. */
static struct list *set_watches_end(clave_async_client *c)
{
    struct watches *ws = &c->watches;
    size_t bytes = 0;
    struct list *l = ws->owed.next;
    do {
        bytes += strlen(LIST_ENTRY(l, clave_async_watch, link)->path) + c->hosts.chroot_len + 4;
        l = l->next;
    } while (l != &ws->owed && bytes < SET_WATCHES_BYTES);
    return l;
}

clave_err clave__client_watches_fill(clave_async_client *c)
{
    struct watches *ws = &c->watches;
    struct jvec v[3];
    size_t at[3];
    if (list_empty(&ws->owed))
        return CLAVE_OK;
    struct list *end = set_watches_end(c);
    clave__buf_clear(&c->encode);
    for (int kind = WATCH_DATA; kind <= WATCH_CHILD; kind++) {
        v[kind] = paths_of_kind(c, (enum watch_kind)kind, end, &at[kind]);
        if (v[kind].count < 0)
            return CLAVE_ENOMEM;
    }
    for (int kind = WATCH_DATA; kind <= WATCH_CHILD; kind++) /* the buffer no longer moves */
        v[kind].p = clave__buf_bytes(&c->encode) + at[kind];
    struct wire_request q = {
        .xid = XID_SET_WATCHES,
        .op = OP_SET_WATCHES,
        .body.watches = {.relative_zxid = ws->owed_since,
                         .data = v[WATCH_DATA],
                         .exist = v[WATCH_EXIST],
                         .child = v[WATCH_CHILD]},
    };
    clave_err err = clave__pipeline_put(c, &q);
    if (err)
        return err;
    ws->unanswered++;
    while (ws->owed.next != end) {
        struct list *l = ws->owed.next;
        list_remove(l);
        list_push_back(&ws->armed, l);
    }
    return CLAVE_OK;
}

void clave__client_watches_lose(clave_async_client *c)
{
    struct watches *ws = &c->watches;
    list_splice(&ws->armed, &ws->owed);
    while (!list_empty(&ws->armed)) {
        clave_async_watch *w = LIST_ENTRY(ws->armed.next, clave_async_watch, link);
        client_watch_enter(w, WATCH_IDLE);
        list_push_back(&c->deliveries.lost, &w->link);
    }
}

bool clave__client_watches_deliver_lost(clave_async_client *c)
{
    struct list *l = list_pop_front(&c->deliveries.lost);
    if (!l)
        return false;
    client_watch_fire(LIST_ENTRY(l, clave_async_watch, link), CLAVE_EVENT_LOST);
    return true;
}

/* ---- public ---------------------------------------------------------------------------------- */

clave_err clave_async_watch_new(clave_async_watch **out, clave_async_client *c, clave_watch_cb *cb,
                                void *arg)
{
    clave_async_watch *w = clave__mem_zalloc(&c->mem, sizeof *w);
    *out = w;
    if (!w)
        return CLAVE_ENOMEM;
    list_init(&w->link);
    w->client = c;
    w->cb = cb;
    w->arg = arg;
    clave__client_ref(c);
    return CLAVE_OK;
}

void clave_async_watch_free(clave_async_watch *w)
{
    if (!w)
        return;
    clave_async_client *c = w->client;
    clave_async_watch_disarm(w);
    clave__mem_free(&c->mem, w->path);
    clave__mem_free(&c->mem, w);
    clave__client_drop(c); /* not _unref: the watch may be a recipe's, in mid-operation */
}

bool clave_async_watch_is_armed(const clave_async_watch *w)
{
    return w->phase != WATCH_IDLE;
}
