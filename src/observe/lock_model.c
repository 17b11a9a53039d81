/* lock_model.c - the places and queues of a tree as its nodes come and go (lock_model.h).
 *
 * A node's path tells which queue it belongs to and what kind of place it is; its Stat tells since
 * when, and which session owns it; its data tells whose it is. Each place is a struct lock_node,
 * ordered in its queue by the number in its name and linked into the list of its session. After
 * every change, lock_holders.c decides again who holds. lock_view.c interprets the result.
 *
 * What must stay true: a place is in the queue of its parent's path and counted in its session; a
 * session exists as long as it has a place; a queue that has changed is in the list `dirty`; who
 * holds is decided before a call returns. */
#include "observe/lock_model.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/utf8.h"
#include "observe/lock_holders.h"
#include "recipe/queue/identity.h"
#include "recipe/queue/queue_nodes.h"
#include "recipe/slots/slot_node.h"

enum { DIGITS = 10, TOKEN_CAP = 17 };

static const char locks_name[] = "/locks", queue_name[] = "/queue", kazoo_name[] = "-__lock__";
static const char leases_name[] = "/leases", owners_name[] = "/owners";
static const char mark_name[] = "-held", limit_name[] = "/limit";

/* ---- names and keys -------------------------------------------------------------------------- */

/* The number is the digits that the server appended. Names of kazoo's leases have none and are
 * ordered as a whole. */
static struct lock_key lock_key_of(const char *name)
{
    enum queue_kind kind = clave__queue_kind_of(name);
    const struct queue_order_rule *rule = clave__queue_kind_rule(1u << kind);
    if (rule)
        return (struct lock_key){clave__queue_order_key(rule, name).text, name};
    return (struct lock_key){clave__lock_is_plain(name) ? name + strlen(name) - DIGITS : name,
                             name};
}

bool clave__lock_is_bare(const char *name)
{
    enum { UUID_DIGITS = 32 };
    return strspn(name, "0123456789abcdef") == UUID_DIGITS && name[UUID_DIGITS] == '\0';
}

bool clave__lock_is_plain(const char *name)
{
    size_t n = strlen(name);
    return n > DIGITS && !clave__lock_is_bare(name) &&
           strspn(name + n - DIGITS, "0123456789") == DIGITS;
}

char *clave__lock_node_path(const struct clave_mem *mem, const struct lock_node *p)
{
    const struct lock_queue *q = p->queue;
    if (!q->leases || p->bare)
        return clave__path_child(mem, q->path, p->name);
    char *dir = clave__path_child(mem, q->path, p->kept ? "owners" : "leases");
    char *path = dir ? clave__path_child(mem, dir, p->name) : NULL;
    clave__mem_free(mem, dir);
    return path;
}

/* ---- where a node belongs -------------------------------------------------------------------- */

/* Where a node belongs, judged by its path alone. Its content may still show that it is not part of
 * a lock. */
struct lock_path {
    enum queue_kind kind;
    struct lock_queue_key key;
    const char *name;
    bool bare; /* a UUID right below the path: a lease, if the path is a semaphore's */
    bool kept; /* a slot */
};

static bool lock_path_ends(const char *path, size_t len, const char *end, size_t n)
{
    return len >= n && memcmp(path + len - n, end, n) == 0;
}

static bool lock_path_is_slot(const struct lock_path *s)
{
    char id[CLAVE_SLOT_ID_MAX + 1];
    return lock_path_ends(s->key.path, s->key.len, owners_name, sizeof owners_name - 1) &&
           clave__slot_name_parse(s->name, id);
}

/* Removes a component of n characters from the end of the queue's path; what is left of a path
 * directly below the root is "/". */
static void lock_path_go_up(struct lock_path *s, size_t n)
{
    s->key.len = s->key.len > n ? s->key.len - n : 1;
    s->key.leases = true;
}

/* A lease is a node below "leases", or has a bare UUID as its name, as kazoo's do, below "leases"
 * or right below the path. A slot is a node below "owners". */
static struct lock_path lock_path_of(const struct lock_model *m, const char *path)
{
    struct lock_path s = {.name = clave__path_name(path)};
    size_t len = (size_t)(s.name - path);
    len -= len > 1; /* without the slash, unless it is the root's */
    s.key = (struct lock_queue_key){path, len, false};
    if (lock_path_is_slot(&s)) {
        s.kept = true;
        s.kind = QUEUE_LEASE;
        lock_path_go_up(&s, sizeof owners_name - 1);
        return s;
    }
    s.kind = clave__queue_kind_of(s.name);
    if (m && m->plain && s.kind == QUEUE_OTHER && clave__lock_is_plain(s.name))
        s.kind = QUEUE_LOCK;
    bool counted = s.kind == QUEUE_LEASE || (s.kind == QUEUE_OTHER && clave__lock_is_bare(s.name));
    if (!counted)
        return s;
    bool below = lock_path_ends(path, len, leases_name, sizeof leases_name - 1);
    s.bare = s.kind == QUEUE_OTHER && !below;
    s.kind = below || s.bare ? QUEUE_LEASE : QUEUE_OTHER;
    s.key.leases = true;
    if (below)
        lock_path_go_up(&s, sizeof leases_name - 1);
    return s;
}

