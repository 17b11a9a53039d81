#include "operator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector.h"
#include "server/connection/conn.h"
#include "wire/frame.h"

enum { INSIDER_TIMEOUT_MS = 4000, INSIDER_UID = 1 };

/* ---- a connection of one request ----------------------------------------------------- */

static void end_frame(struct jwriter *w, size_t begin)
{
    world_must(clave__frame_end(w, begin) == CLAVE_OK);
}

/* `session` 0: a new one. */
static void put_handshake(struct jwriter *w, int64_t session, int32_t timeout_ms)
{
    uint8_t passwd[WIRE_PASSWORD_LEN] = {0};
    if (session)
        clave__session_password(session, passwd);
    struct wire_connect_request q = {
        .timeout_ms = timeout_ms,
        .session_id = session,
        .passwd = clave__jbytes_n(passwd, sizeof passwd),
        .has_read_only = true,
    };
    size_t begin = clave__frame_begin(w);
    clave__wire_put_connect_request(w, &q);
    end_frame(w, begin);
}

static void put_request(struct jwriter *w, int32_t xid, int32_t op, const union wire_body *body)
{
    struct wire_request q = {.xid = xid, .op = op, .body = *body};
    size_t begin = clave__frame_begin(w);
    clave__wire_put_request(w, &q);
    end_frame(w, begin);
}

/* All at once; nobody waits for the answers. */
static void send_from(struct server_host *h, const struct peer_addr *peer, struct buf *b)
{
    struct server_conn *c = clave__server_accept(h->server, peer, NULL);
    world_must(c != NULL);
    clave__server_conn_input(c, clave__buf_bytes(b), clave__buf_len(b));
    while (clave__fair_schedule_has_left(h->server)) /* turns later, or the rest would be lost */
        clave__server_tick(h->server, h->server->now, h->server->wall);
    clave__server_conn_closed(c);
    clave__buf_fini(b);
    server_host_wake(h);
}

/* Handshake, the request, closeSession. */
static void say(struct server_host *h, int64_t session, int32_t op, const union wire_body *body)
{
    static const union wire_body none;
    const struct peer_addr peer = {.text = "insider", .has_uid = true, .uid = INSIDER_UID};
    struct buf b;
    clave__buf_init(&b, &h->net->mem, SIZE_MAX / 4);
    struct jwriter w = clave__jwriter(&b);
    put_handshake(&w, session, INSIDER_TIMEOUT_MS);
    if (body)
        put_request(&w, 1, op, body);
    put_request(&w, 2, OP_CLOSE_SESSION, &none);
    send_from(h, &peer, &b);
}

void operator_intrude(struct server_host *h, int64_t session, int32_t timeout_ms, int32_t op)
{
    static const union wire_body none = {.read = {.path = {"/", 1}}};
    const struct peer_addr peer = {.text = "intruder", .family = 4, .ip = {10, 0, 0, 2}};
    struct buf b;
    clave__buf_init(&b, &h->net->mem, SIZE_MAX / 4);
    struct jwriter w = clave__jwriter(&b);
    put_handshake(&w, session, timeout_ms);
    put_request(&w, op == OP_PING ? XID_PING : 1, op, &none);
    send_from(h, &peer, &b);
}

/* ---- operators ----------------------------------------------------------------------- */

void operator_end_session(struct server_host *h, int64_t session)
{
    say(h, session, 0, NULL);
}

void operator_bar_session(struct server_host *h, int64_t session)
{
    char path[64];
    snprintf(path, sizeof path, "/zookeeper/sessions/0x%llx", (unsigned long long)session);
    union wire_body body = {.check = {clave__jbytes(path), -1}};
    say(h, 0, OP_DELETE, &body);
}

static bool name_child(const struct server_host *h, const char *path, size_t nth, char *out,
                       size_t cap)
{
    const struct node *n = inspector_child(h, path, nth);
    if (n)
        snprintf(out, cap, "%.*s", (int)n->path_len, clave__node_path(n));
    return n != NULL;
}

bool operator_remove_child(struct server_host *h, const char *path, size_t nth, char *out,
                           size_t cap)
{
    if (!name_child(h, path, nth, out, cap))
        return false;
    union wire_body body = {.check = {clave__jbytes(out), -1}};
    say(h, 0, OP_DELETE, &body);
    return true;
}

