/* client_watch.c - the registry of watches: which are armed at the server, which events they get,
 * and the setWatches that register them again on a new connection. pipeline.c reports when a
 * request that sets a watch was sent and answered, driver_calls.c passes in the events.
 *
 * A watch is idle, asked (its request is under way) or armed. Servers forget a client's watches
 * with the connection, so on the next one they are owed and are registered again before any
 * request: one-shot watches with setWatches, which every server knows, then persistent ones with
 * setWatches2, which servers before 3.6 refuse. The end of a session takes all watches with it;
 * their users get a LOST event.
 *
 * What must stay true: client_watch_enter is the only function that changes the phase; a watch that
 * is not idle is in the map, and an armed one is in exactly one list. */
#include <assert.h>
#include <string.h>

#include "client/client_internal.h"
#include "client/client_watch.h"
#include "client/request/client_request.h"
#include "wire/opcode.h"

clave_err clave__client_watches_init(struct watches *w, const struct clave_mem *mem, uint64_t seed)
{
    list_init(&w->armed);
    list_init(&w->owed);
    list_init(&w->owed_persistent);
    list_init(&w->firing);
    return clave__map_init(&w->by_path, mem, seed);
}

void clave__client_watches_fini(struct watches *w)
{
    assert(list_empty(&w->armed) && list_empty(&w->owed) && list_empty(&w->owed_persistent));
    clave__map_fini(&w->by_path);
}

/* ---- the map, in which several watches may share a path -------------------------------------- */

static bool watch_path_eq(const struct map_node *node, const void *key)
{
    const struct clave_async_watch *w =
        (const void *)((const char *)node - offsetof(struct clave_async_watch, node));
    struct jbytes path = *(const struct jbytes *)key;
    return strlen(w->path) == (size_t)path.n && memcmp(w->path, path.p, (size_t)path.n) == 0;
}

static clave_async_watch *watch_next_match(struct map_node *n, uint32_t hash, struct jbytes path)
{
    while (n && !(n->hash == hash && watch_path_eq(n, &path)))
        n = n->next;
    return n ? MAP_ENTRY(n, clave_async_watch, node) : NULL;
}

static clave_async_watch *watch_first_match(struct watches *ws, uint32_t hash, struct jbytes path)
{
    struct map_node *n = clave__map_find(&ws->by_path, hash, watch_path_eq, &path);
    return n ? MAP_ENTRY(n, clave_async_watch, node) : NULL;
}

static bool watch_is_persistent(const clave_async_watch *w)
{
    return w->kind >= WATCH_PERSISTENT;
}

/* True if the entry at the server that serves `w` also serves `o`. A server before 3.9 has a single
 * entry for a path, whatever was set there, so removing the one-shot watch would remove the
 * persistent one. */
static bool watch_is_entry_of(const clave_async_watch *w, const clave_async_watch *o)
{
    if (watch_is_persistent(w))
        return o->kind == w->kind;
    return watch_is_persistent(o) || (o->kind == WATCH_CHILD) == (w->kind == WATCH_CHILD);
}

/* The type with which removeWatches removes this watch and no other one of this client; 0: there is
 * none. If only a watch that is still ASKED needs the server's entry, the request of that watch
 * will remove the entry in case it arms nothing. Servers before 3.9 do not know the types of
 * persistent watches. */
static int32_t watch_remove_type(const clave_async_watch *w)
{
    static const int32_t types[WATCH_KINDS] = {WATCHER_DATA, WATCHER_DATA, WATCHER_CHILDREN,
                                               WATCHER_PERSISTENT, WATCHER_PERSISTENT_RECURSIVE};
    struct watches *ws = &w->client->watches;
    struct jbytes path = clave__jbytes(w->path);
    uint32_t hash = w->node.hash;
    bool is_alone = true;
    struct request *heir = NULL;
    for (clave_async_watch *o = watch_first_match(ws, hash, path); o;
         o = watch_next_match(o->node.next, hash, path)) {
        bool shares = o != w && watch_is_entry_of(w, o);
        if (shares && o->phase == WATCH_ARMED)
            return 0;
        if (shares)
            heir = o->request;
        is_alone = is_alone && o == w;
    }
    if (heir) {
        heir->watch_heir = true;
        return 0;
    }
    return watch_is_persistent(w) && is_alone ? WATCHER_ANY : types[w->kind];
}

/* ---- phases ---------------------------------------------------------------------------------- */