bool clave__lock_is_place(const char *path)
{
    return lock_path_of(NULL, path).kind != QUEUE_OTHER;
}

bool clave__lock_may_be_below(const char *path)
{
    return clave__queue_kind_of(clave__path_name(path)) == QUEUE_OTHER;
}

/* ---- sessions -------------------------------------------------------------------------------- */

static bool lock_node_session_eq(const struct map_node *node, const void *key)
{
    const char *at = (const char *)node - offsetof(struct lock_session, node);
    return ((const struct lock_session *)(const void *)at)->id == *(const int64_t *)key;
}

static struct lock_session *lock_session_find(const struct lock_model *m, int64_t id)
{
    struct map_node *node =
        clave__map_find(&m->sessions, clave__map_hash_u64((uint64_t)id), lock_node_session_eq, &id);
    return node ? MAP_ENTRY(node, struct lock_session, node) : NULL;
}

bool clave__lock_model_has_session(const struct lock_model *m, int64_t id)
{
    return lock_session_find(m, id) != NULL;
}

/* NULL: no memory. */
static struct lock_session *lock_node_session_get(struct lock_model *m, int64_t id)
{
    struct lock_session *s = lock_session_find(m, id);
    if (s)
        return s;
    s = clave__mem_zalloc(m->mem, sizeof *s);
    if (!s)
        return NULL;
    s->id = id;
    list_init(&s->places);
    clave__map_insert(&m->sessions, &s->node, clave__map_hash_u64((uint64_t)id));
    m->bytes += sizeof *s;
    return s;
}

static void lock_node_session_drop(struct lock_model *m, struct lock_session *s)
{
    if (s->nplaces > 0)
        return;
    assert(s->nwaits == 0 && list_empty(&s->places));
    clave__map_remove(&m->sessions, &s->node);
    clave__mem_free(m->mem, s);
    m->bytes -= sizeof *s;
}

static void lock_node_join(struct lock_node *p)
{
    struct lock_session *s = p->session;
    if (!s)
        return;
    assert(list_empty(&p->in_session) && !p->holds);
    list_push_back(&s->places, &p->in_session);
    s->nplaces++;
    s->nwaits++;
}

static void lock_node_part(struct lock_node *p)
{
    struct lock_session *s = p->session;
    if (!s)
        return;
    assert(s->nplaces > 0 && (p->holds || s->nwaits > 0));
    list_remove(&p->in_session);
    s->nplaces--;
    s->nwaits -= !p->holds;
}

/* ---- a place --------------------------------------------------------------------------------- */

static size_t lock_node_size(const struct lock_node *p)
{
    return sizeof *p + strlen(p->name) + 1 + (p->kept ? TOKEN_CAP : 0) +
           (p->data ? p->ndata + 1 : 0);
}

static void lock_node_free(struct lock_model *m, struct lock_node *p)
{
    assert(list_empty(&p->in_session)); /* it was removed from its session */
    assert(m->nplaces > 0 && m->bytes >= lock_node_size(p));
    m->bytes -= lock_node_size(p);
    m->nplaces--;
    if (p->session)
        lock_node_session_drop(m, p->session);
    clave__mem_free(m->mem, p->data);
    clave__mem_free(m->mem, p);
}

/* Parses a copy, because the parser modifies its input. */
static void lock_node_read_identity(struct lock_node *p)
{
    char text[LOCK_DATA_MAX + 1];
    clave_identity id = {0};
    if (p->data) {
        memcpy(text, p->data, p->ndata + 1);
        clave__identity_parse(text, p->ndata, &id);
    }
    p->limit = id.limit;
    p->owned = id.owner != NULL;
    p->delays = p->data && clave__lock_delay_field_is_set(p->data, p->ndata);
    char ill[2];
    p->unhealthy = p->data &&
                   clave__identity_get_field(p->data, p->ndata, "unhealthy", ill, sizeof ill) &&
                   ill[0] == '1';
    p->asked = p->asked || id.asked;
}

static void lock_node_note_asked(struct lock_node *p)
{
    p->asked = p->asked || (p->kind == QUEUE_LATCH && p->version > 0);
}

static bool lock_node_set_data(struct lock_model *m, struct lock_node *p, const clave_stat *stat,
                               const void *data, size_t len)
{
    char *copy = NULL;
    bool promised;
    if (clave__identity_is_request(data, len)) {
        p->asked = true;
        return true;
    }
    int64_t recorded = clave__identity_granted(data, len, stat, &promised);
    bool cut = len > LOCK_DATA_MAX;
    if (cut)
        len = clave__utf8_whole(data, LOCK_DATA_MAX);
    if (len > 0) {
        copy = clave__mem_strndup(m->mem, data, len);
        if (!copy)
            return false;
    }
    m->bytes -= p->data ? p->ndata + 1 : 0;
    clave__mem_free(m->mem, p->data);
    p->data = copy;
    p->ndata = copy ? len : 0;
    p->cut = cut;
    if (recorded >= 0) {
        p->recorded = recorded;
        p->promised = promised;
    }
    m->bytes += copy ? len + 1 : 0;
    lock_node_read_identity(p);
    return true;
}

