#include "member_conn.h"

#include <stdlib.h>
#include <string.h>

#include "ensemble.h"
#include "server/connection/conn.h"

/* Where things stand in a frame, its length included. */
enum { XID_AT = 4, OP_AT = 8, ANSWER_ZXID_AT = 8 };
enum { SEEN_ZXID_AT = 8, ASKED_TIMEOUT_AT = 16, ASKED_SESSION_AT = 20 };
enum { GIVEN_TIMEOUT_AT = 8, GIVEN_SESSION_AT = 12, LEAST_HELLO = 28 };

static uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t get_i64(const uint8_t *p)
{
    return (int64_t)((uint64_t)get_u32(p) << 32 | get_u32(p + 4));
}

static void put_u32(uint8_t *p, uint32_t v)
{
    for (int i = 3; i >= 0; i--, v >>= 8)
        p[i] = (uint8_t)v;
}

/* The whole frame at the head, its length included; NULL: it is not all there. */
static uint8_t *whole_frame(const struct buf *b, size_t *n)
{
    uint8_t *p = clave__buf_bytes(b);
    size_t len = clave__buf_len(b);
    if (!p || len < 4)
        return NULL;
    *n = 4 + (size_t)get_u32(p);
    return *n <= len ? p : NULL;
}

static size_t take_in(struct net_socket *s, struct buf *into)
{
    const void *p;
    size_t n = net_peek(s, &p);
    if (n > 0)
        world_must(clave__buf_append(into, p, n) == CLAVE_OK);
    net_read(s, n);
    return n;
}

/* ---- the member's own answers -------------------------------------------------------- */

static void drain(struct member_conn *r)
{
    const void *p;
    size_t n;
    while (r->local && (n = clave__server_conn_output(r->local, &p)) > 0) {
        net_write(r->down, p, n);
        clave__server_conn_sent(r->local, n);
    }
}

/* The engine's handshake is not the client's: it had the leader's answer, or has it here. */
static bool attach(struct member_conn *r)
{
    const void *p;
    r->local = replica_attach(&r->m->replica, r->session, r);
    if (!r->local)
        return false;
    clave__server_conn_sent(r->local, clave__server_conn_output(r->local, &p));
    r->stage = MEMBER_CONN_SERVING;
    return true;
}

static bool is_ended(const struct member_conn *r)
{
    return r->local && clave__server_conn_wants_close(r->local);
}

/* ---- the handshake ------------------------------------------------------------------- */

/* A leader that is none any more, and who follows it, ask nobody about a session they know,
 * as Apache: its own tracker is the authority. What they have never heard of has expired, and
 * a new session would have to be committed. False: it is over. */
static bool accept_alone(struct member_conn *r, uint8_t *frame, size_t n)
{
    struct replica *known = &r->m->replica;
    r->session = get_i64(frame + ASKED_SESSION_AT);
    if (r->session == 0)
        return true;
    if (!replica_knows(known, r->session))
        return false;
    const void *p;
    r->local = replica_attach(known, r->session, r);
    size_t len = clave__server_conn_output(r->local, &p);
    uint8_t answer[128];
    world_must(len <= sizeof answer);
    memcpy(answer, p, len);
    clave__server_conn_sent(r->local, len);
    put_u32(answer + GIVEN_TIMEOUT_AT, (uint32_t)r->timeout_ms);
    net_write(r->down, answer, len);
    r->stage = MEMBER_CONN_SERVING;
    clave__buf_consume(&r->asked, n);
    return true;
}

/* False: it is over. */
static bool take_hello(struct member_conn *r, uint8_t *frame, size_t n, bool *waits)
{
    struct ensemble_member *m = r->m;
    if (n < LEAST_HELLO || get_i64(frame + SEEN_ZXID_AT) > replica_zxid(&m->replica))
        return false; /* the client has seen what this member has not */
    r->timeout_ms = ensemble_negotiate(m->of, (int32_t)get_u32(frame + ASKED_TIMEOUT_AT));
    *waits = true;
    if (m->mode == MEMBER_DEPOSED)
        return accept_alone(r, frame, n);
    if (!r->up || r->up->state != NET_OPEN)
        return true;
    *waits = false;
    put_u32(frame + ASKED_TIMEOUT_AT, ENGINE_TIMEOUT_MS);
    ensemble_touch(m->of, get_i64(frame + ASKED_SESSION_AT), 0, m->w->now);
    net_write(r->up, frame, n);
    clave__buf_consume(&r->asked, n);
    r->stage = MEMBER_CONN_ASKED;
    return true;
}

static void pass_hello_down(struct member_conn *r, uint8_t *frame, size_t n)
{
    if ((int32_t)get_u32(frame + GIVEN_TIMEOUT_AT) > 0) {
        put_u32(frame + GIVEN_TIMEOUT_AT, (uint32_t)r->timeout_ms);
        ensemble_touch(r->m->of, r->session, r->timeout_ms, r->m->w->now);
    }
    net_write(r->down, frame, n);
    clave__buf_consume(&r->answered, n);
}

/* ---- requests ------------------------------------------------------------------------ */

