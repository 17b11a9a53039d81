/* driver_calls.c - the functions that the driver calls: connected, input, sent, disconnected. The
 * first frames of a connection are the handshake, ConnectRequest and ConnectResponse, which make a
 * session or re-attach one. Every later frame goes, by its xid, to the file that handles it: events
 * to client_watch.c, pings to heartbeat.c, identities to client_auth.c, replies to pipeline.c. A
 * frame that is none of these ends the connection. */
#include <assert.h>

#include "client/client_internal.h"

/* ---- handshake ------------------------------------------------------------------------------- */

/* Sends a ConnectRequest for the present session, or for a new one. */
static void handshake_send(clave_async_client *c)
{
    struct link *l = &c->link;
    assert(l->phase == LINK_HANDSHAKE && clave__buf_len(&l->out) == 0);
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
    l->handshake_sent = l->wrote = c->base.now;
}

static void handshake_not_zookeeper(clave_async_client *c)
{
    char host[300];
    clave__client_fault(c, "%s does not speak ZooKeeper's protocol: is it the right port?",
                        clave__link_host(c, host, sizeof host));
    clave__link_drop(c, CLAVE_EPROTO);
}

/* True if `len` is a TLS alert read as the length of a frame, which is how a TLS server answers a
 * client without TLS. */
static bool handshake_is_tls_alert(size_t len)
{
    return len >> 16 == 0x1503;
}

static void handshake_wants_tls(clave_async_client *c)
{
    char host[300];
    clave__link_host(c, host, sizeof host);
    clave__client_fault(c, "%s speaks TLS: connect to tls:%s", host, host);
    clave__link_drop(c, CLAVE_EPROTO);
}

/* Reports that the input cannot be a frame; `n` is its first bytes read as a length. Something
 * other than ZooKeeper is listening there. */
static void handshake_bad_frame(clave_async_client *c, size_t n)
{
    if (handshake_is_tls_alert(n))
        handshake_wants_tls(c);
    else
        handshake_not_zookeeper(c);
}

