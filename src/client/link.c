/* link.c - the transport connection: which host to dial and when, the handshake, and when to give a
 * connection up; and the calls of the driver (connected, input, sent, disconnected). The phases are
 * drawn in engine.h; link_enter is the only function that changes them, and it drops all bytes of
 * the old connection. */
#include <assert.h>
#include <stdio.h>

#include "client/engine.h"

enum { MIN_ATTEMPT_MS = 250 };

static void link_enter(clave_async_client *c, enum link_phase to, int64_t until)
{
    c->link.phase = to;
    c->link.until = until;
    if (to != LINK_HANDSHAKE && to != LINK_OPEN) { /* no bytes of one connection enter the next */
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
static int64_t attempt_timeout(const clave_async_client *c)
{
    int64_t hosts = (int64_t)c->hosts.count;
    int64_t ms = session_timeout(c) / (hosts > 3 ? hosts : 3);
    return ms > MIN_ATTEMPT_MS ? ms : MIN_ATTEMPT_MS;
}

/* ---- dialling -------------------------------------------------------------------------------- */

/* A segment that was lost in an outage of the network is sent again after a second, then two, then
 * four. So a dial takes at most a quarter of the time that the session has left, as a pause does:
 * the next one gets through at once. */
static int64_t dial_timeout(const clave_async_client *c)
{
    int64_t ms = attempt_timeout(c);
    int64_t end = clave__session_deadline(c);
    if (end <= c->now)
        return ms;
    int64_t quarter = (end - c->now) / 4;
    int64_t most = quarter > MIN_ATTEMPT_MS ? quarter : MIN_ATTEMPT_MS;
    return ms < most ? ms : most;
}

/* TLS is the server's work, and thousands of clients may wait for it. One that came back would wait
 * behind all others, and what was begun for it would be lost: with a single server it stays, and
 * leaves time for one more attempt. */
static int64_t securing_timeout(const clave_async_client *c)
{
    int64_t ms = attempt_timeout(c);
    int64_t end = clave__session_deadline(c);
    int64_t left = end == CLAVE_NEVER ? session_timeout(c) : end - c->now;
    return c->hosts.count == 1 && left - ms > ms ? left - ms : ms;
}

static void link_dial(clave_async_client *c)
{
    c->fault_is_news = false;
    link_enter(c, LINK_DIALLING, c->now + dial_timeout(c));
}

/* The pause before the next round, by the retry policy. The default policy waits at most a quarter
 * of the time that the session has left, so that a server that returns in time is found; one that
 * is there, and denies us everything, is not. */
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
    return c->reconnect_is_users || l->denied || pause < most ? pause : most;
}

void clave__link_has_served(clave_async_client *c)
{
    c->link.rounds = 0;
    clave__hosts_served(&c->hosts);
}

/* After a connection or an attempt: dials the next host, at once, or after a pause when all of them
 * failed in a row. Where everything is denied, the session expires again and again: each time the
 * next dial is at once, and the back-off goes on. */
static void dial_next_host(clave_async_client *c, bool failed)
{
    if (!failed && !c->link.denied)
        clave__link_has_served(c);
    link_enter(c, LINK_IDLE, CLAVE_NEVER);
    /* Closed before it had a session. If the handshake made one, its id is not known. */
    if (c->session.closing && c->session.id == 0)
        clave__session_end(c, CLAVE_OK);
    if (c->session.state == CLAVE_STATE_CLOSED)
        return;
    if (!clave__hosts_next(&c->hosts, failed)) {
        if (c->link.resting)
            link_enter(c, LINK_IDLE, c->now);
        else
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

void clave__client_rest(clave_async_client *c, bool rest)
{
    c->link.resting = rest;
}

void clave__link_drop(clave_async_client *c, clave_err why)
{
    enum link_phase phase = c->link.phase;
    c->link.cut = 0;
    if (phase == LINK_IDLE || phase == LINK_HANGUP)
        return;
    if (why == CLAVE_EPROTO)
        c->link.answered = false; /* the answer was of no use */
    if (phase == LINK_OPEN)
        clave__session_detached(c, why);
    link_enter(c, LINK_HANGUP, CLAVE_NEVER);
}

void clave__link_shut(clave_async_client *c)
{
    bool idle = c->link.phase == LINK_IDLE;
    link_enter(c, idle ? LINK_IDLE : LINK_HANGUP, CLAVE_NEVER);
}

/* The server in use, or being dialled, is no longer in the list. */
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
    if (err == CLAVE_EHOST)
        clave__client_fault(c, "invalid server list '%s': %s", hosts ? hosts : "",
                            clave__hosts_fault(hosts));
    if (err != CLAVE_OK)
        return err;
    if (!clave__hosts_fit(&fresh, &c->hosts)) {
        clave__hosts_fini(&fresh);
        clave__client_fault(c, "the new server list '%s' has another chroot, or differs in TLS",
                            hosts);
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
        leave_host(c); /* its callbacks run with the next entry */
    return CLAVE_OK;
}

/* ---- time ------------------------------------------------------------------------------------ */

int64_t clave__link_deadline(const clave_async_client *c)
{
    const struct link *l = &c->link;
    if (l->phase == LINK_OPEN)
        return l->heard + (int64_t)c->session.timeout_ms * 2 / 3; /* as Apache's clients */
    if (l->phase == LINK_IDLE && l->resting)
        return CLAVE_NEVER;
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
    host_text(c, host, sizeof host);
    if (c->link.phase == LINK_DIALLING)
        clave__client_fault(c, "cannot connect to %s in time", host);
    else
        clave__client_fault(c, "%s does not answer%s", host,
                            c->link.phase == LINK_SECURING ? " in the TLS handshake" : "");
    clave__link_drop(c, CLAVE_ETIMEDOUT);
}

/* ---- handshake ------------------------------------------------------------------------------- */

static void send_connect_request(clave_async_client *c)
{
    struct link *l = &c->link;
    const struct session *s = &c->session;
    bool saw_more = s->event_zxid > s->last_zxid;
    struct wire_connect_request q = {
        .last_zxid_seen = saw_more ? s->event_zxid : s->last_zxid,
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
    l->handshake_sent = l->wrote = c->now;
}

static void not_zookeeper(clave_async_client *c)
{
    char host[300];
    clave__client_fault(c, "%s does not speak ZooKeeper's protocol: is it the right port?",
                        host_text(c, host, sizeof host));
    clave__link_drop(c, CLAVE_EPROTO);
}

/* A TLS alert, read as the length of a frame: a TLS server's answer to a client without TLS. */
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

/* This host is of use, so far: when the connection ends, the next attempt need not wait for a
 * pause.
 */
static void mark_host_useful(clave_async_client *c)
{
    c->link.answered = true;
    clave__hosts_answered(&c->hosts);
}

/* The server does not know the session, or refuses to re-attach or make one. */
static void link_refused(clave_async_client *c)
{
    bool had = c->session.id != 0;
    if (had)
        mark_host_useful(c);
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
    c->link.answered = false; /* the host is of no use: a pause follows */
    clave__link_drop(c, err);
}

static void take_connect_response(clave_async_client *c, struct jreader *r)
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
        /* Some servers hand out another session: what the old session held is no longer ours. The
         * next dial asks for a new one. */
        clave__client_fault(c, "the server answered with another session");
        mark_host_useful(c);
        clave__session_lose(c, CLAVE_EREPLACED);
        return;
    }
    link_enter(c, LINK_OPEN, CLAVE_NEVER);
    clave__session_attached(c, &m, c->link.handshake_sent);
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* Before 3.6: it answers so, and hangs up. Without these watches it serves. */
static void no_persistent_watches(clave_async_client *c)
{
    char host[300];
    clave__client_fault(c, "%s has no persistent watches (ZooKeeper before 3.6)",
                        host_text(c, host, sizeof host));
    clave__client_watches_lose_persistent(c);
    mark_host_useful(c);
    clave__link_drop(c, CLAVE_ECONNLOSS);
}

/* On a server that refuses the watches, waiters would get no events and sleep until their
 * deadlines; another connection may do better, so the host counts as failed. false: no setWatches
 * was sent. */
static bool watches_answered(clave_async_client *c, clave_err err)
{
    bool persistent;
    if (!clave__client_watches_answered(c, &persistent))
        return false;
    if (err == CLAVE_OK) {
        if (clave__client_watches_settled(c))
            mark_host_useful(c);
        return true;
    }
    if (persistent && err == CLAVE_EUNIMPLEMENTED) {
        no_persistent_watches(c);
        return true;
    }
    clave__link_refused(c, err, "to set the session's watches again");
    return true;
}

static void link_take_reply(clave_async_client *c, struct jreader *r)
{
    struct wire_reply_header h = clave__wire_get_reply_header(r);
    struct wire_event ev = {0};
    bool ok = !r->bad;
    c->link.denied = h.err == CLAVE_ESASLREQUIRED;
    switch (ok ? h.xid : 0) {
    case XID_EVENT:
        ev = clave__wire_get_event(r);
        ok = !r->bad;
        if (ok && h.zxid > c->session.event_zxid)
            c->session.event_zxid = h.zxid;
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
        clave__client_fault(c, "%s sent a reply to no request of ours",
                            host_text(c, host, sizeof host));
        clave__link_drop(c, CLAVE_EPROTO);
    }
}

static void link_take_frame(clave_async_client *c, const uint8_t *p, size_t n)
{
    struct jreader r = clave__jreader(p, n);
    if (c->link.phase == LINK_HANDSHAKE) {
        take_connect_response(c, &r);
        return;
    }
    /* Answers before the server has taken all watches (to identities, to some of the watches) do
     * not count yet: a server that refuses the watches each time would be dialled without a pause.
     */
    if (!c->link.answered && clave__client_watches_settled(c))
        mark_host_useful(c);
    link_take_reply(c, &r);
}

static bool link_is_up(const struct link *l)
{
    return l->phase == LINK_HANDSHAKE || l->phase == LINK_OPEN;
}

static void bad_frame(clave_async_client *c, clave_err err, size_t n)
{
    char host[300];
    if (c->link.phase == LINK_HANDSHAKE && err != CLAVE_ENOMEM) {
        if (is_tls_alert(n))
            wants_tls(c);
        else
            not_zookeeper(c);
        return;
    }
    if (err == CLAVE_ETOOBIG) {
        clave__client_fault(
            c,
            "%s sent a reply of %zu bytes, more than the %zu allowed (four times max_frame "
            "of clave_client_options)",
            host_text(c, host, sizeof host), n, c->link.in.max_frame);
        clave__pipeline_reply_too_big(c);
    }
    clave__link_drop(c, err);
}

/* ---- transport ------------------------------------------------------------------------------- */

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
            link_take_frame(c, payload, len);
            clave__engine_deliver(c);
        }
        if (link_is_up(l) && more < 0)
            bad_frame(c, (clave_err)more, len);
    }
    clave__engine_leave(c);
}

