/* client_connection.c - implements `link` and `session` of client_internal.h: the connection, and
 * the session on it. It decides which host to dial and when, when to give a connection up, and the
 * states that users see (CONNECTED, SUSPENDED, RECONNECTED, LOST, READ_ONLY, CLOSED, in Curator's
 * order). The driver's calls (driver_calls.c) report what the transport does; the pause before the
 * next round through the hosts follows the retry policy (backoff.c).
 *
 * Everything about the connection and the session is decided here and nowhere else. When the
 * connection is lost, or the session with it, this file tells the requests (pipeline.c) and the
 * heartbeats. What these find out by themselves, for instance that the server refuses them or that
 * the session has expired, they report with clave__link_report, and clave__connection_settle acts
 * upon it before the next callback runs (deliveries.c). So no code below ever finds the connection
 * gone in the middle of what it is doing.
 *
 * What must stay true: clave__link_enter is the only function that changes the phase of the link
 * (drawn in client_internal.h), and it drops all bytes of the old connection. A link that was given
 * up stays in HANGUP until the driver says that the transport is closed. session_enter is the only
 * function that changes the state of the session. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/deadline.h"
#include "client/client_internal.h"

/* ---- the link: its phase, and how long an attempt may take ----------------------------------- */

enum { MIN_ATTEMPT_MS = 250 };

void clave__link_enter(clave_async_client *c, enum link_phase to, int64_t until)
{
    assert(to != LINK_OPEN || c->link.phase == LINK_HANDSHAKE);
    assert(to != LINK_HANDSHAKE || c->link.phase == LINK_DIALLING ||
           c->link.phase == LINK_SECURING);
    c->link.phase = to;
    c->link.until = until;
    if (to != LINK_HANDSHAKE &&
        to != LINK_OPEN) { /* nothing of one connection is left for the next */
        if (c->link.verdict.kind < VERDICT_LOST)
            c->link.verdict = (struct verdict){VERDICT_NONE, CLAVE_OK, NULL};
        clave__buf_clear(&c->link.out);
        clave__frame_reader_reset(&c->link.in);
    }
}

const char *clave__link_host(const clave_async_client *c, char *out, size_t cap)
{
    const struct host *h = clave__hosts_current(&c->hosts);
    if (h->port)
        snprintf(out, cap, "%s:%u", h->name, (unsigned)h->port);
    else
        snprintf(out, cap, "%s", h->name);
    return out;
}

static int64_t link_session_timeout(const clave_async_client *c)
{
    return c->session.timeout_ms ? c->session.timeout_ms : c->asked_timeout_ms;
}

int64_t clave__link_attempt_timeout(const clave_async_client *c)
{
    assert(c->hosts.count > 0);
    int64_t hosts = (int64_t)c->hosts.count;
    int64_t ms = link_session_timeout(c) / (hosts > 3 ? hosts : 3);
    return ms > MIN_ATTEMPT_MS ? ms : MIN_ATTEMPT_MS;
}

/* ---- the link: dialling ---------------------------------------------------------------------- */

/* The longest that a dial may take. A TCP segment lost in an outage of the network is sent again
 * after a second, then after two, then after four. So, like a pause, a dial may take at most a
 * quarter of the time that the session has left: when the network is back, a fresh dial gets
 * through at once. */
static int64_t link_dial_timeout(const clave_async_client *c)
{
    int64_t ms = clave__link_attempt_timeout(c);
    int64_t end = clave__session_deadline(c);
    if (end <= c->base.now)
        return ms;
    int64_t quarter = (end - c->base.now) / 4;
    int64_t most = quarter > MIN_ATTEMPT_MS ? quarter : MIN_ATTEMPT_MS;
    return ms < most ? ms : most;
}

/* The longest that a TLS handshake may take. TLS is work for the server, and thousands of clients
 * may be waiting for theirs. A client that gave up and came back would wait behind all of them, and
 * the work begun for it would be wasted. So with a single server it keeps waiting, but leaves time
 * for one more attempt. */
