/* memnet_frames.c - one end's bytes, frame by frame: which message it is, and what its rule says.
 */
#include <string.h>

#include "base/memory.h"
#include "lib/memnet_internal.h"
#include "server/request/write.h"
#include "server/server_internal.h"

static struct pair_end *end_of(const struct server_conn *conn)
{
    return clave__server_conn_user(conn);
}

/* ---- the server's output -------------------------------------------------------------------- */

static void persist(struct pair *p)
{
    struct log_batch batch = clave__server_log_pending(p->server);
    if (batch.n == 0)
        return;
    must(clave__buf_append(&p->log, batch.p, batch.n) == CLAVE_OK);
    clave__server_log_taken(p->server);
    clave__server_durable(p->server, batch.last_zxid);
}

/* To whom does not matter: each has its own queue. */
bool pair__collect(struct pair *p)
{
    if (!p->server)
        return false;
    persist(p);
    bool any = false;
    struct server_conn *conn;
    while ((conn = clave__server_next_ready(p->server))) {
        struct pair_end *e = end_of(conn);
        const void *out;
        size_t n;
        while ((n = clave__server_conn_output(conn, &out)) > 0) {
            must(e->severed || clave__buf_append(&e->down, out, n) == CLAVE_OK);
            clave__server_conn_sent(conn, n);
        }
        if (clave__server_conn_wants_close(conn)) {
            clave__server_conn_closed(conn);
            e->conn = NULL;
            e->closing = !e->severed;
        }
        any = true;
    }
    return any;
}

/* ---- one connection ------------------------------------------------------------------------- */

void pair__forget_connection(struct pair_end *e)
{
    clave__buf_clear(&e->up);
    clave__buf_clear(&e->down);
    e->conn = NULL;
    e->severed = e->closing = e->up_shaken = e->down_shaken = false;
    e->ops_head = e->ops_tail = 0;
}

void pair__cut(struct pair *p, struct pair_end *e)
{
    if (!e->conn && !e->closing)
        return;
    if (e->conn)
        clave__server_conn_closed(e->conn);
    pair__forget_connection(e);
    if (!e->frozen)
        clave_async_client_disconnected(e->c, p->now);
    pair__collect(p);
}

static void dial(struct pair *p, struct pair_end *e)
{
    struct peer_addr addr = {.text = "pair"};
    pair__forget_connection(e);
    if (p->server && !e->refused)
        e->conn = clave__server_accept(p->server, &addr, e);
    if (e->conn)
        clave_async_client_connected(e->c, p->now);
    else
        clave_async_client_disconnected(e->c, p->now);
}

/* ---- messages ------------------------------------------------------------------------------- */

int32_t pair__frame_int(const uint8_t *b)
{
    return (int32_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]);
}

size_t pair__whole_frame(const struct buf *b)
{
    size_t len = clave__buf_len(b);
    if (len < 4)
        return 0;
    size_t n = 4 + (size_t)pair__frame_int(clave__buf_bytes(b));
    return n <= len ? n : 0;
}

/* A client asks for it by itself, on each connection. */
static bool asks_for_config(const uint8_t *frame, size_t n)
{
    static const char path[] = "/zookeeper/config";
    enum { AT = 4 + 4 + 4, LEN = sizeof path - 1 };
    return n >= AT + 4 + LEN && pair__frame_int(frame + AT) == LEN &&
           memcmp(frame + AT + 4, path, LEN) == 0;
}

int pair__op_of_request(const struct pair_end *e, const uint8_t *p, size_t n)
{
    int op = e->up_shaken ? pair__frame_int(p + 8) : PAIR_HANDSHAKE;
    return op == OP_GET_DATA && asks_for_config(p, n) ? PAIR_CONFIG : op;
}

int pair__op_of_reply(const struct pair_end *e, const uint8_t *p)
{
    if (!e->down_shaken)
        return PAIR_HANDSHAKE;
    switch (pair__frame_int(p + 4)) {
    case XID_EVENT:
        return OP_NOTIFICATION;
    case XID_PING:
        return OP_PING;
    case XID_AUTH:
        return OP_AUTH;
    default:
        return e->ops[e->ops_head % PAIR_UNANSWERED];
    }
}

/* To rules and counts the look at the configuration is the read that it is. */
static int plain(int op)
{
    return op == PAIR_CONFIG ? OP_GET_DATA : op;
}

