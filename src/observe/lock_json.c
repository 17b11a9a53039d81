/* lock_json.c - a lock and its places as JSON, and a number that changes whenever they do
 * (lock_json.h).
 *
 * What must stay true: whatever other clients wrote into nodes is only displayed, never trusted;
 * the JSON writer escapes it. The number does not return to an earlier value while there are
 * places: each place has a token of its own, and its version, and whether it holds and has been
 * asked to release, only ever go up. */
#include "observe/lock_json.h"

#include <stdio.h>
#include <string.h>

#include "base/hash/siphash.h"
#include "base/memory.h"
#include "base/shell_quote.h"
#include "base/time_format.h"
#include "observe/lock_who.h"
#include "recipe/queue/identity.h"
#include "recipe/queue/queue_kind.h"

/* ---- values ---------------------------------------------------------------------------------- */

void clave__lock_time_json(struct json *j, const char *key, int64_t ms)
{
    char text[RFC3339_CAP];
    clave__json_string(j, key, ms < 0 ? NULL : clave__rfc3339_format(ms, text));
}

void clave__lock_token_json(struct json *j, const char *key, int64_t token)
{
    if (token)
        clave__json_int64(j, key, token);
    else
        clave__json_string(j, key, NULL);
}

/* ---- a place --------------------------------------------------------------------------------- */

/* The role of a place. Everyone who is acquiring a semaphore's lease is waiting, although the first
 * of them holds their queue. */
static const char *lock_json_role(const struct lock_node *p)
{
    static const char *const roles[QUEUE_KINDS][2] = {
        [QUEUE_OTHER] = {"waiting", "holder"},      [QUEUE_LOCK] = {"waiting", "holder"},
        [QUEUE_READ] = {"reader", "reader"},        [QUEUE_WRITE] = {"writer", "writer"},
        [QUEUE_KAZOO_LOCK] = {"waiting", "holder"}, [QUEUE_KAZOO_READ] = {"reader", "reader"},
        [QUEUE_LATCH] = {"candidate", "leader"},    [QUEUE_LEASE] = {"waiting", "lease"},
    };
    if (p->left_over)
        return "left-over";
    if (clave__lock_acquired(p->queue))
        return "waiting";
    if (p->kept)
        return "slot";
    return clave__lock_is_outside(p) ? "outside" : roles[p->kind][p->holds];
}

const char *clave__lock_role_of_side(const struct lock_node *p)
{
    const struct lock_queue *q = p->queue;
    bool sides = q->of_kind[QUEUE_READ] + q->of_kind[QUEUE_WRITE] + q->of_kind[QUEUE_KAZOO_READ];
    bool reads = p->kind == QUEUE_READ || p->kind == QUEUE_KAZOO_READ;
    if (!sides || p->left_over || p->kind == QUEUE_LATCH || clave__lock_is_outside(p))
        return lock_json_role(p);
    if (p->holds)
        return reads ? "reader" : "writer";
    return reads ? "to-read" : "to-write";
}

/* Curator and clave both protect names with "_c_<uuid>-"; they are told apart by the version of the
 * UUID (base/rand.h). */
const char *clave__lock_client(const struct lock_node *p)
{
    enum { AT_VERSION = sizeof "_c_01234567-0123-" - 1 };
    if (p->unreadable)
        return NULL;
    if (p->data && clave__identity_is_form(p->data, p->ndata))
        return "clave";
    if (strncmp(p->name, "_c_", 3) == 0)
        return strlen(p->name) > AT_VERSION && p->name[AT_VERSION] == '8' ? "clave" : "curator";
    return clave__kazoo_is_name(p->name) ? "kazoo" : "other";
}

static void place_slot_json(struct json *j, const struct lock_node *p)
{
    char text[CLAVE_SLOT_TEXT_MAX + 1];
    clave__json_string(j, "by", clave__lock_who_field(p, "by", text));
    clave__json_string(j, "reason", clave__lock_who_field(p, "reason", text));
}