int64_t clave__link_securing_timeout(const clave_async_client *c)
{
    int64_t ms = clave__link_attempt_timeout(c);
    int64_t end = clave__session_deadline(c);
    int64_t left = end == CLAVE_NEVER ? link_session_timeout(c) : end - c->base.now;
    return c->hosts.count == 1 && left - ms > ms ? left - ms : ms;
}

void clave__link_dial(clave_async_client *c)
{
    assert(c->link.phase == LINK_IDLE);
    c->fault_is_news = false;
    clave__link_enter(c, LINK_DIALLING, c->base.now + link_dial_timeout(c));
}

/* The pause before the next round, by the retry policy. The default policy waits at most a quarter
 * of the time that the session has left, so that a server that returns is found in time. That does
 * not apply to a server that is up and denies us everything. */
static int64_t link_next_pause(clave_async_client *c)
{
    struct link *l = &c->link;
    if (l->rounds == 0)
        l->failing_since = c->base.now;
    int64_t pause = clave_retry_delay(&c->reconnect, l->rounds, c->base.now - l->failing_since,
                                      clave__rand_u64(&c->rand));
    l->rounds += l->rounds < INT32_MAX;
    int64_t end = clave__session_deadline(c);
    int64_t most = end > c->base.now ? (end - c->base.now) / 4 : 0;
    if (most < c->reconnect.base_ms)
        most = c->reconnect.base_ms;
    return c->reconnect_is_users || l->denied || pause < most ? pause : most;
}

/* A connection or an attempt has ended: dials the next host, at once, or after a pause if all of
 * them have failed in a row. Where everything is denied, sessions expire again and again; each time
 * the next dial is at once, but the back-off continues. */
void clave__link_gone(clave_async_client *c, bool failed)
{
    assert(c->link.phase != LINK_IDLE);
    if (!failed && !c->link.denied)
        clave__link_has_served(c);
    clave__link_enter(c, LINK_IDLE, CLAVE_NEVER);
    /* The client was closed before it had a session. If the handshake made one, its id is unknown.
     */
    if (c->session.closing && c->session.id == 0)
        clave__session_end(c, CLAVE_OK);
    if (c->session.state == CLAVE_STATE_CLOSED)
        return;
    if (!clave__hosts_next(&c->hosts, failed)) {
        if (c->link.resting)
            clave__link_enter(c, LINK_IDLE, c->base.now);
        else
            clave__link_dial(c);
        return;
    }
    int64_t pause = link_next_pause(c);
    if (pause < 0)
        clave__session_end(c, CLAVE_EUNREACHABLE);
    else
        clave__link_enter(c, LINK_IDLE, c->base.now + pause);
}

void clave__client_rest(clave_async_client *c, bool rest)
{
    c->link.resting = rest;
}

void clave__link_drop(clave_async_client *c, clave_err why)
{
    assert(why != CLAVE_OK);
    enum link_phase phase = c->link.phase;
    c->link.cut = 0;
    if (phase == LINK_IDLE || phase == LINK_HANGUP)
        return;
    if (why == CLAVE_EPROTO)
        c->link.answered = false; /* that answer was useless */
    if (phase == LINK_OPEN)
        clave__session_detached(c, why);
    clave__link_enter(c, LINK_HANGUP, CLAVE_NEVER);
}

/* The server in use, or being dialled, is not in the list any more. */
static void link_leave_host(clave_async_client *c)
{
    struct link *l = &c->link;
    bool waits = l->phase == LINK_IDLE && l->until != CLAVE_NEVER;
    clave__client_fault(c, "the server is not in the new list of hosts");
    if (waits)
        clave__link_enter(c, LINK_IDLE, c->base.now);
    else
        clave__link_drop(c, CLAVE_ECONNLOSS);
}

