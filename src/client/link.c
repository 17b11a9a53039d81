/* link.c - one transport connection after another: which host, when, the handshake, and when
 * to give one up. */
#include <assert.h>
#include <stdio.h>

#include "client/engine.h"

enum { LEAST_PATIENCE_MS = 250 };

static void link_enter(clave_async_client *c, enum link_phase to, int64_t until)
{
    c->link.phase = to;
    c->link.until = until;
    if (to != LINK_SHAKING && to != LINK_OPEN) { /* nothing of one connection enters the next */
        clave__buf_clear(&c->link.out);
        clave__frame_reader_reset(&c->link.in);
    }
}

static const char *host_text(const clave_async_client *c, char *out, size_t cap)
{
    const struct host *h = clave__hosts_current(&c->hosts);
    if (h->port)
        snprintf(out, cap, "%s:%u", h->name, (unsigned)h->port);
    else
        snprintf(out, cap, "%s", h->name);
    return out;
}

static int64_t session_timeout(const clave_async_client *c)
{
    return c->session.timeout_ms ? c->session.timeout_ms : c->asked_timeout_ms;
}

/* How long one attempt may take, so that several fit into a session. */
static int64_t link_patience(const clave_async_client *c)
{
    int64_t hosts = (int64_t)c->hosts.count;
    int64_t ms = session_timeout(c) / (hosts > 3 ? hosts : 3);
    return ms > LEAST_PATIENCE_MS ? ms : LEAST_PATIENCE_MS;
}

/* ---- dialling ------------------------------------------------------------------------ */

static void link_dial(clave_async_client *c)
{
    c->fault_is_news = false;
    link_enter(c, LINK_DIALLING, c->now + link_patience(c));
}

/* By the policy. By the usual one no more than a quarter of what the session has left, so that a
 * server that is back before its end is found. */
static int64_t next_pause(clave_async_client *c)
{
    struct link *l = &c->link;
    if (l->rounds == 0)
        l->failing_since = c->now;
    int64_t pause = clave_retry_delay(&c->reconnect, l->rounds, c->now - l->failing_since,
                                      clave__rand_u64(&c->rand));
    l->rounds += l->rounds < INT32_MAX;
    int64_t end = clave__session_deadline(c);
    int64_t most = end > c->now ? (end - c->now) / 4 : 0;
    if (most < c->reconnect.base_ms)
        most = c->reconnect.base_ms;
    return c->reconnect_is_users || pause < most ? pause : most;
}

/* Behind a connection or an attempt that is over: the next host, at once; but when all of
 * them failed in a row, after a pause. */
static void go_on(clave_async_client *c, bool failed)
{
    link_enter(c, LINK_IDLE, CLAVE_NEVER);
    /* Closed before it had a session: what a handshake may have made nobody can name. */
    if (c->session.closing && c->session.id == 0)
        clave__session_end(c, CLAVE_OK);
    if (c->session.state == CLAVE_STATE_CLOSED)
        return;
    if (!clave__hosts_next(&c->hosts, failed)) {
        link_dial(c);
        return;
    }
    int64_t pause = next_pause(c);
    if (pause < 0)
        clave__session_end(c, CLAVE_EUNREACHABLE);
    else
        link_enter(c, LINK_IDLE, c->now + pause);
}

void clave__link_start(clave_async_client *c)
{
    link_dial(c);
}

void clave__link_drop(clave_async_client *c, clave_err why)
{
    enum link_phase phase = c->link.phase;
    if (phase == LINK_IDLE || phase == LINK_HANGUP)
        return;
    if (why == CLAVE_EPROTO)
        c->link.answered = false; /* what it said was of no use */
    if (phase == LINK_OPEN)
        clave__session_detached(c, why);
    link_enter(c, LINK_HANGUP, CLAVE_NEVER);
}

void clave__link_shut(clave_async_client *c)
{
    bool idle = c->link.phase == LINK_IDLE;
    link_enter(c, idle ? LINK_IDLE : LINK_HANGUP, CLAVE_NEVER);
}