void clave__lock_place_json(struct json *j, const char *key, const struct lock_node *p)
{
    char data[LOCK_TEXT_CAP];
    clave_identity id;
    clave__lock_who_identity(p, data, &id);
    clave__json_open(j, key, '{');
    clave__json_string(j, "node", p->name);
    clave__lock_token_json(j, "token", p->token);
    if (p->session)
        clave__json_int64(j, "session", p->session->id);
    else
        clave__json_string(j, "session", NULL);
    clave__json_string(j, "role", lock_json_role(p));
    clave__json_string(j, "client", clave__lock_client(p));
    clave__json_string(j, "host", id.host);
    if (id.pid)
        clave__json_int(j, "pid", id.pid);
    else
        clave__json_string(j, "pid", NULL);
    clave__json_string(j, "name", id.name);
    clave__json_string(j, "command", id.command);
    clave__json_string(j, "text", id.text);
    clave__json_string(j, "traceparent", id.traceparent);
    if (id.revocable)
        clave__json_bool(j, "revocable", id.revocable > 0);
    else
        clave__json_string(j, "revocable", NULL);
    if (p->unreadable)
        clave__json_string(j, "asked", NULL);
    else
        clave__json_bool(j, "asked", p->asked);
    clave__lock_time_json(j, "since", p->unreadable ? -1 : p->queued);
    if (p->kept)
        place_slot_json(j, p);
    if (p->left_over)
        clave__json_bool(j, "left_over", true);
    if (p->unreadable)
        clave__json_bool(j, "unreadable", true);
    if (p->cut)
        clave__json_bool(j, "truncated", true);
    clave__json_close(j, '}');
}

/* ---- what others have put there -------------------------------------------------------------- */

static const char *lock_fault_text(const char *what, const char *to, const char *verb,
                                   const char *path, const char *more, char out[LOCK_FAULT_CAP])
{
    size_t n = (size_t)snprintf(out, LOCK_FAULT_CAP, "%s; to %s: clave %s ", what, to, verb);
    size_t room = LOCK_FAULT_CAP - n - strlen(more), word = clave__shell_quote(out + n, room, path);
    if (word < room)
        memcpy(out + n + word, more, strlen(more) + 1);
    else
        snprintf(out, LOCK_FAULT_CAP, "%s", what);
    return out;
}

const char *clave__lock_stranger_what(const struct lock_stranger *s)
{
    static const char *const what[LOCK_STRANGE_SIDES] = {
        [LOCK_STRANGE_OWNERS] = "this is not a slot, but counts as one",
        [LOCK_STRANGE_LEASES] = "this is not a lease, but counts as one",
        [LOCK_STRANGE_QUEUE] = "this is no place in the queue",
        [LOCK_STRANGE_LOCKS] = "this is no place in the queue, but Curator may wait for it",
    };
    return what[s->side];
}

const char *clave__lock_stranger_text(const struct lock_stranger *s, char out[LOCK_FAULT_CAP])
{
    return lock_fault_text(clave__lock_stranger_what(s), "remove it", "rm -r", s->path, "", out);
}

const char *clave__lock_bad_limit_text(const char *path, char out[LOCK_FAULT_CAP])
{
    return lock_fault_text("the limit is no number, so nobody takes a slot", "set it", "slot limit",
                           path, " N", out);
}

enum { STRANGERS_SHOWN = 20 };

static void lock_json_strangers(struct json *j, const struct lock_queue *q)
{
    const struct lock_stranger *s;
    const char *at = "";
    char text[LOCK_FAULT_CAP];
    if (clave__lock_has_bad_limit(q))
        clave__json_string(j, "detail", clave__lock_bad_limit_text(q->path, text));
    if (clave__lock_nstrangers(q) == 0)
        return;
    clave__json_int(j, "nstrangers", (int64_t)clave__lock_nstrangers(q));
    clave__json_open(j, "strangers", '[');
    for (int i = 0; i < STRANGERS_SHOWN && (s = clave__lock_stranger_after(q, at)); i++) {
        clave__json_open(j, NULL, '{');
        clave__json_string(j, "node", s->path);
        clave__json_string(j, "detail", clave__lock_stranger_text(s, text));
        clave__json_close(j, '}');
        at = clave__lock_stranger_name(s);
    }
    clave__json_close(j, ']');
}

/* ---- a lock ---------------------------------------------------------------------------------- */

static const char *const since_by[] = {
    [LOCK_SINCE_UNKNOWN] = NULL, [LOCK_SINCE_SEEN] = "gate", [LOCK_SINCE_NODE] = "node"};