static struct lock_node *lock_node_new(struct lock_model *m, enum queue_kind kind, const char *name,
                                       const clave_stat *stat, bool kept)
{
    size_t n = strlen(name);
    struct lock_node *p = clave__mem_zalloc(m->mem, sizeof *p + n + 1 + (kept ? TOKEN_CAP : 0));
    if (!p)
        return NULL;
    p->kind = kind;
    list_init(&p->in_session);
    p->token = stat->czxid;
    p->queued = stat->ctime;
    p->recorded = -1;
    p->version = stat->version;
    memcpy(p->name, name, n);
    p->number = (uint32_t)(kept ? n + 1 : (size_t)(lock_key_of(name).number - name));
    p->kept = kept;
    if (kept) /* an unreadable one sorts last */
        snprintf(p->name + n + 1, TOKEN_CAP, "%016" PRIx64,
                 stat->czxid ? (uint64_t)stat->czxid : UINT64_MAX);
    m->nplaces++;
    m->bytes += lock_node_size(p);
    bool sessionless = clave__queue_node_is_left_over(stat);
    p->left_over = sessionless && !kept;
    if (stat->czxid != 0 && !sessionless) {
        p->session = lock_node_session_get(m, stat->ephemeral_owner);
        if (!p->session) {
            lock_node_free(m, p);
            return NULL;
        }
    }
    return p;
}
/* ---- order ----------------------------------------------------------------------------------- */

static int lock_queue_compare(const void *key, const struct ordered_node *node)
{
    const struct lock_queue_key *k = key;
    const struct lock_queue *q = ORDERED_ENTRY(node, struct lock_queue, node);
    size_t n = k->len < q->len ? k->len : q->len;
    int cmp = memcmp(k->path, q->path, n);
    if (cmp != 0)
        return cmp;
    if (k->len != q->len)
        return k->len < q->len ? -1 : 1;
    return (int)k->leases - (int)q->leases;
}

static int lock_stranger_compare(const void *key, const struct ordered_node *node)
{
    return strcmp(key, clave__lock_stranger_name(ORDERED_ENTRY(node, struct lock_stranger, node)));
}

static int lock_place_compare(const void *key, const struct ordered_node *node)
{
    const struct lock_key *k = key;
    struct lock_key own = clave__lock_key(ORDERED_ENTRY(node, struct lock_node, node));
    int cmp = strcmp(k->number, own.number);
    return cmp ? cmp : strcmp(k->name, own.name);
}

/* ---- invariants ------------------------------------------------------------------------------ */

/* Checks a queue's counts against its places. Returns the number of places. */
static size_t lock_model_check_places(const struct lock_queue *q)
{
    size_t n = 0, holders = 0, left_over = 0, kept = 0, bare = 0, kinds = 0, strange = 0;
    struct lock_key at = {"", ""};
    for (struct ordered_node *o; (o = clave__ordered_after(&q->places, &at, ORDERED_ANY)); n++) {
        const struct lock_node *p = ORDERED_ENTRY(o, struct lock_node, node);
        CHECK(p->queue == q);
        CHECK(!p->holds || !p->left_over);
        holders += p->holds;
        left_over += p->left_over;
        kept += p->kept;
        bare += p->bare;
        at = clave__lock_key(p);
    }
    for (size_t i = 0; i < QUEUE_KINDS; i++)
        kinds += q->of_kind[i];
    for (size_t i = 0; i < LOCK_STRANGE_SIDES; i++)
        strange += q->nstrange[i];
    CHECK(n == q->places.count && n == kinds);
    CHECK(strange == q->strangers.count && (strange == 0 || q->leases));
    CHECK(!q->limited || !q->bad_limit);
    CHECK(holders == q->nholders && left_over == q->nleft_over && kept == q->nkept &&
          bare == q->nbare);
    return n;
}

/* Checks that every place is in one queue, and that partners are mutual: one queue of leases and
 * one of clients acquiring them. */
static void lock_model_check(const struct lock_model *m)
{
    size_t n = 0;
    struct lock_queue_key at = {"", 0, false};
    if (!clave__check_is_due(m->nplaces + m->queues.count))
        return;
    for (struct ordered_node *o; (o = clave__ordered_after(&m->queues, &at, ORDERED_ANY));) {
        const struct lock_queue *q = ORDERED_ENTRY(o, struct lock_queue, node);
        CHECK(!q->partner || (q->partner->partner == q && q->partner->leases != q->leases));
        n += lock_model_check_places(q);
        at = (struct lock_queue_key){q->path, q->len, q->leases};
    }
    CHECK(n == m->nplaces);
}

/* ---- queues ---------------------------------------------------------------------------------- */

struct lock_queue *clave__lock_queue_at(const struct lock_model *m,
                                        const struct lock_queue_key *key)
{
    struct ordered_node *node = clave__ordered_find(&m->queues, key);
    return node ? ORDERED_ENTRY(node, struct lock_queue, node) : NULL;
}