/* The server in use, or dialled, is none of the client's any more. */
static void leave_host(clave_async_client *c)
{
    struct link *l = &c->link;
    bool waits = l->phase == LINK_IDLE && l->until != CLAVE_NEVER;
    clave__client_fault(c, "the server is not in the new list of hosts");
    if (waits)
        link_enter(c, LINK_IDLE, c->now);
    else
        clave__link_drop(c, CLAVE_ECONNLOSS);
}

clave_err clave_async_client_set_hosts(clave_async_client *c, const char *hosts, int64_t now)
{
    struct hosts fresh;
    clave_err err = clave__hosts_init(&fresh, &c->mem, hosts);
    if (err != CLAVE_OK)
        return err;
    if (!clave__hosts_fit(&fresh, &c->hosts)) {
        clave__hosts_fini(&fresh);
        return CLAVE_EINVAL;
    }
    clave__engine_note(c, now);
    if (!c->keep_order)
        clave__hosts_shuffle(&fresh, &c->rand);
    bool stays = clave__hosts_resume(&fresh, clave__hosts_current(&c->hosts));
    clave__hosts_fini(&c->hosts);
    c->hosts = fresh;
    c->link.rounds = 0;
    if (!stays)
        leave_host(c); /* what that brings is told with the next entry */
    return CLAVE_OK;
}

/* ---- time ---------------------------------------------------------------------------- */

int64_t clave__link_deadline(const clave_async_client *c)
{
    const struct link *l = &c->link;
    if (l->phase == LINK_OPEN)
        return l->heard + (int64_t)c->session.timeout_ms * 2 / 3; /* as Apache's clients */
    return l->phase == LINK_HANGUP ? CLAVE_NEVER : l->until;
}

void clave__link_tick(clave_async_client *c)
{
    char host[300];
    if (c->now < clave__link_deadline(c))
        return;
    if (c->link.phase == LINK_IDLE) {
        link_dial(c);
        return;
    }
    clave__client_fault(
        c, c->link.phase == LINK_DIALLING ? "cannot connect to %s in time" : "%s does not answer",
        host_text(c, host, sizeof host));
    clave__link_drop(c, CLAVE_ETIMEDOUT);
}

/* ---- handshake ----------------------------------------------------------------------- */

static void shake_hands(clave_async_client *c)
{
    struct link *l = &c->link;
    const struct session *s = &c->session;
    struct wire_connect_request q = {
        .last_zxid_seen = s->last_zxid,
        .timeout_ms = c->asked_timeout_ms,
        .session_id = s->id,
        .passwd = clave__jbytes_n(s->passwd, sizeof s->passwd),
        .read_only = c->read_only,
        .has_read_only = true,
    };
    struct jwriter w = clave__jwriter(&l->out);
    size_t begin = clave__frame_begin(&w);
    clave__wire_put_connect_request(&w, &q);
    if (clave__frame_end(&w, begin) != CLAVE_OK) {
        clave__link_drop(c, CLAVE_ENOMEM);
        return;
    }
    l->shaken_at = l->wrote = c->now;
}

static void not_zookeeper(clave_async_client *c)
{
    char host[300];
    clave__client_fault(c, "%s does not speak ZooKeeper's protocol: is it the right port?",
                        host_text(c, host, sizeof host));
    clave__link_drop(c, CLAVE_EPROTO);
}

/* An alert of TLS, read as the length of a frame: a server's answer to who speaks in the clear. */
static bool is_tls_alert(size_t len)
{
    return len >> 16 == 0x1503;
}

static void wants_tls(clave_async_client *c)
{
    char host[300];
    host_text(c, host, sizeof host);
    clave__client_fault(c, "%s speaks TLS: connect to tls:%s", host, host);
    clave__link_drop(c, CLAVE_EPROTO);
}

/* This host is of use: the next attempt need not wait. */
static void of_use(clave_async_client *c)
{
    c->link.answered = true;
    c->link.rounds = 0;
    clave__hosts_answered(&c->hosts);
}

/* A session that the server does not know, or will not give back. */
static void link_refused(clave_async_client *c)
{
    bool had = c->session.id != 0;
    if (had)
        of_use(c);
    char host[300];
    clave__client_fault(c, had ? "%s says that the session has expired" : "%s refuses a session",
                        host_text(c, host, sizeof host));
    clave__link_drop(c, CLAVE_EEXPIRED);
    clave__session_lose(c, CLAVE_EEXPIRED);
}