static bool matches(const struct pair_rule *r, size_t client, enum pair_way way, int op)
{
    return r->client == client && r->way == way && (r->op == op || r->op == PAIR_ANY);
}

/* The rule that holds for a message, or NULL. */
static struct pair_rule *judge(struct pair *p, struct pair_end *e, enum pair_way way, int op)
{
    for (size_t i = 0; i < p->nrules; i++) {
        struct pair_rule *r = &p->rules[i];
        if (!matches(r, (size_t)(e - p->end), way, op))
            continue;
        if (r->skip == 0)
            return r;
        r->skip--;
    }
    return NULL;
}

static void note_request(struct pair_end *e, int op, int32_t xid)
{
    e->up_shaken = true;
    if (plain(op) >= 0 && plain(op) < PAIR_OPS)
        e->requests[plain(op)]++;
    if (op != PAIR_HANDSHAKE && xid != XID_PING && xid != XID_AUTH)
        e->ops[e->ops_tail++ % PAIR_UNANSWERED] = op;
    must(e->ops_tail - e->ops_head <= PAIR_UNANSWERED);
}

static void note_reply(struct pair_end *e, int op, int32_t xid)
{
    e->down_shaken = true;
    if (op == OP_NOTIFICATION)
        e->events++;
    if (op != PAIR_HANDSHAKE && xid != XID_EVENT && xid != XID_PING && xid != XID_AUTH)
        e->ops_head++;
}

static void deliver(struct pair *p, struct pair_end *e, enum pair_way way, int op,
                    const uint8_t *frame, size_t n)
{
    if (way == PAIR_REQUEST) {
        note_request(e, op, pair__frame_int(frame + 4));
        clave__server_conn_input(e->conn, frame, n);
        pair__collect(p);
    } else {
        note_reply(e, op, pair__frame_int(frame + 4));
        clave_async_client_input(e->c, p->now, frame, n);
    }
}

bool pair__carry(struct pair *p, struct pair_end *e, enum pair_way way)
{
    struct buf *b = way == PAIR_REQUEST ? &e->up : &e->down;
    size_t n = pair__whole_frame(b);
    if (n == 0 || (way == PAIR_REQUEST && !e->conn))
        return false;
    const uint8_t *frame = clave__buf_bytes(b);
    int op = way == PAIR_REQUEST ? pair__op_of_request(e, frame, n) : pair__op_of_reply(e, frame);
    struct pair_rule *rule = judge(p, e, way, plain(op));
    enum pair_fate fate = rule ? rule->fate : PAIR_PASS_CUT;
    if (rule && fate == PAIR_HOLD)
        return false;
    if (rule)
        *rule = p->rules[--p->nrules];
    if (!rule || fate == PAIR_PASS_CUT) {
        /* The buffer may be cleared from inside: the frame is carried as a copy. */
        uint8_t *copy = malloc(n);
        must(copy != NULL);
        memcpy(copy, frame, n);
        clave__buf_consume(b, n);
        deliver(p, e, way, op, copy, n);
        free(copy);
    }
    if (rule)
        pair__cut(p, e);
    return true;
}

bool pair__send_up(struct pair *p, struct pair_end *e)
{
    const void *out;
    size_t n = clave_async_client_output(e->c, &out);
    if (n == 0 || !e->conn)
        return false;
    must(clave__buf_append(&e->up, out, n) == CLAVE_OK);
    clave_async_client_sent(e->c, p->now, n);
    return true;
}

bool pair__step(struct pair *p, struct pair_end *e)
{
    if (e->frozen)
        return false;
    unsigned wants = clave_async_client_wants(e->c);
    if (wants & CLAVE_WANT_HANGUP) {
        bool open = e->conn || e->closing;
        pair__cut(p, e);
        if (!open)
            clave_async_client_disconnected(e->c, p->now);
        return true;
    }
    if (wants & CLAVE_WANT_DIAL) {
        dial(p, e);
        return true;
    }
    bool any = (wants & CLAVE_WANT_WRITE) && pair__send_up(p, e);
    any = pair__carry(p, e, PAIR_REQUEST) || any;
    any = pair__carry(p, e, PAIR_REPLY) || any;
    if (e->closing && clave__buf_len(&e->down) == 0) {
        pair__cut(p, e);
        any = true;
    }
    return any;
}
