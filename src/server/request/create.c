/* create.c - a node is created, by each of the four opcodes: its mode, the number of a sequential
 * one, its owner, and where it may be. */
#include <stdio.h>

#include "base/path.h"
#include "server/connection/client_limits.h"
#include "server/request/quota.h"
#include "server/request/write.h"

/* So many sequence numbers before the end, a message says so. */
enum { FEW_NUMBERS = 10000000 };

static bool create_is_sequential(int32_t mode)
{
    return mode == MODE_PERSISTENT_SEQUENTIAL || mode == MODE_EPHEMERAL_SEQUENTIAL ||
           mode == MODE_PERSISTENT_SEQUENTIAL_TTL;
}

static bool create_has_ttl(int32_t mode)
{
    return mode == MODE_PERSISTENT_TTL || mode == MODE_PERSISTENT_SEQUENTIAL_TTL;
}

/* Op and mode must agree on whether there is a TTL. */
static clave_err create_check_mode(const struct server *s, int32_t op, const struct wire_create *m)
{
    if (m->flags < MODE_PERSISTENT || m->flags > MODE_PERSISTENT_SEQUENTIAL_TTL)
        return CLAVE_EBADARGS;
    if (create_has_ttl(m->flags) && !s->limits.extended_types)
        return CLAVE_EUNIMPLEMENTED;
    if (create_has_ttl(m->flags) != (op == OP_CREATE_TTL))
        return CLAVE_EBADARGS;
    bool in_range = m->ttl_ms > 0 && m->ttl_ms <= OWNER_MOST_TTL_MS;
    return op == OP_CREATE_TTL && !in_range ? CLAVE_EBADARGS : CLAVE_OK;
}

/* Only the op makes a container; the mode CONTAINER in another op makes a plain node. */
static int64_t create_owner_of(const struct server_conn *c, int32_t op, const struct wire_create *m)
{
    int32_t mode = m->flags;
    if (op == OP_CREATE_CONTAINER)
        return OWNER_CONTAINER;
    if (op == OP_CREATE_TTL)
        return clave__owner_of_ttl(m->ttl_ms);
    return mode == MODE_EPHEMERAL || mode == MODE_EPHEMERAL_SEQUENTIAL ? c->session->id : 0;
}

/* Whether the parent has another number. At the end Apache gives the last one again and again; two
 * nodes with one number are two holders of a lock. */
static bool create_has_number(struct server_conn *c, const struct node *parent)
{
    if (parent->stat.cversion == INT32_MAX - FEW_NUMBERS)
        clave__log(&c->s->log, CLAVE_LOG_WARN,
                   "%d sequence numbers are left below %.*s: continue below another node",
                   FEW_NUMBERS, (int)parent->path_len, clave__node_path(parent));
    return clave__client_limit_allows(c, BOUND_SEQUENCE,
                                      (size_t)(uint32_t)parent->stat.cversion + 1);
}

/* The number is the parent's stored cversion: how many children it ever had. */
static clave_err create_append_sequence(struct server *s, const struct node *parent,
                                        struct jbytes *path)
{
    char digits[16];
    int n = snprintf(digits, sizeof digits, "%010d", (int)parent->stat.cversion);
    clave__buf_clear(&s->scratch.name);
    clave_err err = clave__buf_append(&s->scratch.name, path->p, (size_t)path->n);
    if (err == CLAVE_OK)
        err = clave__buf_append(&s->scratch.name, digits, (size_t)n);
    if (err != CLAVE_OK)
        return CLAVE_ENOMEM;
    *path = clave__jbytes_n(clave__buf_bytes(&s->scratch.name), clave__buf_len(&s->scratch.name));
    return CLAVE_OK;
}

/* A path with fewer bytes than it may have nodes needs no counting. */
static clave_err create_check_size(struct server_conn *c, struct jbytes path)
{
    const struct bound_state *bounds = c->s->refused.bounds;
    size_t n = (size_t)path.n, parent = clave__path_parent_len(path.p, n), depth = 0;
    if (!clave__client_limit_allows(c, BOUND_NAME, n - parent - (parent > 1 ? 1 : 0)))
        return CLAVE_EBADARGS;
    for (size_t i = 0; n > bounds[BOUND_DEPTH].most && i < n; i++)
        depth += path.p[i] == '/';
    return clave__client_limit_allows(c, BOUND_PATH, n) &&
                   clave__client_limit_allows(c, BOUND_DEPTH, depth)
               ? CLAVE_OK
               : CLAVE_EBADARGS;
}

/* Whether a node may be created at this path. */
static clave_err create_check_place(struct server_conn *c, const struct node *parent,
                                    struct jbytes path)
{
    const struct server *s = c->s;
    clave_err err = clave__write_check_path(path);
    if (err == CLAVE_OK)
        err = create_check_size(c, path);
    if (err != CLAVE_OK)
        return err;
    if (clave__tree_find(&s->tree, path))
        return CLAVE_ENODEEXISTS;
    if (clave__owner_kind(parent->stat.owner) == NODE_EPHEMERAL)
        return CLAVE_ENOCHILDREN;
    return CLAVE_OK;
}

/* OperationTimeout is what Curator and kazoo try again by themselves. */
static clave_err create_check_owner(const struct server *s, int64_t owner)
{
    bool refused = s->sessions.of_restore && clave__owner_kind(owner) == NODE_EPHEMERAL;
    return refused ? CLAVE_EOPTIMEOUT : CLAVE_OK;
}

static clave_err create_node(struct server *s, struct change *c, const struct wire_create *m,
                             struct jvec acl)
{
    int32_t cversion = c->parent->stat.cversion;
    c->data = m->data;
    /* cversion stays at its maximum, as in Apache. */
    c->version = cversion < INT32_MAX ? cversion + 1 : cversion;
    c->acl = clave__acls_take(&s->tree.acls, acl, ACL_NEW_KEY);
    clave_err err = c->acl ? clave__txn_make(&s->txn) : CLAVE_ENOMEM;
    if (err == CLAVE_OK)
        c->path = clave__node_path_bytes(c->node); /* outlives the request */
    return err;
}

clave_err clave__write_create(struct server_conn *c, int32_t op, const union wire_body *body)
{
    struct server *s = c->s;
    const struct wire_create *m = &body->create;
    struct jbytes path = m->path;
    struct jvec acl;
    struct change *change;
    int64_t owner = create_owner_of(c, op, m);
    clave_err err = create_check_mode(s, op, m);
    if (err == CLAVE_OK)
        err = clave__write_check_shape(path);
    if (err == CLAVE_OK)
        err = clave__acl_fix_up(m->acl, &c->who, &s->scratch.request, &acl);
    if (err != CLAVE_OK)
        return err;
    struct node *parent = clave__tree_find_parent(&s->tree, path);
    if (!parent)
        return CLAVE_ENONODE;
    err = clave__write_check_access(parent, c, PERM_CREATE);
    if (err == CLAVE_OK && create_is_sequential(m->flags))
        err = create_has_number(c, parent) ? create_append_sequence(s, parent, &path)
                                           : CLAVE_EBADARGS;
    if (err == CLAVE_OK)
        err = create_check_place(c, parent, path);
    if (err == CLAVE_OK && s->limits.enforce_quota)
        err = clave__quota_check(s, path, 1, 0, m->data.n);
    if (err == CLAVE_OK)
        err = create_check_owner(s, owner);
    if (err == CLAVE_OK)
        err = clave__write_add_change(s, op, path, NULL, &change);
    if (err != CLAVE_OK)
        return err;
    change->parent = parent;
    change->owner = owner;
    return create_node(s, change, m, acl);
}