clave_err clave_async_client_set_hosts(clave_async_client *c, const char *hosts, int64_t now)
{
    struct hosts fresh;
    clave_err err = clave__hosts_init(&fresh, &c->base.mem, hosts);
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
        link_leave_host(c); /* the callbacks run with the next entry */
    return CLAVE_OK;
}

/* ---- the link: time -------------------------------------------------------------------------- */

int64_t clave__link_deadline(const clave_async_client *c)
{
    const struct link *l = &c->link;
    if (l->phase == LINK_OPEN)
        return l->heard + (int64_t)c->session.timeout_ms * 2 / 3; /* as Apache's clients do */
    if (l->phase == LINK_IDLE && l->resting)
        return CLAVE_NEVER;
    return l->phase == LINK_HANGUP ? CLAVE_NEVER : l->until;
}

void clave__link_tick(clave_async_client *c)
{
    char host[300];
    if (c->base.now < clave__link_deadline(c))
        return;
    if (c->link.phase == LINK_IDLE) {
        clave__link_dial(c);
        return;
    }
    clave__link_host(c, host, sizeof host);
    if (c->link.phase == LINK_DIALLING)
        clave__client_fault(c, "cannot connect to %s in time", host);
    else
        clave__client_fault(c, "%s does not answer%s", host,
                            c->link.phase == LINK_SECURING ? " in the TLS handshake" : "");
    clave__link_drop(c, CLAVE_ETIMEDOUT);
}

/* ---- the link: refusals ---------------------------------------------------------------------- */

void clave__link_is_of_use(clave_async_client *c)
{
    c->link.answered = true;
    clave__hosts_answered(&c->hosts);
}

/* The server does not know the session, or refuses to re-attach or to make one. */
static void link_session_refused(clave_async_client *c)
{
    bool had = c->session.id != 0;
    if (had)
        clave__link_is_of_use(c);
    char host[300];
    clave__client_fault(c, had ? "%s says that the session has expired" : "%s refuses a session",
                        clave__link_host(c, host, sizeof host));
    clave__link_drop(c, CLAVE_EEXPIRED);
    clave__session_lose(c, CLAVE_EEXPIRED);
}

void clave__link_refused(clave_async_client *c, clave_err err, const char *what)
{
    assert(err != CLAVE_OK);
    char host[300];
    if (err == CLAVE_EEXPIRED) {
        link_session_refused(c);
        return;
    }
    clave__client_fault(c, "%s refuses %s: %s", clave__link_host(c, host, sizeof host), what,
                        clave_strerror(err));
    c->link.answered = false; /* the host is useless, so a pause follows */
    clave__link_drop(c, err);
}

/* ---- the session: its state ------------------------------------------------------------------ */

const char *clave_state_name(clave_state state)
{
    static const char *const names[] = {
        [CLAVE_STATE_LATENT] = "LATENT",       [CLAVE_STATE_CONNECTED] = "CONNECTED",
        [CLAVE_STATE_SUSPENDED] = "SUSPENDED", [CLAVE_STATE_RECONNECTED] = "RECONNECTED",
        [CLAVE_STATE_LOST] = "LOST",           [CLAVE_STATE_READ_ONLY] = "READ_ONLY",
        [CLAVE_STATE_CLOSED] = "CLOSED",
    };
    return state <= CLAVE_STATE_CLOSED ? names[state] : "UNKNOWN";
}

static void session_enter(clave_async_client *c, clave_state to, clave_err why)
{
    struct deliveries *d = &c->deliveries;
    assert(c->session.state != CLAVE_STATE_CLOSED);
    assert(d->nstates < DELIVERY_STATES); /* one entry produces only a few */
    clave__log_about(&c->base.log, CLAVE_LOG_INFO, &(struct log_about){.session = c->session.id},
                     "session 0x%llx %s -> %s%s%s", (unsigned long long)c->session.id,
                     clave_state_name(c->session.state), clave_state_name(to), why ? ": " : "",
                     why ? clave_strerror(why) : "");
    c->session.state = to;
    c->metrics.sessions_lost += to == CLAVE_STATE_LOST;
    /* Callbacks see it once the engine is consistent (deliveries.c). */
    size_t at = (d->first_state + d->nstates++) % DELIVERY_STATES;
    d->states[at].state = to;
    d->states[at].why = why;
}

