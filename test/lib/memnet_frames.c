/* memnet_frames.c - one client's bytes, frame by frame: which message it is, and what its rule
 * says.
 */
#include <string.h>

#include "base/memory.h"
#include "lib/memnet_internal.h"
#include "server/request/request.h"
#include "server/server_internal.h"

static struct memnet_client *end_of(const struct server_conn *conn)
{
    return clave__server_conn_user(conn);
}

/* ---- the server's output -------------------------------------------------------------------- */

static void persist(struct memnet *p)
{
    struct log_batch batch = clave__server_log_pending(p->server);
    if (batch.n == 0)
        return;
    must(clave__buf_append(&p->log, batch.p, batch.n) == CLAVE_OK);
    clave__server_log_taken(p->server);
    clave__server_durable(p->server, batch.last_zxid);
}

/* To whom does not matter: each has its own queue. */
bool memnet__collect(struct memnet *p)
{
    if (!p->server)
        return false;
    persist(p);
    bool any = false;
    struct server_conn *conn;
    while ((conn = clave__server_next_ready(p->server))) {
        struct memnet_client *e = end_of(conn);
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

void memnet__forget_connection(struct memnet_client *e)
{
    clave__buf_clear(&e->up);
    clave__buf_clear(&e->down);
    e->conn = NULL;
    e->severed = e->closing = e->up_shaken = e->down_shaken = false;
    e->ops_head = e->ops_tail = 0;
}

void memnet__cut(struct memnet *p, struct memnet_client *e)
{
    if (!e->conn && !e->closing)
        return;
    if (e->conn)
        clave__server_conn_closed(e->conn);
    memnet__forget_connection(e);
    if (!e->frozen)
        clave_async_client_disconnected(e->c, p->now);
    memnet__collect(p);
}

static void dial(struct memnet *p, struct memnet_client *e)
{
    struct peer_addr addr = {.text = "pair"};
    memnet__forget_connection(e);
    if (p->server && !e->refused)
        e->conn = clave__server_accept(p->server, &addr, e);
    e->dials += e->conn != NULL;
    if (e->conn)
        clave_async_client_connected(e->c, p->now);
    else
        clave_async_client_disconnected(e->c, p->now);
}

/* ---- messages ------------------------------------------------------------------------------- */

int32_t memnet__frame_int(const uint8_t *b)
{
    return (int32_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]);
}

size_t memnet__whole_frame(const struct buf *b)
{
    size_t len = clave__buf_len(b);
    if (len < 4)
        return 0;
    size_t n = 4 + (size_t)memnet__frame_int(clave__buf_bytes(b));
    return n <= len ? n : 0;
}

/* A client asks for it by itself, on each connection. */
static bool asks_for_config(const uint8_t *frame, size_t n)
{
    static const char path[] = "/zookeeper/config";
    enum { AT = 4 + 4 + 4, LEN = sizeof path - 1 };
    return n >= AT + 4 + LEN && memnet__frame_int(frame + AT) == LEN &&
           memcmp(frame + AT + 4, path, LEN) == 0;
}

int memnet__op_of_request(const struct memnet_client *e, const uint8_t *p, size_t n)
{
    int op = e->up_shaken ? memnet__frame_int(p + 8) : MEMNET_HANDSHAKE;
    return op == OP_GET_DATA && asks_for_config(p, n) ? MEMNET_CONFIG : op;
}

int memnet__op_of_reply(const struct memnet_client *e, const uint8_t *p)
{
    if (!e->down_shaken)
        return MEMNET_HANDSHAKE;
    switch (memnet__frame_int(p + 4)) {
    case XID_EVENT:
        return OP_NOTIFICATION;
    case XID_PING:
        return OP_PING;
    case XID_AUTH:
        return OP_AUTH;
    default:
        return e->ops[e->ops_head % MEMNET_UNANSWERED];
    }
}

/* To rules and counts the look at the configuration is the read that it is. */
static int plain(int op)
{
    return op == MEMNET_CONFIG ? OP_GET_DATA : op;
}

static bool matches(const struct memnet_rule *r, size_t client, enum memnet_direction way, int op)
{
    return r->client == client && r->way == way && (r->op == op || r->op == MEMNET_ANY);
}

/* The rule that holds for a message, or NULL. */
static struct memnet_rule *judge(struct memnet *p, struct memnet_client *e,
                                 enum memnet_direction way, int op)
{
    for (size_t i = 0; i < p->nrules; i++) {
        struct memnet_rule *r = &p->rules[i];
        if (!matches(r, (size_t)(e - p->clients), way, op))
            continue;
        if (r->skip == 0)
            return r;
        r->skip--;
    }
    return NULL;
}

static void note_request(struct memnet_client *e, int op, int32_t xid)
{
    e->up_shaken = true;
    if (plain(op) >= 0 && plain(op) < MEMNET_OPS)
        e->requests[plain(op)]++;
    if (op != MEMNET_HANDSHAKE && xid != XID_PING && xid != XID_AUTH)
        e->ops[e->ops_tail++ % MEMNET_UNANSWERED] = op;
    must(e->ops_tail - e->ops_head <= MEMNET_UNANSWERED);
}

static void note_reply(struct memnet_client *e, int op, int32_t xid)
{
    e->down_shaken = true;
    if (op == OP_NOTIFICATION)
        e->events++;
    if (op != MEMNET_HANDSHAKE && xid != XID_EVENT && xid != XID_PING && xid != XID_AUTH)
        e->ops_head++;
}

static void deliver(struct memnet *p, struct memnet_client *e, enum memnet_direction way, int op,
                    const uint8_t *frame, size_t n)
{
    if (way == MEMNET_REQUEST) {
        note_request(e, op, memnet__frame_int(frame + 4));
        clave__server_conn_input(e->conn, frame, n);
        memnet__collect(p);
    } else {
        note_reply(e, op, memnet__frame_int(frame + 4));
        clave_async_client_input(e->c, p->now, frame, n);
    }
}

bool memnet__carry(struct memnet *p, struct memnet_client *e, enum memnet_direction way)
{
    struct buf *b = way == MEMNET_REQUEST ? &e->up : &e->down;
    size_t n = memnet__whole_frame(b);
    if (n == 0 || (way == MEMNET_REQUEST && !e->conn))
        return false;
    const uint8_t *frame = clave__buf_bytes(b);
    int op =
        way == MEMNET_REQUEST ? memnet__op_of_request(e, frame, n) : memnet__op_of_reply(e, frame);
    struct memnet_rule *rule = judge(p, e, way, plain(op));
    enum memnet_action fate = rule ? rule->fate : MEMNET_PASS_CUT;
    if (rule && fate == MEMNET_HOLD)
        return false;
    if (rule)
        *rule = p->rules[--p->nrules];
    if (!rule || fate == MEMNET_PASS_CUT) {
        /* The buffer may be cleared from inside: the frame is carried as a copy. */
        uint8_t *copy = malloc(n);
        must(copy != NULL);
        memcpy(copy, frame, n);
        clave__buf_consume(b, n);
        deliver(p, e, way, op, copy, n);
        free(copy);
    }
    if (rule)
        memnet__cut(p, e);
    return true;
}

bool memnet__send_up(struct memnet *p, struct memnet_client *e)
{
    const void *out;
    size_t n = clave_async_client_output(e->c, &out);
    if (n == 0 || !e->conn)
        return false;
    must(clave__buf_append(&e->up, out, n) == CLAVE_OK);
    clave_async_client_sent(e->c, p->now, n);
    return true;
}

bool memnet__step(struct memnet *p, struct memnet_client *e)
{
    if (e->frozen || !e->c)
        return false;
    unsigned wants = clave_async_client_wants(e->c);
    if (wants & CLAVE_WANT_HANGUP) {
        bool open = e->conn || e->closing;
        memnet__cut(p, e);
        if (!open)
            clave_async_client_disconnected(e->c, p->now);
        return true;
    }
    if (wants & CLAVE_WANT_DIAL) {
        dial(p, e);
        return true;
    }
    bool any = (wants & CLAVE_WANT_WRITE) && memnet__send_up(p, e);
    any = memnet__carry(p, e, MEMNET_REQUEST) || any;
    any = memnet__carry(p, e, MEMNET_REPLY) || any;
    if (e->closing && clave__buf_len(&e->down) == 0) {
        memnet__cut(p, e);
        any = true;
    }
    return any;
}
