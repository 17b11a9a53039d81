/* transaction.c - a transaction from its beginning to its commit: requests, sessions that end and
 * container_ttl.c make their changes in s->txn (store/txn.h) between the two. A commit logs it,
 * counts it for the quotas, and fires its watches; only then may it be answered. As in ZooKeeper, a
 * request that fails also takes a zxid and is logged.
 *
 * What must stay true: a change that could not be logged is undone before anything else happens, so
 * the tree, the log and its digests agree. */
#include <assert.h>

#include "server/request/request.h"

void clave__write_begin(struct server *s, int64_t client, int32_t cxid, int32_t type)
{
    struct txn_head head = {client, cxid, s->last_zxid + 1, s->wall, type};
    clave__txn_begin(&s->txn, &head);
}

struct event_delivery {
    int64_t zxid;
    const struct acl *acl;
};

/* Sends an event to a watcher. It would reveal that the node exists, so it goes only to clients
 * that may read the node. */
static void write_send_event(void *arg, struct watcher *w, const struct watch_event *ev)
{
    const struct event_delivery *t = arg;
    struct server_conn *c = LIST_ENTRY(w, struct server_conn, watcher);
    if (clave__conn_is_open(c) && clave__acl_allows(t->acl, &c->who, PERM_READ))
        clave__conn_send_event(c, t->zxid, t->zxid, ev);
}

static void write_fire(struct server *s, int32_t type, const struct node *n)
{
    struct event_delivery t = {s->txn.head.zxid, n->acl};
    struct watch_event ev = {type, clave__node_path_bytes(n), ++s->event_number};
    if (ev.path.n == 0)
        ev.path = clave__jbytes("/");
    clave__watch_fire(&s->watches, &ev, write_send_event, &t);
}

/* setACL and check fire no events. */
static void write_fire_change(struct server *s, const struct change *c)
{
    switch (clave__opcode(c->type)->effect) {
    case EFFECT_CREATE:
        write_fire(s, EVENT_CREATED, c->node);
        write_fire(s, EVENT_CHILDREN_CHANGED, c->parent);
        break;
    case EFFECT_DELETE:
        write_fire(s, EVENT_DELETED, c->node);
        write_fire(s, EVENT_CHILDREN_CHANGED, c->parent);
        break;
    case EFFECT_SET_DATA:
        write_fire(s, EVENT_DATA_CHANGED, c->node);
        break;
    }
}

/* How an ephemeral node came to be removed. Cxid 0 marks a session that the server itself ended
 * because it expired: requests of clients have other numbers. */
static enum server_gone write_how_gone(const struct txn_head *head, const struct node *n)
{
    if (head->type == OP_CLOSE_SESSION)
        return head->cxid == 0 ? GONE_SESSION_EXPIRED : GONE_SESSION_CLOSED;
    return n->stat.owner == head->client ? GONE_DELETED : GONE_DELETED_BY_OTHER;
}

static void write_tell_gone(const struct server *s)
{
    const struct txn *t = &s->txn;
    for (size_t i = 0; i < t->count; i++) {
        const struct change *c = &t->changes[i];
        if (c->state == CHANGE_DONE && clave__opcode(c->type)->effect == EFFECT_DELETE &&
            clave__owner_kind(c->node->stat.owner) == NODE_EPHEMERAL)
            s->driver.node_gone(s->driver.node_gone_arg, c->node->stat.czxid,
                                write_how_gone(&t->head, c->node));
    }
}

clave_err clave__write_commit(struct server *s)
{
    s->turn.looks += s->txn.count * LOOKS_A_CHANGE;
    clave_err err = clave__txn_log_append(s);
    if (err != CLAVE_OK) {
        clave__txn_undo(&s->txn);
        clave__txn_end(&s->txn);
        return err;
    }
    clave__quota_note(s);
    for (size_t i = 0; i < s->txn.count && s->watches.count > 0; i++)
        if (s->txn.changes[i].state == CHANGE_DONE)
            write_fire_change(s, &s->txn.changes[i]);
    if (s->driver.node_gone)
        write_tell_gone(s);
    return CLAVE_OK;
}

clave_err clave__write_fail(struct server *s, clave_err why)
{
    assert(why != CLAVE_OK);
    s->turn.looks += s->txn.count * LOOKS_A_CHANGE;
    clave__txn_undo(&s->txn);
    clave__txn_end(&s->txn);
    if (why == CLAVE_ENOMEM)
        return why;
    s->txn.head.type = OP_ERROR;
    s->txn.err = why;
    return clave__txn_log_append(s);
}