/* For a semaphore at `path`: the queue of those acquiring a lease. The suffix is that of Curator's
 * layout or kazoo's. */
static struct lock_queue *lock_queue_of_acquires(const struct lock_model *m, const char *path,
                                                 const char *suffix)
{
    size_t n = strcmp(path, "/") == 0 ? 0 : strlen(path), nsuffix = strlen(suffix);
    char *full = clave__mem_alloc(m->mem, n + nsuffix + 1);
    if (!full)
        return NULL;
    memcpy(full, path, n);
    memcpy(full + n, suffix, nsuffix + 1);
    struct lock_queue *q =
        clave__lock_queue_at(m, &(struct lock_queue_key){full, n + nsuffix, false});
    clave__mem_free(m->mem, full);
    return q;
}

/* If `path` is the queue in which a semaphore's leases, or slots, are acquired: the length of the
 * path of that semaphore or those slots, otherwise 0. "/locks" is the queue of a semaphore at the
 * root. */
static size_t lock_semaphore_len(const char *path, size_t len, const char *suffix)
{
    size_t n = strlen(suffix);
    if (!lock_path_ends(path, len, suffix, n))
        return 0;
    return len > n ? len - n : suffix[0] == '/';
}

/* True if a queue at P/queue can belong to this. Without slots or their limit it is somebody's lock
 * at P/queue. A node P/limit that is no number may be another program's, and counts only beside a
 * node P/owners. */
static bool lock_queue_may_be_slots(const struct lock_queue *q)
{
    bool limit = q->limited || (q->bad_limit && q->has_owners);
    return q->nkept > 0 || (limit && q->places.count == 0);
}

static void lock_queue_find_partner(struct lock_model *m, struct lock_queue *q)
{
    assert(!q->partner);
    struct lock_queue *other = NULL;
    const char *const suffixes[] = {locks_name, kazoo_name, queue_name};
    for (size_t i = 0; i < 3 && !other; i++) {
        if (q->leases && suffixes[i] == queue_name && !lock_queue_may_be_slots(q))
            break;
        size_t n = q->leases ? 0 : lock_semaphore_len(q->path, q->len, suffixes[i]);
        if (q->leases)
            other = lock_queue_of_acquires(m, q->path, suffixes[i]);
        else if (n > 0)
            other = clave__lock_queue_at(m, &(struct lock_queue_key){q->path, n, true});
        if (other && !q->leases && suffixes[i] == queue_name && !lock_queue_may_be_slots(other))
            other = NULL;
    }
    if (other && other->partner)
        return;
    q->partner = other;
    if (other)
        other->partner = q;
}

static struct lock_queue *lock_queue_new(struct lock_model *m, const struct lock_queue_key *key)
{
    struct lock_queue *q = clave__mem_zalloc(m->mem, sizeof *q + key->len + 1);
    if (!q)
        return NULL;
    memcpy(q->path, key->path, key->len);
    q->len = key->len;
    q->leases = key->leases;
    list_init(&q->in_dirty);
    clave__ordered_init(&q->places, lock_place_compare, m->seed);
    clave__ordered_init(&q->strangers, lock_stranger_compare, m->seed);
    struct lock_queue_key own = {q->path, q->len, q->leases};
    clave__ordered_insert(&m->queues, &q->node, &own, 0);
    lock_queue_find_partner(m, q);
    m->bytes += sizeof *q + q->len + 1;
    return q;
}

void clave__lock_model_set_dirty(struct lock_model *m, struct lock_queue *q)
{
    list_remove(&q->in_dirty);
    list_push_back(&m->dirty, &q->in_dirty);
}

/* A change of the waiting side, which is not shown on its own, changes what is shown of its
 * partner. */
static void lock_queue_changed(struct lock_model *m, struct lock_queue *q)
{
    clave__lock_model_set_dirty(m, q);
    if (q->partner)
        clave__lock_model_set_dirty(m, q->partner);
}

/* Slots may have appeared or disappeared at the path. In the latter case, a queue at P/queue is a
 * lock of its own. */
static void lock_queue_see_slots(struct lock_model *m, struct lock_queue *q)
{
    struct lock_queue *other = q->leases ? q->partner : NULL;
    bool queue =
        other && lock_path_ends(other->path, other->len, queue_name, sizeof queue_name - 1);
    if (queue && !lock_queue_may_be_slots(q)) {
        lock_queue_changed(m, q);
        other->partner = q->partner = NULL;
    } else if (q->leases && !other && lock_queue_may_be_slots(q)) {
        lock_queue_find_partner(m, q);
    }
}

/* A waiter whose node names a limit shows that its queue belongs to a semaphore, which need not
 * have any lease yet. One may already exist with another queue as its partner: kazoo's, or that of
 * slots. */
static void lock_queue_find_semaphore(struct lock_model *m, const struct lock_queue *q,
                                      const struct lock_node *p)
{
    bool tells = p->limit != 0 && !q->leases && !q->partner;
    struct lock_queue_key key = {q->path, 0, true};
    if (tells)
        key.len = lock_semaphore_len(q->path, q->len, locks_name);
    if (key.len > 0 && !clave__lock_queue_at(m, &key) && !lock_queue_new(m, &key))
        m->left_out++;
}