static void client_watch_enter(clave_async_watch *w, enum watch_phase phase)
{
    assert(phase != WATCH_ASKED || w->phase == WATCH_IDLE);
    assert(phase != WATCH_ARMED || w->phase == WATCH_ASKED);
    struct watches *ws = &w->client->watches;
    bool was_idle = w->phase == WATCH_IDLE, is_idle = phase == WATCH_IDLE;
    if (w->phase == WATCH_ARMED)
        list_remove(&w->link);
    if (w->kind == WATCH_RECURSIVE)
        ws->recursive += (size_t)was_idle - (size_t)is_idle;
    if (was_idle && !is_idle)
        clave__map_insert(&ws->by_path, &w->node,
                          clave__map_hash_bytes(&ws->by_path, w->path, strlen(w->path)));
    if (!was_idle && is_idle)
        clave__map_remove(&ws->by_path, &w->node);
    if (phase == WATCH_ARMED) {
        list_remove(&w->link);
        list_push_back(&ws->armed, &w->link);
    }
    if (phase != WATCH_ASKED)
        w->request = NULL;
    w->phase = phase;
}

clave_err clave__client_watch_prepare(clave_async_watch *w, const char *path, enum watch_kind kind)
{
    size_t need = strlen(path) + 1;
    bool event_waits = !list_empty(&w->link);
    if (w->phase != WATCH_IDLE || event_waits)
        return CLAVE_EINVAL;
    if (need > w->path_cap) {
        char *grown = clave__mem_realloc(&w->client->base.mem, w->path, need);
        if (!grown)
            return CLAVE_ENOMEM;
        w->path = grown;
        w->path_cap = need;
    }
    memcpy(w->path, path, need);
    w->kind = kind;
    return CLAVE_OK;
}

void clave__client_watch_asked(clave_async_watch *w, struct request *r)
{
    client_watch_enter(w, WATCH_ASKED);
    w->request = r;
    r->watch = w;
    r->watch_kind = w->kind;
}

/* ---- disarming ------------------------------------------------------------------------------- */

/* Asks the server to forget a watch, as well as possible: without memory or a connection, its entry
 * stays until its event, which the client then ignores, or, for a persistent watch, until the
 * connection ends. */
static void client_watch_send_remove(clave_async_client *c, const char *path, int32_t type)
{
    struct request *r;
    struct jbytes full;
    if (type == 0 || !clave__link_is_open(&c->link) || clave__full_path(c, path, &full) != CLAVE_OK)
        return;
    union wire_body body = {.typed = {.path = full, .type = type}};
    struct request_spec spec = {.again = AGAIN_NEVER, .op = OP_REMOVE_WATCHES, .path = path};
    if (clave__request_new(c, &spec, &body, &r) != CLAVE_OK)
        return;
    r->quiet = true;
    list_push_back(&c->pipeline.unsent, &r->link);
}

/* Makes the server forget an idle watch. While there was a persistent watch on the same path,
 * disarmed ones were left to the server (watch_remove_type); they go together with the persistent
 * one. */
static void client_watch_forget(clave_async_client *c, char *path, enum watch_kind kind)
{
    static const enum watch_kind beside[] = {WATCH_DATA, WATCH_CHILD};
    clave_async_watch gone = {.client = c, .path = path, .kind = kind};
    gone.node.hash = clave__map_hash_bytes(&c->watches.by_path, path, strlen(path));
    int32_t type = watch_remove_type(&gone);
    client_watch_send_remove(c, path, type);
    if (!watch_is_persistent(&gone) || type == 0 || type == WATCHER_ANY)
        return;
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        gone.kind = beside[i];
        client_watch_send_remove(c, path, watch_remove_type(&gone));
    }
}

bool clave__client_watch_disarm(clave_async_watch *w)
{
    if (w->phase == WATCH_IDLE) {
        list_remove(&w->link); /* its event may be pending */
        return false;
    }
    if (w->phase == WATCH_ASKED) {
        w->request->watch = NULL;
        w->request->watch_freed = true;
        client_watch_enter(w, WATCH_IDLE);
        return false;
    }
    client_watch_enter(w, WATCH_IDLE);
    client_watch_forget(w->client, w->path, w->kind);
    return true;
}

