/* connection.c - a client's messages through member and leader, and the answers back.
 *
 * `up` holds what the engine has not got yet. A read goes to the engine when the member is done
 * with it, a write when the leader is; a read behind a write of the same connection waits for it,
 * as ZooKeeper keeps the order of a session. */
#include <stdlib.h>
#include <string.h>

#include "crowd.h"
#include "wire/opcode.h"

/* As Linux sends a connection's first segment again, and the others on a network without delay. */
enum { SYN_AGAIN_US = 1000000, AGAIN_US = 200000 };

enum connection_message { MESSAGE_READ, MESSAGE_ATTACH, MESSAGE_WRITE };

/* ---- buffers ----------------------------------------------------------------------------------
 */

void connection_init(struct connection *c, const struct clave_mem *mem)
{
    clave__buf_init(&c->up, mem, SIZE_MAX / 4);
    clave__buf_init(&c->down, mem, SIZE_MAX / 4);
}

void connection_fini(struct connection *c)
{
    clave__buf_fini(&c->up);
    clave__buf_fini(&c->down);
}

void connection_reset(struct participant *p)
{
    struct connection *c = &p->conn;
    if (c->conn)
        clave__server_conn_closed(c->conn);
    c->conn = NULL;
    c->generation++;
    c->open = c->dialling = c->queued = c->shaken = false;
    c->passed = c->led = 0;
    clave__buf_clear(&c->up);
    clave__buf_clear(&c->down);
    clave__buf_trim(&c->up, 0);
    clave__buf_trim(&c->down, 0);
}

void connection_cut(struct crowd *w, struct participant *p)
{
    bool known = p->conn.open || p->conn.dialling;
    connection_reset(p);
    p->conn.open = known;
    if (known)
        crowd_put(w, w->now + w->o.costs.net, EVENT_GONE, p, 0);
}

/* ---- dialling ---------------------------------------------------------------------------------
 */

void connection_dial(struct crowd *w, struct participant *p)
{
    struct connection *c = &p->conn;
    c->dialling = true;
    c->member = (uint32_t)atoi(clave_async_client_target(p->client).host + 1);
    crowd_require(c->member < w->cluster.size);
    crowd_put(w, cluster_reached_at(w, SYN_AGAIN_US), EVENT_ASKED, p, 0);
}

/* The kernel accepts at once; the member's work for it comes before its first message. A member
 * without a leader closes it when its turn comes; for a dead one the kernel refuses. */
void connection_asked(struct crowd *w, struct participant *p, uint32_t detail)
{
    (void)detail;
    struct cluster *k = &w->cluster;
    struct member *m = &k->members[p->conn.member];
    p->conn.queued = !k->serving && !m->dead;
    if (p->conn.queued) {
        crowd_put(w, member_work(m, w->now, w->o.costs.refuse), EVENT_TURNED_AWAY, p, 0);
        return;
    }
    if (!m->dead)
        member_work(m, w->now, w->o.costs.accept);
    crowd_put(w, w->now + w->o.costs.net, m->dead ? EVENT_REFUSED : EVENT_DIALLED, p, 0);
}

void connection_turned_away(struct crowd *w, struct participant *p, uint32_t detail)
{
    (void)detail;
    if (p->conn.queued)
        crowd_put(w, w->now + w->o.costs.net, EVENT_REFUSED, p, 0);
}

void connection_dialled(struct crowd *w, struct participant *p, uint32_t detail)
{
    (void)detail;
    struct cluster *k = &w->cluster;
    struct connection *c = &p->conn;
    struct peer_addr peer = {.text = "crowd"};
    if (k->serving && !k->members[c->member].dead)
        c->conn = clave__server_accept(k->engine, &peer, p);
    c->dialling = false;
    c->open = c->conn != NULL;
    c->up_at = c->down_at = w->now;
    if (c->open)
        clave_async_client_connected(p->client, crowd_ms(w));
    else
        clave_async_client_disconnected(p->client, crowd_ms(w));
    participant_pump(p);
}

/* ---- up ---------------------------------------------------------------------------------------
 */

static int32_t connection_int(const uint8_t *b)
{
    return (int32_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]);
}

/* What a frame asks for. A handshake begins with the protocol's version, 0; a request begins with
 * its xid, which is never 0. */
static enum connection_message connection_message_of(const uint8_t *frame)
{
    static const uint8_t none[8];
    enum { SESSION_AT = 4 + 4 + 8 + 4 };
    if (connection_int(frame + 4) == 0)
        return memcmp(frame + SESSION_AT, none, sizeof none) == 0 ? MESSAGE_WRITE : MESSAGE_ATTACH;
    int32_t op = connection_int(frame + 8);
    if (op == OP_SYNC)
        return MESSAGE_ATTACH; /* passes the leader, and is not logged */
    return clave__opcode(op)->flags & OPCODE_WRITE || op == OP_CLOSE_SESSION ? MESSAGE_WRITE
                                                                             : MESSAGE_READ;
}