/* The partner of q is about to be freed. Those acquiring a lease may have another queue, beside
 * that one. */
static void lock_queue_widowed(struct lock_model *m, struct lock_queue *q)
{
    q->partner = NULL;
    if (q->leases)
        lock_queue_find_partner(m, q);
    if (q->partner)
        lock_queue_changed(m, q);
}

static void lock_queue_free(struct lock_model *m, struct lock_queue *q)
{
    assert(q->places.count == 0 && q->strangers.count == 0 && m->bytes >= sizeof *q + q->len + 1);
    struct lock_queue_key key = {q->path, q->len, q->leases};
    clave__ordered_remove(&m->queues, &key);
    list_remove(&q->in_dirty);
    if (q->partner)
        lock_queue_widowed(m, q->partner);
    m->bytes -= sizeof *q + q->len + 1;
    clave__mem_free(m->mem, q);
}

/* ---- places ---------------------------------------------------------------------------------- */

static void lock_model_tell(struct lock_model *m, enum lock_change what, const struct lock_node *p,
                            int64_t at)
{
    if (m->changed && !m->loading)
        m->changed(m->arg, what, p, at);
}

static bool lock_place_eq(const struct map_node *node, const void *key)
{
    const char *at = (const char *)node - offsetof(struct lock_node, in_kept);
    const struct lock_node *p = (const struct lock_node *)(const void *)at;
    const struct lock_path *site = key;
    return lock_queue_compare(&site->key, &p->queue->node) == 0 && strcmp(p->name, site->name) == 0;
}

static void lock_place_keep(struct lock_model *m, struct lock_node *p)
{
    uint32_t hash = clave__map_hash_bytes(&m->kept, p->name, strlen(p->name));
    clave__map_insert(&m->kept, &p->in_kept, hash);
    p->queue->nkept++;
}

static void lock_place_unkeep(struct lock_model *m, struct lock_node *p)
{
    clave__map_remove(&m->kept, &p->in_kept);
    p->queue->nkept--;
}

/* false: no memory. */
static bool lock_place_enter(struct lock_model *m, int64_t at, const struct lock_path *site,
                             const clave_stat *stat, const void *data, size_t len)
{
    struct lock_node *p = lock_node_new(m, site->kind, site->name, stat, site->kept);
    if (!p)
        return false;
    p->unreadable = stat->czxid == 0;
    if (p->unreadable)
        p->queued = at;
    struct lock_queue *q = clave__lock_queue_at(m, &site->key);
    if (!q)
        q = lock_queue_new(m, &site->key);
    if (!q || !lock_node_set_data(m, p, stat, data, len)) {
        if (q && q->places.count == 0)
            lock_queue_changed(m, q); /* taking the change frees it */
        lock_node_free(m, p);
        return false;
    }
    struct lock_key key = clave__lock_key(p);
    lock_node_note_asked(p);
    p->queue = q;
    clave__ordered_insert(&q->places, &p->node, &key, clave__lock_marks(p));
    clave__lock_queue_mark(m, q);
    q->of_kind[p->kind]++;
    p->bare = site->bare;
    q->nbare += p->bare;
    q->nleft_over += p->left_over;
    if (p->kept)
        lock_place_keep(m, p);
    lock_queue_see_slots(m, q);
    lock_node_join(p);
    lock_queue_find_semaphore(m, q, p);
    lock_model_tell(m, LOCK_QUEUED, p, p->queued);
    clave__lock_grants_update(m, q, at, p);
    /* Only now is it known whether the place waits at all. Linking visits every place of the
     * session. */
    clave__lock_link(m, p->session);
    lock_queue_changed(m, q);
    return true;
}

static void lock_place_leave(struct lock_model *m, int64_t at, struct lock_node *p)
{
    struct lock_queue *q = p->queue;
    assert(q->of_kind[p->kind] > 0 && (!p->holds || q->nholders > 0));
    struct lock_key key = clave__lock_key(p);
    lock_model_tell(m, LOCK_ENDED, p, at);
    lock_node_part(p);
    clave__ordered_remove(&q->places, &key);
    clave__lock_link(m, p->session);
    clave__lock_queue_mark(m, q);
    q->of_kind[p->kind]--;
    q->nbare -= p->bare;
    q->nholders -= p->holds;
    q->nleft_over -= p->left_over;
    if (p->kept)
        lock_place_unkeep(m, p);
    lock_queue_see_slots(m, q);
    lock_node_free(m, p);
    clave__lock_grants_update(m, q, at, NULL);
    lock_queue_changed(m, q);
}