static void lock_json_head(struct json *j, const struct lock_queue *q, int64_t now)
{
    const struct lock_node *holder = clave__lock_holder_after(q, NULL);
    const struct lock_node *waiter = clave__lock_waiter_after(q, NULL);
    uint32_t limit = clave__lock_limit(q);
    clave__json_string(j, "path", q->path);
    clave__json_string(j, "kind", clave__lock_kind_name(clave__lock_kind(q)));
    if (clave__lock_has_bad_limit(q))
        clave__json_string(j, "limit", NULL);
    else if (limit || clave__lock_is_slots(q))
        clave__json_int(j, "limit", limit);
    clave__json_int(j, "nholders", (int64_t)q->nholders);
    clave__json_int(j, "nwaiters", (int64_t)clave__lock_nwaiters(q));
    clave__json_int(j, "nleft_over", (int64_t)clave__lock_nleft_over(q));
    clave__json_bool(j, "outside", clave__lock_has_outside(q));
    if (waiter && !waiter->unreadable)
        clave__json_int(j, "oldest_wait_ms", now > waiter->queued ? now - waiter->queued : 0);
    else
        clave__json_string(j, "oldest_wait_ms", NULL);
    enum lock_since how = LOCK_SINCE_UNKNOWN;
    clave__lock_time_json(j, "held_since", holder ? clave__lock_held_since(holder, &how) : -1);
    clave__json_string(j, "held_since_by", since_by[how]);
    lock_json_strangers(j, q);
}

/* The lists of a lock, in the order in which they are written. */
static const struct {
    const char *name;
    struct lock_node *(*after_key)(const struct lock_queue *q, const struct lock_key *key);
} lists[LOCK_WALK_DONE] = {
    [LOCK_WALK_HOLDERS] = {"holders", clave__lock_holder_after_key},
    [LOCK_WALK_WAITERS] = {"waiters", clave__lock_waiter_after_key},
    [LOCK_WALK_LEFT_OVER] = {"left_over", clave__lock_left_over_after_key},
};

static void lock_json_places(struct json *j, const struct lock_queue *q, enum lock_walk_phase list,
                             size_t most)
{
    struct lock_key last = {"", ""};
    struct lock_node *p;
    clave__json_open(j, lists[list].name, '[');
    for (; most > 0 && (p = lists[list].after_key(q, &last)); most--) {
        clave__lock_place_json(j, NULL, p);
        last = clave__lock_key(p);
    }
    clave__json_close(j, ']');
}

void clave__lock_json(struct json *j, const char *key, const struct lock_queue *q, int64_t now,
                      size_t most)
{
    clave__json_open(j, key, '{');
    lock_json_head(j, q, now);
    for (enum lock_walk_phase list = LOCK_WALK_HOLDERS; list < LOCK_WALK_DONE; list++)
        lock_json_places(j, q, list, most);
    clave__json_close(j, '}');
}

void clave__lock_json_vanished(struct json *j, const char *path, enum lock_queue_kind kind)
{
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "path", path);
    clave__json_string(j, "kind", clave__lock_kind_name(kind));
    clave__json_int(j, "nholders", 0);
    clave__json_int(j, "nwaiters", 0);
    clave__json_int(j, "nleft_over", 0);
    clave__json_bool(j, "outside", false);
    clave__json_string(j, "oldest_wait_ms", NULL);
    clave__json_string(j, "held_since", NULL);
    clave__json_string(j, "held_since_by", NULL);
    for (enum lock_walk_phase list = LOCK_WALK_HOLDERS; list < LOCK_WALK_DONE; list++) {
        clave__json_open(j, lists[list].name, '[');
        clave__json_close(j, ']');
    }
    clave__json_close(j, '}');
}

/* ---- piece by piece -------------------------------------------------------------------------- */

clave_err clave__lock_walk_init(struct lock_walk *w, const struct clave_mem *mem,
                                const struct lock_queue *q)
{
    *w = (struct lock_walk){.mem = mem, .leases = q->leases};
    clave__buf_init(&w->number, mem, SIZE_MAX);
    clave__buf_init(&w->name, mem, SIZE_MAX);
    w->path = clave__mem_strdup(mem, q->path);
    return w->path ? CLAVE_OK : CLAVE_ENOMEM;
}

void clave__lock_walk_fini(struct lock_walk *w)
{
    clave__mem_free(w->mem, w->path);
    clave__buf_fini(&w->number);
    clave__buf_fini(&w->name);
}

static clave_err lock_json_walk_remember(struct lock_walk *w, struct lock_key last)
{
    clave_err err = clave__buf_set_text(&w->number, last.number);
    return err == CLAVE_OK ? clave__buf_set_text(&w->name, last.name) : err;
}

