#include "lib/memserver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define WALL_AT_BOOT ((int64_t)1700000000 * 1000)

/* As assert, but also in a build without asserts. */
static void must(bool fine)
{
    if (!fine)
        abort();
}

/* ---- the server ------------------------------------------------------------------------------ */

static void keep_line(void *arg, int level, const char *msg)
{
    struct memserver *d = arg;
    size_t n = strlen(d->lines);
    (void)level;
    snprintf(d->lines + n, sizeof d->lines - n, "%s\n", msg);
}

clave_err memserver_open_bare(struct memserver *d, const struct server_options *o)
{
    memset(d, 0, sizeof *d);
    if (o)
        d->o = *o;
    if (!d->o.log) {
        d->o.log = keep_line;
        d->o.log_arg = d;
    }
    d->mem = clave__mem_or_default(NULL);
    d->now = 1000000;
    clave__buf_init(&d->log, &d->mem, SIZE_MAX / 4);
    must(clave__buf_reserve(&d->log, SERVER_LOG_HEADER) == CLAVE_OK);
    clave__server_log_header(d->log.data);
    d->log.tail = SERVER_LOG_HEADER;
    return clave__server_new(&d->s, &d->o);
}

void memserver_start(struct memserver *d)
{
    clave__server_start(d->s, d->now, memserver_wall(d));
    memserver_settle(d);
}

void memserver_open(struct memserver *d, const struct server_options *o)
{
    must(memserver_open_bare(d, o) == CLAVE_OK);
    memserver_start(d);
}

void memserver_close(struct memserver *d)
{
    clave__server_free(d->s);
    clave__buf_fini(&d->log);
    d->s = NULL;
}

int64_t memserver_wall(const struct memserver *d)
{
    return WALL_AT_BOOT + d->now;
}

static void take_records(struct memserver *d)
{
    struct log_batch b = clave__server_log_pending(d->s);
    if (b.n == 0 || clave__server_log_waits(d->s))
        return;
    must(clave__buf_append(&d->log, b.p, b.n) == CLAVE_OK);
    d->taken_zxid = b.last_zxid;
    clave__server_log_taken(d->s);
}

void memserver_flush(struct memserver *d)
{
    take_records(d);
    clave__server_durable(d->s, d->taken_zxid);
}

static void serve(struct server_conn *conn)
{
    struct memserver_conn *c = clave__server_conn_user(conn);
    const void *p;
    size_t n;
    while (!c->deaf && (n = clave__server_conn_output(conn, &p)) > 0) {
        must(clave__buf_append(&c->in, p, n) == CLAVE_OK);
        clave__server_conn_sent(conn, n);
    }
    if (!clave__server_conn_wants_close(conn))
        return;
    clave__server_conn_closed(conn);
    c->c = NULL;
}

void memserver_settle(struct memserver *d)
{
    struct server_conn *conn;
    bool any = true;
    while (any) {
        take_records(d);
        if (!d->disk_stands)
            clave__server_durable(d->s, d->taken_zxid);
        any = false;
        while ((conn = clave__server_next_ready(d->s))) {
            serve(conn);
            any = true;
        }
    }
}

void memserver_advance(struct memserver *d, int64_t ms)
{
    int64_t target = d->now + ms;
    unsigned spins = 0;
    for (int64_t at; (at = clave__server_deadline(d->s)) <= target;) {
        must(spins++ < 100000);
        must(at > d->now || spins < 3); /* a deadline may not stay due */
        d->now = at > d->now ? at : d->now;
        clave__server_tick(d->s, d->now, memserver_wall(d));
        memserver_settle(d);
    }
    d->now = target;
    clave__server_tick(d->s, d->now, memserver_wall(d));
    memserver_settle(d);
}

struct server_stats memserver_stats(const struct memserver *d)
{
    struct server_stats st;
    clave__server_stats(d->s, &st);
    return st;
}

/* ---- connections
 * --------------------------------------------------------------------------------- */

void memserver_dial_peer(struct memserver_conn *c, struct memserver *d,
                         const struct peer_addr *peer)
{
    memset(c, 0, sizeof *c);
    c->d = d;
    clave__buf_init(&c->in, &d->mem, SIZE_MAX / 4);
    c->c = clave__server_accept(d->s, peer, c);
}

void memserver_dial_from(struct memserver_conn *c, struct memserver *d, uint8_t last_of_ip)
{
    struct peer_addr peer = {.family = 4, .ip = {127, 0, 0, last_of_ip}, .port = 42100};
    snprintf(peer.text, sizeof peer.text, "127.0.0.%u:42100", last_of_ip);
    memserver_dial_peer(c, d, &peer);
}