/* Updates a place from new data, which may change a lease's limit. false: no memory. */
static bool lock_place_written(struct lock_model *m, int64_t at, struct lock_node *p,
                               const clave_stat *stat, const void *data, size_t len)
{
    bool asked = p->asked;
    if (!lock_node_set_data(m, p, stat, data, len))
        return false;
    struct lock_key key = clave__lock_key(p);
    p->version = stat->version;
    lock_node_note_asked(p);
    clave__ordered_mark(&p->queue->places, &p->node, &key, clave__lock_marks(p));
    clave__lock_queue_mark(m, p->queue);
    lock_queue_find_semaphore(m, p->queue, p);
    if (p->asked && !asked)
        lock_model_tell(m, LOCK_ASKED, p, at);
    clave__lock_grants_update(m, p->queue, at, NULL);
    lock_queue_changed(m, p->queue);
    return true;
}

static struct lock_node *lock_place_at(const struct lock_model *m, const struct lock_path *site)
{
    if (site->kept) {
        uint32_t hash = clave__map_hash_bytes(&m->kept, site->name, strlen(site->name));
        struct map_node *kept = clave__map_find(&m->kept, hash, lock_place_eq, site);
        return kept ? MAP_ENTRY(kept, struct lock_node, in_kept) : NULL;
    }
    const struct lock_queue *q = clave__lock_queue_at(m, &site->key);
    struct lock_key key = lock_key_of(site->name);
    struct ordered_node *node = q ? clave__ordered_find(&q->places, &key) : NULL;
    return node ? ORDERED_ENTRY(node, struct lock_node, node) : NULL;
}

/* "P-__lock__" is where clients queue for kazoo's semaphore at P, so its existence shows that P is
 * one. */
static void lock_model_see_kazoo(struct lock_model *m, const char *path, bool exists)
{
    size_t n = lock_semaphore_len(path, strlen(path), kazoo_name);
    struct lock_queue_key key = {path, n, true};
    struct lock_queue *q = n > 0 ? clave__lock_queue_at(m, &key) : NULL;
    if (n > 0 && exists && !q)
        q = lock_queue_new(m, &key);
    if (!q || q->kazoo == exists)
        return;
    q->kazoo = exists;
    lock_queue_changed(m, q);
}

/* If the path ends with `end` ("/limit", "/owners"), returns the queue of leases of the path before
 * that; with `make` it is created if it does not exist. NULL: there is none, or no memory. */
static struct lock_queue *lock_model_leases_above(struct lock_model *m, const char *path,
                                                  const char *end, bool make)
{
    struct lock_path s = {.key = {path, strlen(path), false}};
    size_t n = strlen(end);
    if (!lock_path_ends(path, s.key.len, end, n))
        return NULL;
    lock_path_go_up(&s, n);
    struct lock_queue *q = clave__lock_queue_at(m, &s.key);
    if (!q && make) {
        q = lock_queue_new(m, &s.key);
        m->left_out += !q;
    }
    return q;
}

/* "P/limit" says how many slots there are at P, by which they are recognised while nobody owns one.
 * A node that may not be read is treated as missing. */
static void lock_model_see_limit(struct lock_model *m, const char *path, bool readable,
                                 const void *data, size_t len)
{
    struct lock_queue *q = lock_model_leases_above(m, path, limit_name, readable);
    if (!q)
        return;
    int64_t limit = readable ? clave__slot_limit_parse(data, len) : CLAVE_SLOTS_LIMIT_NONE;
    q->limited = limit >= 0;
    q->bad_limit = limit == CLAVE_SLOTS_LIMIT_BAD;
    q->slots_limit = limit >= 0 ? (uint32_t)limit : 0;
    lock_queue_see_slots(m, q);
    lock_queue_changed(m, q);
}

static void lock_model_see_owners(struct lock_model *m, const char *path, bool exists)
{
    struct lock_queue *q = lock_model_leases_above(m, path, owners_name, exists);
    if (!q || q->has_owners == exists)
        return;
    q->has_owners = exists;
    lock_queue_see_slots(m, q);
    lock_queue_changed(m, q);
}

/* True if the node is in a directory where only places belong: which one, and the key of the queue
 * of leases above it. */
static bool lock_stranger_site(const char *path, enum lock_stranger_side *side,
                               struct lock_queue_key *key)
{
    static const char *const dirs[LOCK_STRANGE_SIDES] = {
        [LOCK_STRANGE_OWNERS] = owners_name,
        [LOCK_STRANGE_LEASES] = leases_name,
        [LOCK_STRANGE_QUEUE] = queue_name,
        [LOCK_STRANGE_LOCKS] = locks_name,
    };
    struct lock_path s = {.key = {path, (size_t)(clave__path_name(path) - path) - 1, false}};
    for (size_t i = 0; i < LOCK_STRANGE_SIDES; i++) {
        size_t n = strlen(dirs[i]);
        if (!lock_path_ends(path, s.key.len, dirs[i], n))
            continue;
        lock_path_go_up(&s, n);
        *side = (enum lock_stranger_side)i;
        *key = s.key;
        return true;
    }
    return false;
}

static size_t lock_stranger_size(const struct lock_stranger *s)
{
    return sizeof *s + strlen(s->path) + 1;
}

static void lock_stranger_free(struct lock_model *m, struct lock_queue *q, struct lock_stranger *s)
{
    clave__ordered_remove(&q->strangers, clave__lock_stranger_name(s));
    q->nstrange[s->side]--;
    m->bytes -= lock_stranger_size(s);
    clave__mem_free(m->mem, s);
}

