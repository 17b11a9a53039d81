#include "member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ensemble.h"
#include "server/state.h"
#include "wire/frame.h"

/* Where things stand in a frame, its length included. */
enum { XID_AT = 4, OP_AT = 8, ASKED_TIMEOUT_AT = 16, ASKED_SESSION_AT = 20 };
enum { GIVEN_TIMEOUT_AT = 8, GIVEN_SESSION_AT = 12 };

/* One client's connection, passed on to the leader. */
struct relay {
    struct list link;
    struct member *m;
    struct net_socket *down; /* to the client */
    struct net_socket *up;   /* to the leader */
    struct buf asked;        /* by the client, not passed on yet */
    struct buf answered;     /* by the leader */
    bool asked_hello, had_hello;
    int32_t timeout_ms;
    int64_t hello_at; /* when its handshake was passed on */
    int64_t session;
    size_t unanswered; /* requests passed on */
    struct server_conn *stale;
};

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

static void wake(struct member *m)
{
    world_set_earlier(m->w, &m->run, m->w->now + world_between(m->w, 0, 50));
}

static void on_news(void *owner)
{
    wake(owner);
}

/* ---- who was active ------------------------------------------------------------------ */

static void note_active(struct member *m, int64_t session)
{
    for (size_t i = 0; i < m->ntouched; i++)
        if (m->touched[i] == session)
            return;
    if (session != 0 && m->ntouched < MEMBER_TOUCHED)
        m->touched[m->ntouched++] = session;
}

/* With the answer to the leader's ping. */
static void on_report(struct alarm *a)
{
    struct member *m = LIST_ENTRY(a, struct member, report);
    if (m->cut)
        return;
    for (size_t i = 0; i < m->ntouched; i++)
        ensemble_touch(m->of, m->touched[i], 0, m->w->now);
    m->ntouched = 0;
    int64_t half_tick = m->of->tick_ms * MS / 2;
    world_set(m->w, a, m->w->now + half_tick - world_between(m->w, 0, half_tick / 20));
}

/* ---- passing on ---------------------------------------------------------------------- */

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

static void take_in(struct net_socket *s, struct buf *into)
{
    const void *p;
    size_t n = net_peek(s, &p);
    if (n > 0)
        world_must(clave__buf_append(into, p, n) == CLAVE_OK);
    net_read(s, n);
}

static void pass_up(struct relay *r, uint8_t *frame, size_t n)
{
    if (!r->asked_hello) {
        r->asked_hello = true;
        r->hello_at = r->m->w->now;
        r->timeout_ms = ensemble_negotiate(r->m->of, (int32_t)get_u32(frame + ASKED_TIMEOUT_AT));
        put_u32(frame + ASKED_TIMEOUT_AT, ENGINE_TIMEOUT_MS);
        ensemble_touch(r->m->of, get_i64(frame + ASKED_SESSION_AT), 0, r->hello_at);
    } else {
        note_active(r->m, r->session);
        r->unanswered += (int32_t)get_u32(frame + XID_AT) >= 0;
    }
    net_write(r->up, frame, n);
}

static void pass_down(struct relay *r, uint8_t *frame, size_t n)
{
    if (!r->had_hello) {
        r->had_hello = true;
        if ((int32_t)get_u32(frame + GIVEN_TIMEOUT_AT) > 0) {
            put_u32(frame + GIVEN_TIMEOUT_AT, (uint32_t)r->timeout_ms);
            r->session = get_i64(frame + GIVEN_SESSION_AT);
            ensemble_touch(r->m->of, r->session, r->timeout_ms, r->hello_at);
        }
    } else if ((int32_t)get_u32(frame + XID_AT) >= 0) {
        r->unanswered--;
    }
    net_write(r->down, frame, n);
}

/* ---- cut off ------------------------------------------------------------------------- */