void clave_async_client_securing(clave_async_client *c, int64_t now)
{
    clave__engine_note(c, now);
    if (c->link.phase == LINK_DIALLING)
        link_enter(c, LINK_SECURING, c->now + securing_timeout(c));
}

void clave_async_client_connected(clave_async_client *c, int64_t now)
{
    struct link *l = &c->link;
    assert(c->deliveries.depth == 0); /* never from a callback */
    clave__engine_enter(c, now);
    if (l->phase == LINK_DIALLING || l->phase == LINK_SECURING) {
        l->connections++;
        l->answered = false;
        l->out_begin = 0;
        l->cut = 0;
        l->heard = c->now;
        link_enter(c, LINK_HANDSHAKE, c->now + attempt_timeout(c));
        send_connect_request(c);
    }
    clave__engine_leave(c);
}

/* An open connection. What the server may have closed it for says more than an earlier fault. */
static void report_cut(clave_async_client *c, const char *host)
{
    size_t cut = clave__pipeline_cut(c);
    c->link.cut = cut;
    if (cut >= LARGE_REQUEST)
        clave__client_fault(c,
                            "%s closed the connection while a request of %zu bytes was "
                            "unanswered: " LARGE_REQUEST_ADVICE,
                            host, cut);
    else if (c->watches.unanswered > 0)
        clave__client_fault(c,
                            "%s closed the connection when the session's watches were set again: "
                            "it may have no room for them (clave serve --max-connection-watches, "
                            "--max-watches)",
                            host);
}