/* Returns false if there is no memory, or no room below max_bytes. */
static bool lock_stranger_add(struct lock_model *m, const char *path, enum lock_stranger_side side,
                              const struct lock_queue_key *key)
{
    struct lock_queue *q = clave__lock_queue_at(m, key);
    size_t n = strlen(path);
    if (m->max_bytes != 0 && m->bytes >= m->max_bytes)
        return false;
    struct lock_stranger *s = clave__mem_zalloc(m->mem, sizeof *s + n + 1);
    if (!q && s)
        q = lock_queue_new(m, key);
    if (!q || !s) {
        clave__mem_free(m->mem, s);
        return false;
    }
    memcpy(s->path, path, n);
    s->side = side;
    s->at = key->len + (key->len > 1);
    clave__ordered_insert(&q->strangers, &s->node, clave__lock_stranger_name(s), 1U << side);
    q->nstrange[side]++;
    m->bytes += lock_stranger_size(s);
    return true;
}

/* `strange`: the node exists and is no place, so if it is in one of those directories it is kept as
 * a stranger; otherwise it is forgotten. */
static void lock_model_see_stranger(struct lock_model *m, int64_t at, const char *path,
                                    bool strange)
{
    enum lock_stranger_side side;
    struct lock_queue_key key;
    if (!lock_stranger_site(path, &side, &key))
        return;
    struct lock_queue *q = clave__lock_queue_at(m, &key);
    const char *name = path + key.len + (key.len > 1);
    struct ordered_node *known = q ? clave__ordered_find(&q->strangers, name) : NULL;
    if (strange == (known != NULL))
        return;
    if (strange && !lock_stranger_add(m, path, side, &key)) {
        m->left_out++;
        return;
    }
    if (known)
        lock_stranger_free(m, q, ORDERED_ENTRY(known, struct lock_stranger, node));
    q = clave__lock_queue_at(m, &key);
    if (side == LOCK_STRANGE_LEASES)
        clave__lock_grants_update(m, q, at, NULL);
    lock_queue_changed(m, q);
}

/* "P-held" is the mark of a lock delay at P, on which it can depend whether the first place there
 * holds. */
static void lock_model_see_mark(struct lock_model *m, int64_t at, const char *path, int64_t token)
{
    size_t len = strlen(path), n = sizeof mark_name - 1;
    if (!lock_path_ends(path, len, mark_name, n))
        return;
    struct lock_queue_key key = {path, len - n, false};
    struct lock_queue *q = clave__lock_queue_at(m, &key);
    if (!q && token) {
        q = lock_queue_new(m, &key);
        m->left_out += !q;
    }
    if (!q || q->mark == token)
        return;
    q->mark = token;
    clave__lock_grants_update(m, q, at, NULL);
    lock_queue_changed(m, q);
}

/* True if the node really is a place. For slots and kazoo's leases the name is not enough: a slot
 * is recognised by its data, and any program may have persistent nodes whose names are UUIDs. Such
 * a node is a left-over lease only where kazoo's queue beside the path shows that the path is a
 * semaphore's. */
static bool lock_model_takes(const struct lock_model *m, const struct lock_path *site,
                             const clave_stat *stat, const void *data, size_t len)
{
    if (site->kind == QUEUE_OTHER || stat->czxid == 0)
        return site->kind != QUEUE_OTHER;
    if (site->kept)
        return clave__identity_is_form(data, len);
    if (!site->bare || !clave__queue_node_is_left_over(stat))
        return true;
    const struct lock_queue *q = clave__lock_queue_at(m, &site->key);
    return q && q->kazoo;
}

void clave__lock_model_node(struct lock_model *m, int64_t at, const char *path,
                            const clave_stat *stat, const void *data, size_t len)
{
    struct lock_path site = lock_path_of(m, path);
    lock_model_check(m);
    lock_model_see_kazoo(m, path, true);
    lock_model_see_mark(m, at, path, clave__lock_delay_mark_token(data, len));
    lock_model_see_limit(m, path, stat->czxid != 0, data, len);
    lock_model_see_owners(m, path, true);
    struct lock_node *p = site.kind == QUEUE_OTHER ? NULL : lock_place_at(m, &site);
    bool takes = lock_model_takes(m, &site, stat, data, len);
    if (p && (p->token != stat->czxid || (p->kept && !takes))) { /* created or written by others */
        lock_place_leave(m, at, p);
        p = NULL;
    }
    lock_model_see_stranger(m, at, path, !takes);
    if (!takes) {
        lock_model_check(m);
        return;
    }
    bool room = p || m->max_bytes == 0 || m->bytes < m->max_bytes;
    bool done = room && (p ? lock_place_written(m, at, p, stat, data, len)
                           : lock_place_enter(m, at, &site, stat, data, len));
    m->left_out += !done;
    lock_model_check(m);
}