static bool needs_leader(int32_t op)
{
    switch (op) {
    case OP_PING:
    case OP_EXISTS:
    case OP_GET_DATA:
    case OP_GET_ACL:
    case OP_GET_CHILDREN:
    case OP_GET_CHILDREN2:
    case OP_SET_WATCHES:
    case OP_SET_WATCHES2:
    case OP_CHECK_WATCHES:
    case OP_REMOVE_WATCHES:
        return false;
    default:
        return true;
    }
}

/* The session's connection to the state of before, its handshake done. */
static struct server_conn *dial_stale(struct relay *r)
{
    struct peer_addr peer = {.text = "stale"};
    uint8_t passwd[WIRE_PASSWORD_LEN];
    struct buf b;
    const void *p;
    clave__session_password(r->session, passwd);
    struct wire_connect_request q = {.timeout_ms = ENGINE_TIMEOUT_MS,
                                     .session_id = r->session,
                                     .passwd = clave__jbytes_n(passwd, sizeof passwd),
                                     .has_read_only = true};
    clave__buf_init(&b, &r->m->of->net->mem, 256);
    struct jwriter w = clave__jwriter(&b);
    size_t begin = clave__frame_begin(&w);
    clave__wire_put_connect_request(&w, &q);
    world_must(clave__frame_end(&w, begin) == CLAVE_OK);
    struct server_conn *c = clave__server_accept(r->m->stale, &peer, r);
    world_must(c != NULL);
    clave__server_conn_input(c, clave__buf_bytes(&b), clave__buf_len(&b));
    clave__server_conn_sent(c, clave__server_conn_output(c, &p));
    clave__buf_fini(&b);
    return c;
}

/* Answers what needs no leader; the first that does is in the way of all behind it. */
static void answer_alone(struct relay *r)
{
    size_t n;
    const void *p;
    const uint8_t *frame;
    while (r->session != 0 && r->unanswered == 0 && (frame = whole_frame(&r->asked, &n))) {
        if (needs_leader((int32_t)get_u32(frame + OP_AT)))
            return;
        if (!r->stale)
            r->stale = dial_stale(r);
        clave__server_conn_input(r->stale, frame, n);
        clave__buf_consume(&r->asked, n);
        while ((n = clave__server_conn_output(r->stale, &p)) > 0) {
            net_write(r->down, p, n);
            clave__server_conn_sent(r->stale, n);
        }
    }
}

/* A copy of the leader's tree, as far as the member has followed. */
static struct server *copy_state(struct member *m)
{
    struct server_host *h = m->of->leader;
    struct server_options o = h->options;
    struct server *copy;
    struct buf image;
    char fault[200];
    int64_t zxid;
    int64_t now = clock_ms(&h->clock, m->w->now);
    o.mem = &m->purse.mem;
    o.log = NULL;
    clave__buf_init(&image, &h->net->mem, SIZE_MAX / 4);
    world_must(clave__server_save_snapshot(h->server, &image, &zxid) == CLAVE_OK);
    world_must(clave__server_new(&copy, &o) == CLAVE_OK);
    world_must(clave__server_load_snapshot(copy, clave__buf_bytes(&image), clave__buf_len(&image),
                                           fault, sizeof fault) == CLAVE_OK);
    clave__server_start(copy, now, now);
    clave__buf_fini(&image);
    return copy;
}

/* ---- connections --------------------------------------------------------------------- */

static void drop_relay(struct relay *r)
{
    if (r->stale)
        clave__server_conn_closed(r->stale);
    net_close(r->down);
    net_close(r->up);
    clave__buf_fini(&r->asked);
    clave__buf_fini(&r->answered);
    list_remove(&r->link);
    free(r);
}

static void accept_all(struct member *m)
{
    struct net_socket *s;
    while ((s = net_accept(m->of->net, &m->listener, (struct net_news){on_news, m}))) {
        struct relay *r = world_alloc(sizeof *r);
        r->m = m;
        r->down = s;
        r->up =
            net_dial(m->of->net, &m->of->leader->listener, &m->road, (struct net_news){on_news, m});
        clave__buf_init(&r->asked, &m->of->net->mem, SIZE_MAX / 4);
        clave__buf_init(&r->answered, &m->of->net->mem, SIZE_MAX / 4);
        list_push_back(&m->relays, &r->link);
    }
}

