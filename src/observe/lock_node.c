/* lock_node.c - a node in a queue, its session and its key; see lock_node.h. Called by
 * lock_model.c. Invariant: a session counts the places that point to it, and lasts as long as there
 * is one. */
#include "observe/lock_node.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/path.h"
#include "base/utf8.h"
#include "recipe/queue/identity.h"
#include "recipe/queue/queue_nodes.h"

enum { DIGITS = 10, TOKEN_CAP = 17 };

struct lock_key clave__lock_key(const struct lock_node *p)
{
    return (struct lock_key){p->name + p->number, p->name};
}

/* The server's digits at the end; names of kazoo's leases have none and are ordered as a whole. */
struct lock_key clave__lock_key_of(const char *name)
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

/* ---- sessions -------------------------------------------------------------------------------- */

static bool lock_node_session_eq(const struct map_node *node, const void *key)
{
    const char *at = (const char *)node - offsetof(struct lock_session, node);
    return ((const struct lock_session *)(const void *)at)->id == *(const int64_t *)key;
}

struct lock_session *clave__lock_session_find(const struct lock_model *m, int64_t id)
{
    struct map_node *node =
        clave__map_find(&m->sessions, clave__map_hash_u64((uint64_t)id), lock_node_session_eq, &id);
    return node ? MAP_ENTRY(node, struct lock_session, node) : NULL;
}

/* NULL: no memory. */
static struct lock_session *lock_node_session_get(struct lock_model *m, int64_t id)
{
    struct lock_session *s = clave__lock_session_find(m, id);
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

void clave__lock_node_join(struct lock_node *p)
{
    struct lock_session *s = p->session;
    if (!s)
        return;
    assert(list_empty(&p->in_session) && !p->holds);
    list_push_back(&s->places, &p->in_session);
    s->nplaces++;
    s->nwaits++;
}

void clave__lock_node_part(struct lock_node *p)
{
    struct lock_session *s = p->session;
    if (!s)
        return;
    assert(s->nplaces > 0 && (p->holds || s->nwaits > 0));
    list_remove(&p->in_session);
    s->nplaces--;
    s->nwaits -= !p->holds;
}

/* ---- places ---------------------------------------------------------------------------------- */

static size_t lock_node_size(const struct lock_node *p)
{
    return sizeof *p + strlen(p->name) + 1 + (p->kept ? TOKEN_CAP : 0) +
           (p->data ? p->ndata + 1 : 0);
}

void clave__lock_node_free(struct lock_model *m, struct lock_node *p)
{
    assert(list_empty(&p->in_session)); /* it has parted from its session */
    assert(m->nplaces > 0 && m->bytes >= lock_node_size(p));
    m->bytes -= lock_node_size(p);
    m->nplaces--;
    if (p->session)
        lock_node_session_drop(m, p->session);
    clave__mem_free(m->mem, p->data);
    clave__mem_free(m->mem, p);
}

/* The parser changes what it reads. */
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
    p->asked = p->asked || id.asked;
}

void clave__lock_node_note_asked(struct lock_node *p)
{
    p->asked = p->asked || (p->kind == QUEUE_LATCH && p->version > 0);
}

bool clave__lock_node_set_data(struct lock_model *m, struct lock_node *p, const void *data,
                               size_t len)
{
    char *copy = NULL;
    if (clave__identity_is_request(data, len)) {
        p->asked = true;
        return true;
    }
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
    m->bytes += copy ? len + 1 : 0;
    lock_node_read_identity(p);
    return true;
}

struct lock_node *clave__lock_node_new(struct lock_model *m, enum queue_kind kind, const char *name,
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
    p->version = stat->version;
    memcpy(p->name, name, n);
    p->number = (uint32_t)(kept ? n + 1 : (size_t)(clave__lock_key_of(name).number - name));
    p->kept = kept;
    if (kept) /* one that may not be read comes last */
        snprintf(p->name + n + 1, TOKEN_CAP, "%016" PRIx64,
                 stat->czxid ? (uint64_t)stat->czxid : UINT64_MAX);
    m->nplaces++;
    m->bytes += lock_node_size(p);
    bool sessionless = clave__queue_node_is_left_over(stat);
    p->left_over = sessionless && !kept;
    if (stat->czxid != 0 && !sessionless) {
        p->session = lock_node_session_get(m, stat->ephemeral_owner);
        if (!p->session) {
            clave__lock_node_free(m, p);
            return NULL;
        }
    }
    return p;
}