bool clave__client_watch_answered(struct request *r, clave_err err)
{
    bool exist = err == CLAVE_ENONODE && (clave__opcode(r->op)->flags & OPCODE_WATCH_ABSENT);
    bool armed = err == CLAVE_OK || exist;
    clave_async_watch *w = r->watch;
    r->watch = NULL;
    if (w) {
        if (exist)
            w->kind = WATCH_EXIST;
        client_watch_enter(w, armed ? WATCH_ARMED : WATCH_IDLE);
    }
    bool is_left = (r->watch_heir || (r->watch_freed && armed)) && !(w && armed);
    if (is_left)
        client_watch_forget(r->client, r->path, r->watch_kind);
    return is_left;
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool watch_concerns(int32_t type, enum watch_kind kind)
{
    switch (type) {
    case EVENT_CREATED:
    case EVENT_DATA_CHANGED:
        return kind != WATCH_CHILD;
    case EVENT_DELETED:
        return true;
    case EVENT_CHILDREN_CHANGED:
        return kind == WATCH_CHILD || kind == WATCH_PERSISTENT;
    default:
        return false;
    }
}

/* Moves every armed watch on this path that the event is for to `firing`, and makes the one-shot
 * ones idle. `below`: the event is for a node below this path. */
static void client_watch_collect(clave_async_client *c, int32_t type, struct jbytes path,
                                 bool below)
{
    struct watches *ws = &c->watches;
    uint32_t hash = clave__map_hash_bytes(&ws->by_path, path.p, (size_t)path.n);
    clave_async_watch *w = watch_first_match(ws, hash, path);
    while (w) {
        clave_async_watch *next = watch_next_match(w->node.next, hash, path);
        bool is_near = !below || w->kind == WATCH_RECURSIVE;
        if (w->phase == WATCH_ARMED && is_near && watch_concerns(type, w->kind)) {
            if (watch_is_persistent(w))
                list_remove(&w->link);
            else
                client_watch_enter(w, WATCH_IDLE);
            list_push_back(&ws->firing, &w->link);
        }
        w = next;
    }
}

/* Does the same for all paths above. */
static void client_watch_collect_above(clave_async_client *c, int32_t type, struct jbytes path)
{
    bool is_root = path.n <= 1;
    while (!is_root && c->watches.recursive > 0) {
        do
            path.n--;
        while (path.n > 0 && path.p[path.n] != '/');
        is_root = path.n <= 0;
        client_watch_collect(c, type, is_root ? clave__jbytes("/") : path, true);
    }
}

/* Runs the callback. The event keeps its own copy of the path, since the callback may use the watch
 * for another path or free it. */
static void client_watch_fire(clave_async_watch *w, clave_event_type type)
{
    assert(w->phase == WATCH_IDLE && w->path);
    clave_async_client *c = w->client;
    char *path = w->path;
    clave_event ev = {.type = type, .path = path, .connection = c->link.connections};
    w->path = NULL;
    w->path_cap = 0;
    w->cb(c, w, &ev, w->arg);
    clave__mem_free(&c->base.mem, path);
}

/* The path of an event as a string, valid until the next frame. NULL: no memory. */
static const char *client_watch_event_path(clave_async_client *c, struct jbytes path)
{
    clave__buf_clear(&c->decoded);
    if (clave__buf_append(&c->decoded, path.p, (size_t)path.n) != CLAVE_OK ||
        clave__buf_append(&c->decoded, "", 1) != CLAVE_OK)
        return NULL;
    return (const char *)clave__buf_bytes(&c->decoded);
}

clave_err clave__client_watch_event(clave_async_client *c, const struct wire_event *wire)
{
    struct watches *ws = &c->watches;
    struct jbytes path = clave__strip_chroot(c, wire->path);
    ws->events++;
    if (path.n < 0)
        return CLAVE_OK;
    clave_event ev = {.type = (clave_event_type)wire->type, .connection = c->link.connections};
    ev.path = client_watch_event_path(c, path);
    if (!ev.path)
        return CLAVE_ENOMEM;
    client_watch_collect(c, wire->type, path, false);
    client_watch_collect_above(c, wire->type, path);
    for (struct list *l; (l = list_pop_front(&ws->firing));) {
        clave_async_watch *w = LIST_ENTRY(l, clave_async_watch, link);
        if (w->phase == WATCH_ARMED) {
            list_push_back(&ws->armed, l);
            w->cb(c, w, &ev, w->arg);
        } else {
            client_watch_fire(w, ev.type);
        }
    }
    return CLAVE_OK;
}

/* ---- the end of a session -------------------------------------------------------------------- */

void clave__client_watches_lose(clave_async_client *c, bool persistent_only)
{
    struct watches *ws = &c->watches;
    struct list *const lists[] = {&ws->armed, &ws->owed, &ws->owed_persistent, &ws->firing};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (struct list *l = lists[i]->next, *next; l != lists[i]; l = next) {
            clave_async_watch *w = LIST_ENTRY(l, clave_async_watch, link);
            next = l->next;
            if (w->phase != WATCH_ARMED || (persistent_only && !watch_is_persistent(w)))
                continue;
            client_watch_enter(w, WATCH_IDLE);
            list_push_back(&c->deliveries.lost, &w->link);
        }
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

/* ---- setWatches on a new connection ---------------------------------------------------------- */

/* Like those of Apache's client, a setWatches is not longer than this, however many watches there
 * are. */
enum { SET_WATCHES_BYTES = 128 * 1024 };

/* Makes all armed watches owed to the new connection; see the top of the file. */
void clave__client_watches_attached(clave_async_client *c)
{
    struct watches *ws = &c->watches;
    struct list all, *l;
    list_init(&all);
    list_splice(&all, &ws->owed);
    list_splice(&all, &ws->owed_persistent);
    list_splice(&all, &ws->armed);
    while ((l = list_pop_front(&all))) {
        bool stays = LIST_ENTRY(l, clave_async_watch, link)->kind >= WATCH_PERSISTENT;
        list_push_back(stays ? &ws->owed_persistent : &ws->owed, l);
    }
    ws->owed_since = c->session.last_zxid;
    ws->unanswered = ws->unanswered_persistent = 0;
}

bool clave__client_watches_answered(clave_async_client *c, bool *persistent)
{
    struct watches *ws = &c->watches;
    bool asked = ws->unanswered > 0;
    *persistent = asked && ws->unanswered == ws->unanswered_persistent;
    ws->unanswered -= asked;
    ws->unanswered_persistent -= *persistent;
    return asked;
}

/* Appends the paths of one kind, from the head of a list up to `end`, to c->encode as a vector. */
static struct jvec set_watches_paths_of_kind(clave_async_client *c, enum watch_kind kind,
                                             const struct list *head, const struct list *end)
{
    struct jwriter w = clave__jwriter(&c->encode);
    struct jvec v = {0};
    size_t at = clave__buf_len(&c->encode);
    for (struct list *l = head->next; l != end; l = l->next) {
        const clave_async_watch *watch = LIST_ENTRY(l, clave_async_watch, link);
        struct jbytes full;
        if (watch->kind != kind)
            continue;
        if (clave__full_path(c, watch->path, &full) != CLAVE_OK)
            w.err = CLAVE_ENOMEM;
        clave__jput_bytes(&w, full);
        v.count++;
    }
    v.n = clave__buf_len(&c->encode) - at;
    if (w.err)
        v.count = -1;
    return v;
}

/* The end of the part of a list that fits into one setWatches: bounded in bytes, but never
 * empty. */
static struct list *set_watches_end(const clave_async_client *c, const struct list *head)
{
    size_t bytes = 0;
    struct list *l = head->next;
    do {
        bytes += strlen(LIST_ENTRY(l, clave_async_watch, link)->path) + c->hosts.chroot_len + 4;
        l = l->next;
    } while (l != head && bytes < SET_WATCHES_BYTES);
    return l;
}

/* Encodes the paths of these watches into c->encode, one vector for each kind. */
static clave_err set_watches_put_paths(clave_async_client *c, const struct list *head,
                                       const struct list *end, struct jvec v[WATCH_KINDS])
{
    clave__buf_clear(&c->encode);
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        v[kind] = set_watches_paths_of_kind(c, (enum watch_kind)kind, head, end);
        if (v[kind].count < 0)
            return CLAVE_ENOMEM;
    }
    const uint8_t *at = clave__buf_bytes(&c->encode); /* the buffer does not move any more */
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        v[kind].p = at;
        at += v[kind].n;
    }
    return CLAVE_OK;
}