void memserver_dial(struct memserver_conn *c, struct memserver *d)
{
    memserver_dial_from(c, d, 1);
}

void memserver_hang_up(struct memserver_conn *c)
{
    if (c->c)
        clave__server_conn_closed(c->c);
    c->c = NULL;
    clave__buf_fini(&c->in);
}

void memserver_send(struct memserver_conn *c, const void *p, size_t n)
{
    if (c->c)
        clave__server_conn_input(c->c, p, n);
    memserver_settle(c->d);
}

void memserver_take_output(struct memserver_conn *c)
{
    c->deaf = false;
    if (c->c)
        serve(c->c);
    memserver_settle(c->d);
}

void memserver_send_frame(struct memserver_conn *c, const void *p, size_t n)
{
    struct buf b;
    clave__buf_init(&b, &c->d->mem, SIZE_MAX / 4);
    struct jwriter w = clave__jwriter(&b);
    clave__jput_bytes(&w, clave__jbytes_n(p, n));
    must(w.err == CLAVE_OK);
    memserver_send(c, b.data, b.tail);
    clave__buf_fini(&b);
}

/* The frame at the head of what has come; it stays there. */
static bool peek(const struct memserver_conn *c, struct jreader *frame)
{
    struct jreader r = clave__jreader(clave__buf_bytes(&c->in), clave__buf_len(&c->in));
    struct jbytes b = clave__jget_bytes(&r);
    *frame = clave__jreader(b.p, b.n > 0 ? (size_t)b.n : 0);
    return !r.bad;
}

/* Consumes it. Its bytes stay where they are until something else comes. */
static bool take(struct memserver_conn *c, struct jreader *frame)
{
    if (!peek(c, frame))
        return false;
    clave__buf_consume(&c->in, 4 + frame->n);
    return true;
}

bool memserver_handshake(struct memserver_conn *c, const struct wire_connect_request *q,
                         struct wire_connect_response *out)
{
    struct buf b;
    struct jreader r;
    clave__buf_init(&b, &c->d->mem, 4096);
    struct jwriter w = clave__jwriter(&b);
    clave__wire_put_connect_request(&w, q);
    must(w.err == CLAVE_OK);
    memserver_send_frame(c, b.data, b.tail);
    clave__buf_fini(&b);
    if (!take(c, &r))
        return false;
    *out = clave__wire_get_connect_response(&r);
    must(!r.bad && out->passwd.n == WIRE_PASSWORD_LEN);
    c->session = out->session_id;
    c->timeout_ms = out->timeout_ms;
    memcpy(c->passwd, out->passwd.p, sizeof c->passwd);
    return true;
}

static void new_session(struct memserver_conn *c, int32_t timeout_ms)
{
    struct wire_connect_request q = {.timeout_ms = timeout_ms, .has_read_only = true};
    struct wire_connect_response r;
    q.passwd = clave__jbytes_n(c->passwd, sizeof c->passwd);
    must(memserver_handshake(c, &q, &r) && r.session_id != 0);
}

void memserver_connect(struct memserver_conn *c, struct memserver *d, int32_t timeout_ms)
{
    memserver_dial(c, d);
    new_session(c, timeout_ms);
}

void memserver_connect_local(struct memserver_conn *c, struct memserver *d, uint32_t uid)
{
    const struct peer_addr peer = {.text = "local", .has_uid = true, .uid = uid};
    memserver_dial_peer(c, d, &peer);
    new_session(c, 10000);
}

bool memserver_resume(struct memserver_conn *c, const struct memserver_conn *of)
{
    struct wire_connect_request q = {.timeout_ms = of->timeout_ms, .session_id = of->session};
    struct wire_connect_response r;
    struct memserver_conn old = *of;
    q.passwd = clave__jbytes_n(old.passwd, sizeof old.passwd);
    memserver_dial(c, old.d);
    return memserver_handshake(c, &q, &r) && r.timeout_ms > 0;
}

/* ---- requests
 * ------------------------------------------------------------------------------------ */

static int32_t xid_for(struct memserver_conn *c, int32_t op)
{
    switch (op) {
    case OP_PING:
        return XID_PING;
    case OP_AUTH:
        return XID_AUTH;
    case OP_SET_WATCHES:
    case OP_SET_WATCHES2:
        return XID_SET_WATCHES;
    default:
        return ++c->xid;
    }
}