bool connection_send(struct crowd *w, struct participant *p)
{
    const void *out;
    size_t n = clave_async_client_output(p->client, &out);
    struct connection *c = &p->conn;
    if (n == 0 || !c->open)
        return false;
    if (c->conn) {
        const uint8_t *at = out;
        int64_t there = cluster_reached_at(w, AGAIN_US);
        c->up_at = there > c->up_at ? there : c->up_at;
        crowd_require(clave__buf_append(&c->up, out, n) == CLAVE_OK);
        for (size_t len; n > (size_t)(at - (const uint8_t *)out); at += len) {
            len = 4 + (size_t)connection_int(at);
            crowd_put(w, c->up_at, EVENT_ARRIVED, p, 0);
        }
    }
    clave_async_client_sent(p->client, crowd_ms(w), n);
    return true;
}

/* The offset in `up` of the message after the first `n`. */
static const uint8_t *connection_nth(const struct connection *c, uint32_t n)
{
    const uint8_t *at = clave__buf_bytes(&c->up);
    while (n-- > 0)
        at += 4 + (size_t)connection_int(at);
    return at;
}

/* Gives the engine what is ready. */
static void connection_deliver(struct crowd *w, struct participant *p)
{
    struct connection *c = &p->conn;
    while (c->conn && c->passed > 0) {
        const uint8_t *frame = clave__buf_bytes(&c->up);
        crowd_require(frame && clave__buf_len(&c->up) >= 8);
        size_t n = 4 + (size_t)connection_int(frame);
        enum connection_message kind = connection_message_of(frame);
        if (kind != MESSAGE_READ && c->led == 0)
            break;
        c->led -= kind != MESSAGE_READ;
        c->passed--;
        if (kind == MESSAGE_WRITE)
            cluster_apply(w);
        clave__server_tick(w->cluster.engine, crowd_ms(w), 1700000000000 + crowd_ms(w));
        clave__server_conn_input(c->conn, frame, n);
        clave__buf_consume(&c->up, n);
    }
    cluster_settle(w);
}

void connection_arrived(struct crowd *w, struct participant *p, uint32_t detail)
{
    (void)detail;
    struct member *m = &w->cluster.members[p->conn.member];
    m->requests++;
    crowd_put(w, member_work(m, w->now, w->o.costs.read), EVENT_PASSED, p, 0);
}

void connection_passed(struct crowd *w, struct participant *p, uint32_t detail)
{
    (void)detail;
    struct connection *c = &p->conn;
    if (!c->conn)
        return;
    enum connection_message kind = connection_message_of(connection_nth(c, c->passed));
    c->passed++;
    if (kind == MESSAGE_READ)
        connection_deliver(w, p);
    else
        crowd_put(w, w->now + (c->member == w->cluster.leader ? 0 : w->o.costs.net),
                  EVENT_AT_LEADER, p, kind == MESSAGE_WRITE);
}

void connection_at_leader(struct crowd *w, struct participant *p, uint32_t detail)
{
    crowd_put(w, cluster_lead(w, detail == 1), EVENT_LED, p, 0);
}

void connection_led(struct crowd *w, struct participant *p, uint32_t detail)
{
    (void)detail;
    p->conn.led++;
    connection_deliver(w, p);
}

/* ---- down -------------------------------------------------------------------------------------
 */

void connection_collect(struct crowd *w, struct server_conn *conn)
{
    struct participant *p = clave__server_conn_user(conn);
    struct connection *c = &p->conn;
    const void *out;
    size_t n, total = 0;
    while ((n = clave__server_conn_output(conn, &out)) > 0) {
        crowd_require(clave__buf_append(&c->down, out, n) == CLAVE_OK);
        clave__server_conn_sent(conn, n);
        total += n;
    }
    if (total > 0) {
        int64_t us = (int64_t)total * w->o.costs.kib / 1024;
        member_work(&w->cluster.members[c->member], w->now, us);
        int64_t at = cluster_reached_at(w, AGAIN_US) + us;
        c->down_at = at > c->down_at ? at : c->down_at;
        crowd_put(w, c->down_at, EVENT_DOWN, p, (uint32_t)total);
    }
    if (clave__server_conn_wants_close(conn)) {
        clave__server_conn_closed(conn);
        c->conn = NULL;
        crowd_put(w, c->down_at > w->now ? c->down_at : w->now, EVENT_GONE, p, 0);
    }
}