/* ---- the session: attached ------------------------------------------------------------------- */

static void session_take_deadline(clave_async_client *c, bool read_only, bool made, int64_t sent)
{
    assert(c->session.timeout_ms > 0);
    struct hold_deadline *d = &c->hold_deadline;
    clave__hold_deadline_agreed(d, c->session.timeout_ms, c->margin_ms);
    clave__hold_deadline_expect_relay(d, c->relay_ms); /* until the kind of server is known */
    if (read_only)
        clave__hold_deadline_attached_read_only(d, sent);
    else if (made)
        clave__hold_deadline_made(d, sent);
    else
        clave__hold_deadline_attached(d, sent);
}

/* Reports that the session is up, once its identities are accepted. Only the report waits for them:
 * requests are sent behind the identities on the same connection. */
void clave__session_admitted(clave_async_client *c)
{
    struct session *s = &c->session;
    if (clave__state_is_up(s->state) || !clave__auth_is_settled(c))
        return;
    clave_state up = s->was_connected ? CLAVE_STATE_RECONNECTED : CLAVE_STATE_CONNECTED;
    c->metrics.reconnects += s->was_connected;
    s->was_connected = s->known = true;
    session_enter(c, s->read_only ? CLAVE_STATE_READ_ONLY : up, CLAVE_OK);
}

/* Logs, once, that a new session has another timeout than was requested, since the death of a
 * holder will be noticed later or earlier than its user believes. */
static void session_tell_timeout(clave_async_client *c)
{
    struct session *s = &c->session;
    bool less = s->timeout_ms < c->asked_timeout_ms;
    if (s->told_ms == 0 || s->told_ms == s->timeout_ms)
        return;
    s->told_ms = s->timeout_ms;
    if (s->timeout_ms != c->asked_timeout_ms)
        clave__log(&c->base.log, CLAVE_LOG_WARN,
                   "the server limited the session timeout to %d ms (requested %d ms): its "
                   "%sSessionTimeout (clave serve --%s-session-timeout) allows no %s",
                   (int)s->timeout_ms, (int)c->asked_timeout_ms, less ? "max" : "min",
                   less ? "max" : "min", less ? "more" : "less");
}

void clave__session_attached(clave_async_client *c, const struct wire_connect_response *r,
                             int64_t sent)
{
    assert(clave__link_is_open(&c->link));
    assert(r->session_id != 0 && r->passwd.n == (int32_t)sizeof c->session.passwd);
    struct session *s = &c->session;
    bool made = s->id == 0, alone = c->hold_deadline.relay_ms == 0;
    s->id = r->session_id;
    memcpy(s->passwd, r->passwd.p, sizeof s->passwd);
    s->timeout_ms = r->timeout_ms;
    s->read_only = r->read_only;
    if (made)
        session_tell_timeout(c);
    session_take_deadline(c, r->read_only, made, sent);
    clave__client_watches_attached(c);
    /* a heartbeat that was never sent is sent now, and its time starts now */
    c->heartbeat.answered = c->heartbeat.asked = c->base.now;
    clave__session_admitted(c);
    clave__session_hold_moved(c);
    clave__handed_attached(c);
    if (!made && !alone && !r->read_only)
        clave__heartbeat_catch_up(c);
    if (!s->closing)
        clave__standalone_server_ask(c);
    clave__pipeline_fill(c);
}

/* ---- the session: detached, lost, ended ------------------------------------------------------ */