/* false: it is over. */
static bool serve(struct relay *r)
{
    size_t n;
    uint8_t *frame;
    take_in(r->down, &r->asked);
    if (r->m->cut) {
        answer_alone(r);
        return !net_is_over(r->down);
    }
    if (r->up->state == NET_DIALLING)
        return true;
    while ((frame = whole_frame(&r->asked, &n))) {
        pass_up(r, frame, n);
        clave__buf_consume(&r->asked, n);
    }
    take_in(r->up, &r->answered);
    while ((frame = whole_frame(&r->answered, &n))) {
        pass_down(r, frame, n);
        clave__buf_consume(&r->answered, n);
    }
    return !net_is_over(r->down) && !net_is_over(r->up);
}

static void on_run(struct alarm *a)
{
    struct member *m = LIST_ENTRY(a, struct member, run);
    accept_all(m);
    for (struct list *at = m->relays.next, *next; at != &m->relays; at = next) {
        struct relay *r = LIST_ENTRY(at, struct relay, link);
        next = at->next;
        if (!serve(r))
            drop_relay(r);
    }
}

/* ---- the leader goes and comes ------------------------------------------------------- */

static void close_all(struct member *m)
{
    net_stop_listening(m->of->net, &m->listener);
    while (!list_empty(&m->relays))
        drop_relay(LIST_ENTRY(m->relays.next, struct relay, link));
    if (m->stale)
        clave__server_free(m->stale);
    m->stale = NULL;
    m->ntouched = 0;
}

void member_join(struct member *m)
{
    if (m->cut) {
        close_all(m);
        world_tell(m->w, m->name, "follows the leader again");
    }
    m->cut = false;
    m->listener.open = true;
    world_clear(m->w, &m->next);
    world_set(m->w, &m->report, m->w->now + world_between(m->w, 0, m->of->tick_ms * MS / 2));
}

void member_cut(struct member *m, int64_t us)
{
    if (m->cut)
        return;
    world_tell(m->w, m->name, "is cut off from the leader for %lld ms", (long long)(us / MS));
    m->cut = true;
    m->stale = copy_state(m);
    world_clear(m->w, &m->report);
    world_set(m->w, &m->next, m->w->now + us);
}

static void on_next(struct alarm *a)
{
    struct member *m = LIST_ENTRY(a, struct member, next);
    if (!m->listener.open) {
        member_join(m);
        return;
    }
    world_tell(m->w, m->name, "has no leader, and closes every connection");
    close_all(m);
    world_set(m->w, a, m->w->now + world_between(m->w, 1 * MS, m->of->tick_ms * MS));
}

/* ---- life ---------------------------------------------------------------------------- */

void member_init(struct member *m, struct ensemble *e, unsigned index)
{
    struct world *w = e->w;
    memset(m, 0, sizeof *m);
    m->of = e;
    m->w = w;
    m->index = index;
    snprintf(m->name, sizeof m->name, "member%u", index % 10);
    purse_init(&m->purse);
    list_init(&m->relays);
    net_listener_init(&m->listener, (struct net_news){on_news, m});
    m->road.delay_us = world_between(w, 20, 2 * MS);
    m->road.jitter_us = world_between(w, 0, m->road.delay_us);
    m->run.ring = on_run;
    m->report.ring = on_report;
    m->next.ring = on_next;
}

void member_fini(struct member *m)
{
    close_all(m);
    world_clear(m->w, &m->run);
    world_clear(m->w, &m->report);
    world_clear(m->w, &m->next);
    if (m->purse.blocks != 0)
        world_break(m->w, "no leak", "the copy of %s leaves %zu blocks", m->name, m->purse.blocks);
}