static bool needs_leader(const struct ensemble_member *m, int32_t op)
{
    switch (op) {
    case OP_PING:
    case OP_EXISTS:
    case OP_GET_DATA:
    case OP_GET_ACL:
    case OP_GET_CHILDREN:
    case OP_GET_CHILDREN2:
    case OP_MULTI_READ:
    case OP_SET_WATCHES:
    case OP_SET_WATCHES2:
    case OP_ADD_WATCH:
    case OP_CHECK_WATCHES:
    case OP_REMOVE_WATCHES:
        return false;
    case OP_SYNC: /* a leader answers it by itself, also when it is none any more */
        return m->mode != MEMBER_DEPOSED;
    default:
        return true;
    }
}

/* False: the first request has to wait. */
static bool take_request(struct member_conn *r, uint8_t *frame, size_t n)
{
    struct ensemble_member *m = r->m;
    if (!needs_leader(m, (int32_t)get_u32(frame + OP_AT))) {
        if (r->unanswered > 0)
            return false; /* in the client's order */
        member_note_active(m, r->session);
        clave__server_conn_input(r->local, frame, n);
    } else {
        if (m->mode != MEMBER_FOLLOWS || r->moved)
            return false;
        member_note_active(m, r->session);
        net_write(r->up, frame, n);
        r->unanswered++;
    }
    clave__buf_consume(&r->asked, n);
    drain(r);
    return true;
}

/* False: it is over. */
static bool pump_up(struct member_conn *r)
{
    uint8_t *frame;
    size_t n;
    bool waits = false;
    while (!waits && (frame = whole_frame(&r->asked, &n))) {
        if (r->stage == MEMBER_CONN_NEW) {
            if (!take_hello(r, frame, n, &waits))
                return false;
        } else {
            waits = r->stage != MEMBER_CONN_SERVING || !take_request(r, frame, n);
        }
    }
    /* The leader refuses what comes on a connection that the session has left, and the member
     * closes it then. */
    return !(waits && r->moved && r->unanswered == 0);
}

/* ---- answers of the leader ----------------------------------------------------------- */

/* False: it has to wait for what the member does not know yet. */
static bool pass_answer(struct member_conn *r, uint8_t *frame, size_t n)
{
    if (get_i64(frame + ANSWER_ZXID_AT) > replica_zxid(&r->m->replica))
        return false;
    r->unanswered--;
    net_write(r->down, frame, n);
    clave__buf_consume(&r->answered, n);
    return true;
}

static bool accept(struct member_conn *r, uint8_t *frame, size_t n)
{
    r->session = get_i64(frame + GIVEN_SESSION_AT);
    bool refused = (int32_t)get_u32(frame + GIVEN_TIMEOUT_AT) <= 0;
    if (!refused && !attach(r))
        return false;
    pass_hello_down(r, frame, n);
    if (refused)
        r->moved = true;
    return true;
}

static void pump_down(struct member_conn *r)
{
    uint8_t *frame;
    size_t n;
    while ((frame = whole_frame(&r->answered, &n)))
        if (!(r->stage == MEMBER_CONN_ASKED ? accept(r, frame, n) : pass_answer(r, frame, n)))
            return;
}

/* ---- life ---------------------------------------------------------------------------- */

static void look_up(struct member_conn *r)
{
    if (r->m->mode != MEMBER_FOLLOWS)
        return;
    if (!r->up && !r->moved)
        r->up = member_dial_leader(r->m);
    if (!r->up)
        return;
    take_in(r->up, &r->answered);
    if (net_is_over(r->up)) {
        net_close(r->up);
        r->up = NULL;
        r->moved = true;
    }
}

/* The leader has closed, or the session has ended, and all that was answered is passed on. */
static bool is_over(const struct member_conn *r)
{
    bool settled = clave__buf_len(&r->answered) == 0;
    if (net_is_over(r->down) || (is_ended(r) && settled && r->unanswered == 0))
        return true;
    return r->moved && settled && (r->stage != MEMBER_CONN_SERVING || r->unanswered > 0);
}

bool member_conn_serve(struct member_conn *r)
{
    size_t before;
    if (take_in(r->down, &r->asked) > 0)
        r->heard = r->m->w->now;
    look_up(r);
    do {
        before = clave__buf_len(&r->asked) + clave__buf_len(&r->answered);
        drain(r);
        pump_down(r);
        if (!pump_up(r))
            return false;
    } while (clave__buf_len(&r->asked) + clave__buf_len(&r->answered) != before);
    return !is_over(r);
}

/* As Apache's cnxnExpiryQueue: the session timeout, counted in steps of ten seconds. */
bool member_conn_is_silent(const struct member_conn *r)
{
    enum { STEP_MS = 10000 };
    int64_t most = ((int64_t)r->timeout_ms + STEP_MS) * 1000;
    return r->stage == MEMBER_CONN_SERVING && r->m->w->now - r->heard > most;
}

struct member_conn *member_conn_new(struct ensemble_member *m, struct net_socket *down)
{
    struct member_conn *r = world_alloc(sizeof *r);
    r->m = m;
    r->down = down;
    clave__buf_init(&r->asked, &m->of->net->mem, SIZE_MAX / 4);
    clave__buf_init(&r->answered, &m->of->net->mem, SIZE_MAX / 4);
    list_init(&r->link);
    return r;
}

void member_conn_free(struct member_conn *r)
{
    if (r->local)
        replica_detach(&r->m->replica, r->local);
    if (r->up)
        net_close(r->up);
    net_close(r->down);
    clave__buf_fini(&r->asked);
    clave__buf_fini(&r->answered);
    list_remove(&r->link);
    free(r);
}