/* Takes the ConnectResponse: afterwards the link is open or has been given up. */
static void handshake_take(clave_async_client *c, struct jreader *r)
{
    assert(c->link.phase == LINK_HANDSHAKE);
    struct wire_connect_response m = clave__wire_get_connect_response(r);
    bool given = m.timeout_ms > 0;
    bool sound = m.session_id != 0 && m.passwd.n == (int32_t)sizeof c->session.passwd;
    if (r->bad || (given && !sound)) {
        handshake_not_zookeeper(c);
        return;
    }
    if (!given) {
        clave__link_refused(c, CLAVE_EEXPIRED, "a session");
        return;
    }
    int64_t asked = c->session.id;
    if (asked && m.session_id != asked) {
        /* Some servers hand out a different session. What the old one held is no longer ours; the
         * next dial asks for a new session. */
        clave__client_fault(c, "the server answered with another session");
        clave__link_is_of_use(c);
        clave__session_lose(c, CLAVE_EREPLACED);
        return;
    }
    if (asked == 0) /* before any request leaves */
        clave__creations_session_made(c, m.session_id);
    clave__link_enter(c, LINK_OPEN, CLAVE_NEVER);
    clave__session_attached(c, &m, c->link.handshake_sent);
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* A server before 3.6 answers like this and then hangs up. It is still usable without persistent
 * watches. */
static void driver_calls_no_persistent_watches(clave_async_client *c)
{
    char host[300];
    clave__client_fault(c, "%s has no persistent watches (ZooKeeper before 3.6)",
                        clave__link_host(c, host, sizeof host));
    clave__client_watches_lose(c, true);
    clave__link_is_of_use(c);
    clave__link_drop(c, CLAVE_ECONNLOSS);
}

/* A setWatches was answered. If the server refuses the watches, waiters would get no events and
 * would sleep until their deadlines; another connection may do better, so the host counts as
 * failed. Returns false if no setWatches was outstanding. */
static bool driver_calls_watches_answered(clave_async_client *c, clave_err err)
{
    bool persistent;
    if (!clave__client_watches_answered(c, &persistent))
        return false;
    if (err == CLAVE_OK) {
        if (clave__client_watches_settled(c))
            clave__link_is_of_use(c);
        return true;
    }
    if (persistent && err == CLAVE_EUNIMPLEMENTED) {
        driver_calls_no_persistent_watches(c);
        return true;
    }
    clave__link_refused(c, err, "to set the session's watches again");
    return true;
}

static void driver_calls_take_auth(clave_async_client *c, clave_err err)
{
    struct auth *a = clave__auth_asked(c);
    if (!a) {
        clave__link_drop(c, CLAVE_EPROTO);
    } else if (err == CLAVE_OK) {
        clave__auth_accepted(c, a);
        clave__session_admitted(c);
    } else if (clave__auth_refused(c, a)) {
        clave__session_end(c, CLAVE_EAUTHFAILED);
    } else {
        /* The server is about to hang up. The session continues without this identity. */
        clave__link_drop(c, CLAVE_EAUTHFAILED);
        clave__auth_forget(c, a);
    }
}

static void driver_calls_take_reply(clave_async_client *c, struct jreader *r)
{
    assert(clave__link_is_open(&c->link));
    struct wire_reply_header h = clave__wire_get_reply_header(r);
    struct wire_event ev = {0};
    clave_err err = CLAVE_OK;
    bool ok = !r->bad;
    c->link.denied = h.err == CLAVE_ESASLREQUIRED;
    switch (ok ? h.xid : 0) {
    case XID_EVENT:
        ev = clave__wire_get_event(r);
        ok = !r->bad;
        if (ok && h.zxid > c->session.event_zxid)
            c->session.event_zxid = h.zxid;
        /* If there is no memory for an event, the connection is given up: the next one brings the
         * event again. */
        err = ok ? clave__client_watch_event(c, &ev) : CLAVE_OK;
        if (err != CLAVE_OK)
            clave__link_drop(c, err);
        break;
    case XID_PING:
        clave__heartbeat_ping_answered(c, (clave_err)h.err);
        break;
    case XID_AUTH:
        driver_calls_take_auth(c, (clave_err)h.err);
        break;
    case XID_SET_WATCHES:
        ok = driver_calls_watches_answered(c, (clave_err)h.err);
        break;
    default:
        ok = ok && clave__pipeline_reply(c, &h, r);
    }
    if (!ok) {
        char host[300];
        clave__client_fault(c, "%s sent a reply to no request of ours",
                            clave__link_host(c, host, sizeof host));
        clave__link_drop(c, CLAVE_EPROTO);
    }
}

static void driver_calls_take_frame(clave_async_client *c, const uint8_t *p, size_t n)
{
    struct jreader r = clave__jreader(p, n);
    if (c->link.phase == LINK_HANDSHAKE) {
        handshake_take(c, &r);
        return;
    }
    /* Answers that come before the server has accepted all watches (to identities, or to part of
     * the watches) do not count yet. Otherwise a server that refuses the watches every time would
     * be dialled again without a pause. */
    if (!c->link.answered && clave__client_watches_settled(c))
        clave__link_is_of_use(c);
    driver_calls_take_reply(c, &r);
}

static bool driver_calls_is_up(const struct link *l)
{
    return l->phase == LINK_HANDSHAKE || l->phase == LINK_OPEN;
}

static void driver_calls_bad_frame(clave_async_client *c, clave_err err, size_t n)
{
    char host[300];
    if (c->link.phase == LINK_HANDSHAKE && err != CLAVE_ENOMEM) {
        handshake_bad_frame(c, n);
        return;
    }
    if (err == CLAVE_ETOOBIG) {
        clave__client_fault(
            c,
            "%s sent a reply of %zu bytes, more than the %zu allowed (four times max_frame "
            "of clave_client_options)",
            clave__link_host(c, host, sizeof host), n, c->link.in.max_frame);
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
    if (driver_calls_is_up(l)) {
        const uint8_t *payload = NULL;
        size_t len = 0;
        int more = 1;
        l->heard = c->base.now;
        clave__frame_feed(&l->in, p, n);
        while (driver_calls_is_up(l) && (more = clave__frame_next(&l->in, &payload, &len)) > 0) {
            driver_calls_take_frame(c, payload, len);
            clave__engine_deliver(c);
        }
        if (driver_calls_is_up(l) && more < 0)
            driver_calls_bad_frame(c, (clave_err)more, len);
    }
    clave__engine_leave(c);
}

void clave_async_client_securing(clave_async_client *c, int64_t now)
{
    clave__engine_note(c, now);
    if (c->link.phase == LINK_DIALLING)
        clave__link_enter(c, LINK_SECURING, c->base.now + clave__link_securing_timeout(c));
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
        l->heard = c->base.now;
        clave__link_enter(c, LINK_HANDSHAKE, c->base.now + clave__link_attempt_timeout(c));
        handshake_send(c);
    }
    clave__engine_leave(c);
}

/* An open connection was closed. The request that the server may have closed it for explains more
 * than an earlier fault. */
static void driver_calls_report_cut(clave_async_client *c, const char *host)
{
    assert(clave__link_is_open(&c->link));
    size_t cut = clave__pipeline_cut(c);
    c->link.cut = cut;
    if (cut >= LARGE_REQUEST)
        clave__client_fault(c,
                            "%s closed the connection while a request of %zu bytes was "
                            "unanswered: " LARGE_REQUEST_ADVICE
                            ", or it has ended, as on a full disk: its log says which",
                            host, cut);
    else if (c->watches.unanswered > 0)
        clave__client_fault(c,
                            "%s closed the connection when the session's watches were set again: "
                            "it may have no room for them (clave serve --max-connection-watches, "
                            "--max-watches)",
                            host);
}

static void driver_calls_report_hangup(clave_async_client *c)
{
    char host[300];
    clave__link_host(c, host, sizeof host);
    if (c->link.phase == LINK_OPEN)
        driver_calls_report_cut(c, host);
    if (c->fault_is_news)
        return;
    switch (c->link.phase) {
    case LINK_DIALLING:
    case LINK_SECURING:
        clave__client_fault(c, "cannot connect to %s", host);
        break;
    case LINK_HANDSHAKE: /* this is how servers turn clients away when they are full */
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
        bool was_of_use =
            l->answered && l->phase != LINK_DIALLING && !clave__handed_is_unclaimed(c);
        if (l->phase != LINK_HANGUP)
            driver_calls_report_hangup(c);
        if (l->phase == LINK_OPEN)
            clave__session_detached(c, CLAVE_ECONNLOSS);
        l->answered = false;
        clave__link_gone(c, !was_of_use);
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
    if (now > c->base.now)
        c->base.now = now;
    clave__buf_consume(&l->out, n);
    l->out_begin += n;
    clave__pipeline_fill(c);
}