/* Writes places. If the lock has vanished since the last piece, its lists end here. */
static clave_err lock_json_walk_places(struct lock_walk *w, struct json *j,
                                       const struct lock_queue *q, size_t *budget)
{
    for (; *budget > 0; (*budget)--) {
        struct lock_key last = {clave__buf_text(&w->number), clave__buf_text(&w->name)};
        struct lock_node *p = q ? lists[w->phase].after_key(q, &last) : NULL;
        if (!p) {
            clave__json_close(j, ']');
            w->phase++;
            if (w->phase < LOCK_WALK_DONE)
                clave__json_open(j, lists[w->phase].name, '[');
            else
                clave__json_close(j, '}');
            return lock_json_walk_remember(w, (struct lock_key){"", ""});
        }
        clave__lock_place_json(j, NULL, p);
        clave_err err = lock_json_walk_remember(w, clave__lock_key(p));
        if (err != CLAVE_OK)
            return err;
    }
    return CLAVE_OK;
}

clave_err clave__lock_walk_piece(struct lock_walk *w, struct json *j, const struct lock_model *m,
                                 int64_t now, size_t budget)
{
    const struct lock_queue *q = clave__lock_model_get(m, w->path, w->leases);
    clave_err err = CLAVE_OK;
    if (w->phase == LOCK_WALK_HEAD && q) {
        clave__json_open(j, NULL, '{');
        lock_json_head(j, q, now);
        if (w->members)
            w->members(j, w->arg);
        w->phase++;
        clave__json_open(j, lists[w->phase].name, '[');
    }
    while (w->phase != LOCK_WALK_HEAD && w->phase < LOCK_WALK_DONE && budget > 0 && err == CLAVE_OK)
        err = lock_json_walk_places(w, j, q, &budget);
    return err == CLAVE_OK ? j->err : err;
}

/* ---- its state as a number ------------------------------------------------------------------- */

/* How many places of each list the number covers in full. A change of a place further back goes
 * unnoticed, unless a place came or went. */
enum { DIGEST_PLACES = 1000 };

/* The key is the same everywhere, so that all gates agree. A client that chooses names to make two
 * states of a lock collide only hides a change of that lock from those waiting for one. */
static uint64_t etag_bytes(const void *p, size_t n)
{
    return clave__siphash(clave__siphash_key(1), p, n);
}

static uint64_t etag_add(uint64_t digest, const struct lock_node *p)
{
    uint64_t marks = (uint64_t)p->holds | (uint64_t)p->asked << 1 | (uint64_t)p->unreadable << 2;
    const uint64_t words[] = {digest, etag_bytes(p->name, strlen(p->name)), (uint64_t)p->token,
                              (uint64_t)p->version, marks};
    return etag_bytes(words, sizeof words);
}

static uint64_t etag_add_places(uint64_t digest, const struct lock_queue *q,
                                struct lock_node *(*after)(const struct lock_queue *q,
                                                           const struct lock_node *p))
{
    struct lock_node *p = NULL;
    for (int i = 0; i < DIGEST_PLACES && (p = after(q, p)); i++)
        digest = etag_add(digest, p);
    return digest;
}

static uint64_t etag_add_strangers(uint64_t digest, const struct lock_queue *q)
{
    const struct lock_stranger *s;
    const char *at = "";
    for (int i = 0; i < STRANGERS_SHOWN && (s = clave__lock_stranger_after(q, at)); i++) {
        at = clave__lock_stranger_name(s);
        const uint64_t words[] = {digest, etag_bytes(at, strlen(at))};
        digest = etag_bytes(words, sizeof words);
    }
    return digest;
}

/* Covers the newest place. In a queue where places are added only at the end, this and the number
 * of places tell whether any came or went. */
static uint64_t etag_add_last(uint64_t digest, const struct lock_queue *q)
{
    struct ordered_node *last = q ? clave__ordered_last(&q->places, ORDERED_ANY) : NULL;
    return last ? etag_add(digest, ORDERED_ENTRY(last, struct lock_node, node)) : digest;
}

uint64_t clave__lock_etag(const struct lock_queue *q)
{
    const uint64_t head[] = {
        clave__lock_kind(q),      clave__lock_limit(q),      q->nholders,
        clave__lock_nwaiters(q),  clave__lock_nleft_over(q), clave__lock_has_bad_limit(q),
        clave__lock_nstrangers(q)};
    uint64_t digest = etag_add_strangers(etag_bytes(head, sizeof head), q);
    digest = etag_add_places(digest, q, clave__lock_holder_after);
    digest = etag_add_places(digest, q, clave__lock_left_over_after);
    digest = etag_add_places(digest, q, clave__lock_waiter_after);
    return etag_add_last(etag_add_last(digest, q), q->partner);
}