void clave__link_refused(clave_async_client *c, clave_err err, const char *what)
{
    char host[300];
    if (err == CLAVE_EEXPIRED) {
        link_refused(c);
        return;
    }
    clave__client_fault(c, "%s refuses %s: %s", host_text(c, host, sizeof host), what,
                        clave_strerror(err));
    c->link.answered = false; /* of no use: behind it comes a pause */
    clave__link_drop(c, err);
}

static void shaken(clave_async_client *c, struct jreader *r)
{
    struct wire_connect_response m = clave__wire_get_connect_response(r);
    bool given = m.timeout_ms > 0;
    bool sound = m.session_id != 0 && m.passwd.n == (int32_t)sizeof c->session.passwd;
    if (r->bad || (given && !sound)) {
        not_zookeeper(c);
        return;
    }
    if (!given) {
        link_refused(c);
        return;
    }
    int64_t asked = c->session.id;
    if (asked && m.session_id != asked) {
        /* Some servers hand out another session: what ours held is not ours any more. The
         * next dial asks for a new one. */
        clave__client_fault(c, "the server answered with another session");
        of_use(c);
        clave__session_lose(c, CLAVE_EREPLACED);
        return;
    }
    link_enter(c, LINK_OPEN, CLAVE_NEVER);
    clave__session_attached(c, &m, c->link.shaken_at);
}

/* ---- frames -------------------------------------------------------------------------- */

/* A server that does not take the watches would leave those who wait without their events, and
 * they would sleep until their deadlines: another connection may do better. The host counts as
 * one that failed. false: it was not asked. */
static bool watches_answered(clave_async_client *c, clave_err err)
{
    if (!clave__client_watches_answered(c))
        return false;
    if (err == CLAVE_OK) {
        if (clave__client_watches_settled(c))
            of_use(c);
        return true;
    }
    clave__link_refused(c, err, "to set the session's watches again");
    return true;
}

static void reply(clave_async_client *c, struct jreader *r)
{
    struct wire_reply_header h = clave__wire_get_reply_header(r);
    struct wire_event ev = {0};
    bool ok = !r->bad;
    switch (ok ? h.xid : 0) {
    case XID_EVENT:
        ev = clave__wire_get_event(r);
        ok = !r->bad;
        if (ok)
            clave__client_watch_event(c, &ev);
        break;
    case XID_PING:
        clave__heartbeat_ping_answered(c, (clave_err)h.err);
        break;
    case XID_AUTH:
        clave__auth_reply(c, (clave_err)h.err);
        break;
    case XID_SET_WATCHES:
        ok = watches_answered(c, (clave_err)h.err);
        break;
    default:
        ok = ok && clave__pipeline_reply(c, &h, r);
    }
    if (!ok) {
        char host[300];
        clave__client_fault(c, "%s sent a reply that is none of ours",
                            host_text(c, host, sizeof host));
        clave__link_drop(c, CLAVE_EPROTO);
    }
}

static void frame(clave_async_client *c, const uint8_t *p, size_t n)
{
    struct jreader r = clave__jreader(p, n);
    if (c->link.phase == LINK_SHAKING) {
        shaken(c, &r);
        return;
    }
    /* What it answers before it has taken the watches (identities, a part of them) is of no use
     * yet: a server that refuses them each time would be dialled without a pause. */
    if (!c->link.answered && clave__client_watches_settled(c))
        of_use(c);
    reply(c, &r);
}

static bool link_is_up(const struct link *l)
{
    return l->phase == LINK_SHAKING || l->phase == LINK_OPEN;
}

static void bad_frame(clave_async_client *c, clave_err err, size_t n)
{
    char host[300];
    if (c->link.phase == LINK_SHAKING && err != CLAVE_ENOMEM) {
        if (is_tls_alert(n))
            wants_tls(c);
        else
            not_zookeeper(c);
        return;
    }
    if (err == CLAVE_ETOOBIG) {
        clave__client_fault(c, "%s sent a reply of %zu bytes, more than the %zu allowed",
                            host_text(c, host, sizeof host), n, c->link.in.max_frame);
        clave__pipeline_reply_too_big(c);
    }
    clave__link_drop(c, err);
}