static void report_hangup(clave_async_client *c)
{
    char host[300];
    host_text(c, host, sizeof host);
    if (c->link.phase == LINK_OPEN)
        report_cut(c, host);
    if (c->fault_is_news)
        return;
    switch (c->link.phase) {
    case LINK_DIALLING:
    case LINK_SECURING:
        clave__client_fault(c, "cannot connect to %s", host);
        break;
    case LINK_HANDSHAKE: /* this is how servers turn clients away when they have no room */
        clave__client_fault(c,
                            "%s closed the connection before it answered: its limit of connections "
                            "may be reached (--max-connections; maxClientCnxns in a zoo.cfg), or "
                            "that of sessions (--max-sessions, --max-disconnected), or it is not "
                            "serving yet",
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
            report_hangup(c);
        if (l->phase == LINK_OPEN)
            clave__session_detached(c, CLAVE_ECONNLOSS);
        l->answered = false;
        dial_next_host(c, !was_of_use);
    }
    clave__engine_leave(c);
}

unsigned clave_async_client_wants(const clave_async_client *c)
{
    bool output = clave__buf_len(&c->link.out) > 0;
    switch (c->link.phase) {
    case LINK_DIALLING:
    case LINK_SECURING:
        return CLAVE_WANT_DIAL;
    case LINK_HANDSHAKE:
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