int32_t memserver_request(struct memserver_conn *c, int32_t op, const union wire_body *body)
{
    static const union wire_body none;
    struct wire_request q = {.xid = xid_for(c, op), .op = op, .body = body ? *body : none};
    struct buf b;
    clave__buf_init(&b, &c->d->mem, SIZE_MAX / 4);
    struct jwriter w = clave__jwriter(&b);
    clave__wire_put_request(&w, &q);
    must(w.err == CLAVE_OK);
    memserver_send_frame(c, b.data, b.tail);
    clave__buf_fini(&b);
    return q.xid;
}

bool memserver_next(struct memserver_conn *c, struct wire_reply_header *h, struct jreader *rest)
{
    if (!take(c, rest))
        return false;
    *h = clave__wire_get_reply_header(rest);
    must(!rest->bad);
    return true;
}

clave_err memserver_call(struct memserver_conn *c, int32_t op, const union wire_body *body,
                         struct wire_reply *out)
{
    struct wire_reply_header h;
    struct jreader r;
    int32_t xid = memserver_request(c, op, body);
    if (!memserver_next(c, &h, &r))
        return CLAVE_ECONNLOSS;
    must(h.xid == xid);
    if (h.err != 0)
        return (clave_err)h.err;
    struct wire_reply reply = clave__wire_get_reply(&r, op);
    must(!r.bad && r.n == 0);
    if (out)
        *out = reply;
    return CLAVE_OK;
}

struct jvec memserver_acl(int32_t perms, const char *scheme, const char *id)
{
    static uint8_t room[256];
    struct clave_mem mem = clave__mem_or_default(NULL);
    struct wire_acl a = {perms, clave__jbytes(scheme), clave__jbytes(id)};
    struct buf b;
    clave__buf_init(&b, &mem, sizeof room);
    struct jwriter w = clave__jwriter(&b);
    clave__wire_put_acl(&w, &a);
    must(w.err == CLAVE_OK);
    memcpy(room, b.data, b.tail);
    struct jvec v = {1, room, b.tail};
    clave__buf_fini(&b);
    return v;
}

union wire_body memserver_create_body(const char *path, const char *data, int32_t mode)
{
    union wire_body b = {.create = {.path = clave__jbytes(path),
                                    .data = clave__jbytes(data),
                                    .acl = memserver_acl(PERM_ALL, "world", "anyone"),
                                    .flags = mode}};
    return b;
}

clave_err memserver_create(struct memserver_conn *c, const char *path, const char *data,
                           int32_t mode)
{
    union wire_body b = memserver_create_body(path, data, mode);
    return memserver_call(c, mode == MODE_CONTAINER ? OP_CREATE_CONTAINER : OP_CREATE, &b, NULL);
}

clave_err memserver_delete(struct memserver_conn *c, const char *path, int32_t version)
{
    union wire_body b = {.check = {clave__jbytes(path), version}};
    return memserver_call(c, OP_DELETE, &b, NULL);
}

clave_err memserver_set(struct memserver_conn *c, const char *path, const char *data,
                        int32_t version)
{
    union wire_body b = {.set = {clave__jbytes(path), clave__jbytes(data), version}};
    return memserver_call(c, OP_SET_DATA, &b, NULL);
}

clave_err memserver_stat(struct memserver_conn *c, const char *path, struct wire_stat *out)
{
    union wire_body b = {.read = {clave__jbytes(path), false}};
    struct wire_reply r;
    clave_err err = memserver_call(c, OP_EXISTS, &b, &r);
    if (err == CLAVE_OK)
        *out = r.stat;
    return err;
}

clave_err memserver_watch(struct memserver_conn *c, int32_t op, const char *path)
{
    union wire_body b = {.read = {clave__jbytes(path), true}};
    return memserver_call(c, op, &b, NULL);
}

/* ---- events
 * ---------------------------------------------------------------------------------------- */

static const char *type_name(int32_t type)
{
    switch (type) {
    case EVENT_CREATED:
        return "CREATED";
    case EVENT_DELETED:
        return "DELETED";
    case EVENT_DATA_CHANGED:
        return "DATA";
    case EVENT_CHILDREN_CHANGED:
        return "CHILDREN";
    default:
        return "?";
    }
}

const char *memserver_events(struct memserver_conn *c)
{
    static char text[4096];
    struct jreader r;
    size_t n = 0;
    text[0] = '\0';
    while (peek(c, &r)) {
        struct wire_reply_header h = clave__wire_get_reply_header(&r);
        if (h.xid != XID_EVENT)
            break;
        struct wire_event e = clave__wire_get_event(&r);
        must(!r.bad && r.n == 0 && e.state == STATE_SYNC_CONNECTED && h.err == 0);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %.*s", n ? ", " : "",
                              type_name(e.type), (int)e.path.n, e.path.p);
        must(n < sizeof text);
        take(c, &r);
    }
    return text;
}
