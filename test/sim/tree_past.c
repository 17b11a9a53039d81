#include "tree_past.h"

#include <stdlib.h>
#include <string.h>

#include "server/store/txn_log.h"

const char *const past_paths[PAST_NODES] = {"/w", "/w/a", "/w/a/x", "/w/b", "/w/c"};

static const unsigned parents[PAST_NODES] = {PAST_NODES, PAST_TOP, PAST_A, PAST_TOP, PAST_TOP};

/* ---- states -------------------------------------------------------------------------- */

const struct past_state *tree_past_at(const struct tree_past *p, unsigned node, int64_t zxid)
{
    static const struct past_state never;
    const struct past_node *n = &p->nodes[node];
    size_t i = n->n;
    while (i > 0 && n->states[i - 1].zxid > zxid)
        i--;
    return i > 0 ? &n->states[i - 1] : &never;
}

/* The state as of this transaction, to be changed: at first it is that of the one before. */
static struct past_state *past_state_of(struct tree_past *p, unsigned node, int64_t zxid)
{
    struct past_node *n = &p->nodes[node];
    struct past_state next = *tree_past_at(p, node, INT64_MAX);
    if (next.zxid == zxid)
        return &n->states[n->n - 1];
    if (n->n == n->cap) {
        n->cap = n->cap ? 2 * n->cap : 64;
        n->states = world_grow(n->states, n->cap * sizeof *n->states);
    }
    next.zxid = zxid;
    n->states[n->n] = next;
    return &n->states[n->n++];
}

static void past_note_child(struct tree_past *p, unsigned node, int64_t zxid, int32_t more)
{
    if (parents[node] == PAST_NODES)
        return;
    struct past_state *s = past_state_of(p, parents[node], zxid);
    s->children += more;
    s->pzxid = zxid;
}

static bool is_readable(struct jvec acl)
{
    struct jreader r = clave__jvec_reader(acl);
    return (clave__wire_get_acl(&r).perms & PERM_READ) != 0;
}

static int64_t value_of(struct jbytes data)
{
    char digits[24] = "";
    memcpy(digits, data.p, data.n < 23 ? (size_t)data.n : 23);
    return strtoll(digits, NULL, 10);
}

/* ---- transactions -------------------------------------------------------------------- */

static unsigned node_of(struct jbytes path)
{
    unsigned i = 0;
    while (i < PAST_NODES && !clave__jbytes_eq(path, clave__jbytes(past_paths[i])))
        i++;
    return i;
}

static void note_change(struct tree_past *p, const struct txn_head *h,
                        const struct change_record *c)
{
    unsigned node = node_of(c->path);
    if (node == PAST_NODES)
        return;
    struct past_state *s = past_state_of(p, node, h->zxid);
    switch (c->kind->type) {
    case OP_CREATE:
        *s = (struct past_state){.zxid = h->zxid,
                                 .exists = true,
                                 .readable = is_readable(c->acl),
                                 .mzxid = h->zxid,
                                 .pzxid = h->zxid,
                                 .owner = c->ephemeral ? h->client : 0,
                                 .value = value_of(c->data)};
        past_note_child(p, node, h->zxid, 1);
        break;
    case OP_DELETE:
        *s = (struct past_state){.zxid = h->zxid};
        past_note_child(p, node, h->zxid, -1);
        break;
    case OP_SET_DATA:
        s->mzxid = h->zxid;
        s->version = c->version;
        s->value = value_of(c->data);
        break;
    case OP_SET_ACL:
        s->aversion = c->version;
        s->readable = is_readable(c->acl);
        break;
    default:
        break;
    }
}

static void note_end(struct tree_past *p, const struct txn_head *h)
{
    if (p->nends == p->ends_cap) {
        p->ends_cap = p->ends_cap ? 2 * p->ends_cap : 64;
        p->ends = world_grow(p->ends, p->ends_cap * sizeof *p->ends);
    }
    p->ends[p->nends++] = (struct past_session_end){h->zxid, h->client};
}

static void note_record(struct tree_past *p, const struct record *rec)
{
    struct txn_record t;
    struct change_record c;
    world_must(clave__txn_record_read(&t, rec->payload, rec->n));
    if (t.head.type == OP_CLOSE_SESSION)
        note_end(p, &t.head);
    struct jreader at = t.body;
    while (!t.failed && clave__txn_record_next(&t, &at, &c))
        note_change(p, &t.head, &c);
}

static void on_proposed(void *arg, const struct disk_batch *b)
{
    const uint8_t *bytes = b->p;
    struct record rec;
    for (size_t at = 0; at < b->n; at += LOG_RECORD_HEAD + rec.n + 1) {
        world_must(clave__txn_log_look_at(bytes + at, b->n - at, &rec) == FOUND_RECORD);
        note_record(arg, &rec);
    }
}

static void on_committed(void *arg, int64_t zxid)
{
    struct tree_past *p = arg;
    p->durable = zxid > p->durable ? zxid : p->durable;
}

/* What comes after `zxid` never was. */
static void on_recovered(void *arg, int64_t zxid)
{
    struct tree_past *p = arg;
    if (zxid < p->shown)
        world_break(p->w, "nothing that was shown is undone",
                    "a client was told of zxid %lld, the server knows %lld", (long long)p->shown,
                    (long long)zxid);
    for (unsigned i = 0; i < PAST_NODES; i++)
        while (p->nodes[i].n > 0 && p->nodes[i].states[p->nodes[i].n - 1].zxid > zxid)
            p->nodes[i].n--;
    while (p->nends > 0 && p->ends[p->nends - 1].zxid > zxid)
        p->nends--;
    p->durable = zxid;
}

/* ---- what was told ------------------------------------------------------------------- */

void tree_past_note_shown(struct tree_past *p, const char *who, int64_t zxid)
{
    p->shown = zxid > p->shown ? zxid : p->shown;
    if (zxid > p->durable)
        world_break(p->w, "what is shown is on the disk",
                    "%s was told of zxid %lld, the disk has %lld", who, (long long)zxid,
                    (long long)p->durable);
}

bool tree_past_has_ended(const struct tree_past *p, int64_t session)
{
    for (size_t i = 0; i < p->nends; i++)
        if (p->ends[i].session == session && p->ends[i].zxid <= p->durable)
            return true;
    return false;
}

/* ---- life ---------------------------------------------------------------------------- */

void tree_past_init(struct tree_past *p, struct server_host *h)
{
    *p = (struct tree_past){.w = h->w};
    h->proposed = on_proposed;
    h->committed = on_committed;
    h->recovered = on_recovered;
    h->log_arg = p;
}

void tree_past_fini(struct tree_past *p)
{
    for (unsigned i = 0; i < PAST_NODES; i++)
        free(p->nodes[i].states);
    free(p->ends);
}