/* ---- transport ----------------------------------------------------------------------- */

void clave_async_client_input(clave_async_client *c, int64_t now, const void *p, size_t n)
{
    struct link *l = &c->link;
    assert(c->deliveries.depth == 0); /* never from a callback */
    clave__engine_enter(c, now);
    clave__engine_deliver(c);
    if (link_is_up(l)) {
        const uint8_t *payload = NULL;
        size_t len = 0;
        int more = 1;
        l->heard = c->now;
        clave__frame_feed(&l->in, p, n);
        while (link_is_up(l) && (more = clave__frame_next(&l->in, &payload, &len)) > 0) {
            frame(c, payload, len);
            clave__engine_deliver(c);
        }
        if (link_is_up(l) && more < 0)
            bad_frame(c, (clave_err)more, len);
    }
    clave__engine_leave(c);
}

void clave_async_client_connected(clave_async_client *c, int64_t now)
{
    struct link *l = &c->link;
    assert(c->deliveries.depth == 0); /* never from a callback */
    clave__engine_enter(c, now);
    if (l->phase == LINK_DIALLING) {
        l->connections++;
        l->answered = false;
        l->out_begin = 0;
        l->heard = c->now;
        link_enter(c, LINK_SHAKING, c->now + link_patience(c));
        shake_hands(c);
    }
    clave__engine_leave(c);
}

static void tell_of_end(clave_async_client *c)
{
    char host[300];
    host_text(c, host, sizeof host);
    if (c->fault_is_news)
        return;
    switch (c->link.phase) {
    case LINK_DIALLING:
        clave__client_fault(c, "cannot connect to %s", host);
        break;
    case LINK_SHAKING: /* how servers turn away, without a word, whom they have no room for */
        clave__client_fault(c,
                            "%s closed the connection before it answered: its limit of connections "
                            "may be reached, or it does not serve yet",
                            host);
        break;
    case LINK_IDLE:
    case LINK_OPEN:
    case LINK_HANGUP:
        clave__client_fault(c, "%s closed the connection", host);
        break;
    }
}

void clave_async_client_disconnected(clave_async_client *c, int64_t now)
{
    struct link *l = &c->link;
    assert(c->deliveries.depth == 0); /* never from a callback */
    clave__engine_enter(c, now);
    if (l->phase != LINK_IDLE) {
        bool was_of_use = l->answered && l->phase != LINK_DIALLING;
        if (l->phase != LINK_HANGUP)
            tell_of_end(c);
        if (l->phase == LINK_OPEN)
            clave__session_detached(c, CLAVE_ECONNLOSS);
        l->answered = false;
        go_on(c, !was_of_use);
    }
    clave__engine_leave(c);
}

unsigned clave_async_client_wants(const clave_async_client *c)
{
    bool output = clave__buf_len(&c->link.out) > 0;
    switch (c->link.phase) {
    case LINK_DIALLING:
        return CLAVE_WANT_DIAL;
    case LINK_SHAKING:
    case LINK_OPEN:
        return CLAVE_WANT_READ | (output ? CLAVE_WANT_WRITE : 0);
    case LINK_HANGUP:
        return CLAVE_WANT_HANGUP;
    case LINK_IDLE:
        break;
    }
    return 0;
}

clave_target clave_async_client_target(const clave_async_client *c)
{
    const struct host *h = clave__hosts_current(&c->hosts);
    return (clave_target){
        .host = h->name, .port = h->port, .attempt = h->tried, .tls = c->hosts.tls};
}

size_t clave_async_client_output(clave_async_client *c, const void **p)
{
    *p = clave__buf_bytes(&c->link.out);
    return clave__buf_len(&c->link.out);
}

void clave_async_client_sent(clave_async_client *c, int64_t now, size_t n)
{
    struct link *l = &c->link;
    if (now > c->now)
        c->now = now;
    clave__buf_consume(&l->out, n);
    l->out_begin += n;
    clave__pipeline_fill(c);
}