void clave__lock_model_written(struct lock_model *m, int64_t at, const char *path, int32_t version,
                               const void *data, size_t len)
{
    struct lock_path site = lock_path_of(m, path);
    struct lock_node *p = site.kind == QUEUE_OTHER ? NULL : lock_place_at(m, &site);
    lock_model_see_mark(m, at, path, clave__lock_delay_mark_token(data, len));
    lock_model_see_limit(m, path, true, data, len);
    const clave_stat stat = {.version = version, .ctime = p ? p->queued : 0, .mtime = at};
    if (p && version > p->version && !lock_place_written(m, at, p, &stat, data, len))
        m->left_out++;
    lock_model_check(m);
}

void clave__lock_model_gone(struct lock_model *m, int64_t at, const char *path)
{
    struct lock_path site = lock_path_of(m, path);
    struct lock_node *p = site.kind == QUEUE_OTHER ? NULL : lock_place_at(m, &site);
    if (p)
        lock_place_leave(m, at, p);
    lock_model_see_kazoo(m, path, false);
    lock_model_see_mark(m, at, path, 0);
    lock_model_see_limit(m, path, false, NULL, 0);
    lock_model_see_owners(m, path, false);
    lock_model_see_stranger(m, at, path, false);
    lock_model_check(m);
}

/* Removes the newest first: then a second place of the session in the same queue is never
 * granted. */
void clave__lock_model_session_gone(struct lock_model *m, int64_t at, int64_t id)
{
    for (struct lock_session *s; (s = lock_session_find(m, id));)
        lock_place_leave(m, at, LIST_ENTRY(s->places.prev, struct lock_node, in_session));
}

/* ---- life ------------------------------------------------------------------------------------ */

clave_err clave__lock_model_init(struct lock_model *m, const struct clave_mem *mem, uint64_t seed,
                                 size_t max_bytes)
{
    *m = (struct lock_model){.mem = mem, .seed = seed, .max_bytes = max_bytes, .loading = true};
    clave__ordered_init(&m->queues, lock_queue_compare, seed);
    list_init(&m->dirty);
    clave_err err = clave__map_init(&m->sessions, mem, seed);
    clave_err kept = clave__map_init(&m->kept, mem, ~seed);
    return err != CLAVE_OK ? err : kept;
}

static void lock_queue_empty(struct lock_model *m, struct lock_queue *q)
{
    for (struct ordered_node *n; (n = clave__ordered_first(&q->places, ORDERED_ANY));) {
        struct lock_node *p = ORDERED_ENTRY(n, struct lock_node, node);
        struct lock_key key = clave__lock_key(p);
        lock_node_part(p);
        clave__ordered_remove(&q->places, &key);
        if (p->kept)
            clave__map_remove(&m->kept, &p->in_kept);
        lock_node_free(m, p);
    }
    for (struct ordered_node *n; (n = clave__ordered_first(&q->strangers, ORDERED_ANY));)
        lock_stranger_free(m, q, ORDERED_ENTRY(n, struct lock_stranger, node));
    memset(q->of_kind, 0, sizeof q->of_kind);
    q->nholders = q->nleft_over = q->nbare = q->nkept = 0;
}

void clave__lock_model_clear(struct lock_model *m)
{
    for (struct ordered_node *n; (n = clave__ordered_first(&m->queues, ORDERED_ANY));) {
        struct lock_queue *q = ORDERED_ENTRY(n, struct lock_queue, node);
        lock_queue_empty(m, q);
        lock_queue_free(m, q);
    }
    m->left_out = 0;
    m->loading = true;
}

void clave__lock_model_fini(struct lock_model *m)
{
    clave__lock_model_clear(m);
    clave__map_fini(&m->sessions);
    clave__map_fini(&m->kept);
}

/* The first load brought the nodes in arbitrary order, so only now can it be decided who held. */
void clave__lock_model_loaded(struct lock_model *m)
{
    assert(m->loading);
    m->loading = false;
    struct lock_queue_key at = {"", 0, false};
    for (struct ordered_node *n; (n = clave__ordered_after(&m->queues, &at, ORDERED_ANY));) {
        struct lock_queue *q = ORDERED_ENTRY(n, struct lock_queue, node);
        struct lock_key last = {"", ""};
        at = (struct lock_queue_key){q->path, q->len, q->leases};
        while ((n = clave__ordered_after(&q->places, &last, ORDERED_ANY))) {
            struct lock_node *p = ORDERED_ENTRY(n, struct lock_node, node);
            last = clave__lock_key(p);
            p->told = p->held_before = p->holds;
        }
    }
}

/* ---- changes --------------------------------------------------------------------------------- */

struct lock_queue *clave__lock_model_take_dirty(struct lock_model *m)
{
    struct list *e = list_pop_front(&m->dirty);
    return e ? LIST_ENTRY(e, struct lock_queue, in_dirty) : NULL;
}

void clave__lock_model_settle(struct lock_model *m, struct lock_queue *q)
{
    assert(list_empty(&q->in_dirty)); /* it was taken */
    bool says = q->kazoo || q->mark || q->limited || q->bad_limit || q->has_owners;
    if (q->places.count == 0 && q->strangers.count == 0 && !says && clave__lock_limit(q) == 0)
        lock_queue_free(m, q);
    lock_model_check(m);
}