void clave__session_detached(clave_async_client *c, clave_err why)
{
    assert(c->session.id != 0);
    if (clave__state_is_up(c->session.state))
        session_enter(c, CLAVE_STATE_SUSPENDED, why);
    clave__heartbeat_detached(c);
    clave__auth_detached(c);
    clave__pipeline_detached(c);
}

/* Drops everything that belongs to the session: requests, watches, id and deadline. */
static void session_drop(clave_async_client *c, clave_err unsent, clave_err sent)
{
    struct session *s = &c->session;
    clave__pipeline_fail(c, unsent, sent);
    clave__client_watches_lose(c, false);
    clave__handed_over(c, unsent == CLAVE_ECLOSED);
    s->id = 0;
    s->known = false;
    s->last_zxid = s->event_zxid = 0;
    memset(s->passwd, 0, sizeof s->passwd);
    clave__hold_deadline_init(&c->hold_deadline);
    s->binding = false;
}

void clave__session_lose(clave_async_client *c, clave_err why)
{
    assert(why != CLAVE_OK);
    if (c->session.id == 0)
        return;
    clave__link_drop(c, why);
    c->session.is_over |= c->session.closing && why == CLAVE_EEXPIRED;
    bool known = c->session.known;
    session_drop(c, CLAVE_ENOTSENT, CLAVE_ECONNLOSS);
    if (known)
        session_enter(c, CLAVE_STATE_LOST, why);
    if (c->session.closing)
        clave__session_end(c, CLAVE_OK);
}

void clave__session_end(clave_async_client *c, clave_err why)
{
    if (c->session.state == CLAVE_STATE_CLOSED)
        return;
    clave__link_enter(c, c->link.phase == LINK_IDLE ? LINK_IDLE : LINK_HANGUP, CLAVE_NEVER);
    session_drop(c, CLAVE_ECLOSED, CLAVE_ECLOSED);
    session_enter(c, CLAVE_STATE_CLOSED, why);
}

/* ---- the session: time; the verdict ---------------------------------------------------------- */

int64_t clave__session_deadline(const clave_async_client *c)
{
    const struct session *s = &c->session;
    int64_t at = s->closing ? s->close_by : CLAVE_NEVER;
    int64_t lost = CLAVE_NEVER;
    if (s->state == CLAVE_STATE_CLOSED || s->id == 0)
        return s->state == CLAVE_STATE_CLOSED ? CLAVE_NEVER : at;
    if (s->binding)
        lost = clave__hold_deadline_get(&c->hold_deadline);
    else if (!clave__link_is_open(&c->link) && c->hold_deadline.contact != HOLD_DEADLINE_NONE)
        lost = clave__hold_deadline_contact(&c->hold_deadline);
    return deadline_earlier(lost, at);
}

void clave__session_tick(clave_async_client *c)
{
    struct session *s = &c->session;
    if (c->base.now < clave__session_deadline(c))
        return;
    if (s->closing && c->base.now >= s->close_by) {
        clave__session_end(c, CLAVE_OK);
        return;
    }
    clave__client_fault(c, "no server has confirmed session 0x%llx for %d ms",
                        (unsigned long long)s->id, (int)s->timeout_ms);
    clave__session_lose(c, CLAVE_ETIMEDOUT);
}

bool clave__connection_settle(clave_async_client *c)
{
    const struct verdict v = c->link.verdict;
    c->link.verdict = (struct verdict){VERDICT_NONE, CLAVE_OK, NULL};
    switch (v.kind) {
    case VERDICT_NONE:
        return false;
    case VERDICT_DROP:
        clave__link_drop(c, v.err);
        break;
    case VERDICT_REFUSED:
        clave__link_refused(c, v.err, v.what);
        break;
    case VERDICT_LOST:
        clave__session_lose(c, v.err);
        break;
    case VERDICT_ENDED:
        clave__session_end(c, v.err);
        break;
    }
    return true;
}