void operator_write(struct server_host *h, const char *path, struct jbytes data)
{
    union wire_body body = {.set = {clave__jbytes(path), data, -1}};
    say(h, 0, OP_SET_DATA, &body);
}

bool operator_write_child(struct server_host *h, const char *path, size_t nth, char *out,
                          size_t cap)
{
    if (!name_child(h, path, nth, out, cap))
        return false;
    operator_write(h, out, clave__jbytes("scribble"));
    return true;
}

/* ---- clients of other kinds ---------------------------------------------------------- */

struct foreign_client {
    struct alarm alarm;
    struct server_host *host;
    char path[32];
    char prefix[64];
};

/* false: it is gone, also if the power should fail now. */
static bool remove_stranger(struct foreign_client *s)
{
    char node[128];
    const struct node *n;
    size_t len = strlen(s->prefix);
    for (size_t i = 0; (n = inspector_child(s->host, s->path, i)); i++) {
        if (n->path_len < len || memcmp(clave__node_path(n), s->prefix, len) != 0)
            continue;
        (void)operator_remove_child(s->host, s->path, i, node, sizeof node);
        world_log(s->host->w, "foreign", "leaves the queue");
        return true;
    }
    struct server_stats st = inspector_stats(s->host);
    return st.durable_zxid < st.last_zxid;
}

/* Or as soon as the server runs again. */
static void on_leave(struct alarm *a)
{
    struct foreign_client *s = LIST_ENTRY(a, struct foreign_client, alarm);
    struct server_host *h = s->host;
    if (!h->server || h->paused || remove_stranger(s)) {
        world_set(h->w, a, h->w->now + 50 * MS);
        return;
    }
    h->foreign = NULL;
    free(s);
}

bool operator_enqueue(struct server_host *h, const char *path, const char *name, int64_t us)
{
    if (h->foreign || !inspector_has_node(h, path, 0))
        return false;
    struct foreign_client *s = world_alloc(sizeof *s);
    s->host = h;
    s->alarm.fire = on_leave;
    snprintf(s->path, sizeof s->path, "%s", path);
    snprintf(s->prefix, sizeof s->prefix, "%s/%s", path, name);
    struct buf acl;
    clave__buf_init(&acl, &h->net->mem, 64);
    struct jwriter w = clave__jwriter(&acl);
    struct wire_acl open = {PERM_ALL, clave__jbytes("world"), clave__jbytes("anyone")};
    clave__wire_put_acl(&w, &open);
    union wire_body body = {
        .create = {.path = clave__jbytes(s->prefix),
                   .data = clave__jbytes("stranger"),
                   .acl = {1, clave__buf_bytes(&acl), clave__buf_len(&acl)},
                   .flags = MODE_PERSISTENT_SEQUENTIAL},
    };
    say(h, 0, OP_CREATE, &body);
    clave__buf_fini(&acl);
    h->foreign = s;
    world_set(h->w, &s->alarm, h->w->now + us);
    return true;
}

void operator_write_config(struct server *s, const char *text)
{
    struct tree *t = &s->tree;
    struct node *n = clave__tree_find(t, clave__jbytes("/zookeeper/config"));
    uint8_t *data;
    int32_t len = (int32_t)strlen(text);
    world_must(n && clave__tree_copy_data(t, clave__jbytes(text), &data) == CLAVE_OK);
    clave__tree_swap_data(t, n, &data, &len);
    clave__tree_free_data(t, n, data);
    clave__tree_changed(t, n);
}

bool operator_exhaust_counter(struct server_host *h, const char *path, int32_t left)
{
    struct node *n = clave__tree_find(&h->server->tree, clave__jbytes(path));
    if (!n || n->stat.cversion > INT32_MAX - left)
        return false;
    n->stat.cversion =
        INT32_MAX - left; /* its digest follows with its next change, as in the log */
    h->counter_was_set = true;
    return true;
}

void operator_fini(struct server_host *h)
{
    if (h->foreign)
        world_clear(h->w, &h->foreign->alarm);
    free(h->foreign);
    h->foreign = NULL;
}