clave_err clave__client_watches_fill(clave_async_client *c)
{
    struct watches *ws = &c->watches;
    struct jvec v[WATCH_KINDS];
    bool persistent = list_empty(&ws->owed);
    struct list *owed = persistent ? &ws->owed_persistent : &ws->owed;
    if (list_empty(owed))
        return CLAVE_OK;
    struct list *end = set_watches_end(c, owed);
    clave_err err = set_watches_put_paths(c, owed, end, v);
    struct wire_request q = {
        .xid = XID_SET_WATCHES,
        .op = persistent ? OP_SET_WATCHES2 : OP_SET_WATCHES,
        .body.watches = {.relative_zxid = ws->owed_since,
                         .data = v[WATCH_DATA],
                         .exist = v[WATCH_EXIST],
                         .child = v[WATCH_CHILD],
                         .persistent = v[WATCH_PERSISTENT],
                         .persistent_recursive = v[WATCH_RECURSIVE]},
    };
    if (err == CLAVE_OK)
        err = clave__unqueued_request_put(c, &q);
    if (err)
        return err;
    ws->unanswered++;
    ws->unanswered_persistent += persistent;
    while (owed->next != end) {
        struct list *l = owed->next;
        list_remove(l);
        list_push_back(&ws->armed, l);
    }
    return CLAVE_OK;
}
