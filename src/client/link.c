/* link.c - the transport connection: which host to dial and when, and when to give a connection up.
 * The driver's calls (driver_calls.c) report what the transport does; the pause before the next
 * round through the hosts follows the retry policy (backoff.c).
 *
 * The phases are drawn in client_internal.h. What must stay true: clave__link_enter is the only
 * function that changes the phase, and it drops all bytes of the old connection; a link that is
 * given up stays in HANGUP until the driver says that the transport is closed. */
#include <assert.h>
#include <stdio.h>

#include "client/client_internal.h"

enum { MIN_ATTEMPT_MS = 250 };

void clave__link_enter(clave_async_client *c, enum link_phase to, int64_t until)
{
    assert(to != LINK_OPEN || c->link.phase == LINK_HANDSHAKE);
    assert(to != LINK_HANDSHAKE || c->link.phase == LINK_DIALLING ||
           c->link.phase == LINK_SECURING);
    c->link.phase = to;
    c->link.until = until;
    if (to != LINK_HANDSHAKE && to != LINK_OPEN) { /* no bytes of one connection enter the next */
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

/* How long one attempt may take, so that several fit into a session. */
int64_t clave__link_attempt_timeout(const clave_async_client *c)
{
    assert(c->hosts.count > 0);
    int64_t hosts = (int64_t)c->hosts.count;
    int64_t ms = link_session_timeout(c) / (hosts > 3 ? hosts : 3);
    return ms > MIN_ATTEMPT_MS ? ms : MIN_ATTEMPT_MS;
}

/* ---- dialling -------------------------------------------------------------------------------- */

/* A segment that was lost in an outage of the network is sent again after a second, then two, then
 * four. So a dial takes at most a quarter of the time that the session has left, as a pause does:
 * the next one gets through at once. */
static int64_t link_dial_timeout(const clave_async_client *c)
{
    int64_t ms = clave__link_attempt_timeout(c);
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
int64_t clave__link_securing_timeout(const clave_async_client *c)
{
    int64_t ms = clave__link_attempt_timeout(c);
    int64_t end = clave__session_deadline(c);
    int64_t left = end == CLAVE_NEVER ? link_session_timeout(c) : end - c->now;
    return c->hosts.count == 1 && left - ms > ms ? left - ms : ms;
}

static void link_dial(clave_async_client *c)
{
    assert(c->link.phase == LINK_IDLE);
    c->fault_is_news = false;
    clave__link_enter(c, LINK_DIALLING, c->now + link_dial_timeout(c));
}

/* The pause before the next round, by the retry policy. The default policy waits at most a quarter
 * of the time that the session has left, so that a server that returns in time is found; one that
 * is there, and denies us everything, is not. */
static int64_t link_next_pause(clave_async_client *c)
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
void clave__link_gone(clave_async_client *c, bool failed)
{
    assert(c->link.phase != LINK_IDLE);
    if (!failed && !c->link.denied)
        clave__link_has_served(c);
    clave__link_enter(c, LINK_IDLE, CLAVE_NEVER);
    /* Closed before it had a session. If the handshake made one, its id is not known. */
    if (c->session.closing && c->session.id == 0)
        clave__session_end(c, CLAVE_OK);
    if (c->session.state == CLAVE_STATE_CLOSED)
        return;
    if (!clave__hosts_next(&c->hosts, failed)) {
        if (c->link.resting)
            clave__link_enter(c, LINK_IDLE, c->now);
        else
            link_dial(c);
        return;
    }
    int64_t pause = link_next_pause(c);
    if (pause < 0)
        clave__session_end(c, CLAVE_EUNREACHABLE);
    else
        clave__link_enter(c, LINK_IDLE, c->now + pause);
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
    assert(why != CLAVE_OK);
    enum link_phase phase = c->link.phase;
    c->link.cut = 0;
    if (phase == LINK_IDLE || phase == LINK_HANGUP)
        return;
    if (why == CLAVE_EPROTO)
        c->link.answered = false; /* the answer was of no use */
    if (phase == LINK_OPEN)
        clave__session_detached(c, why);
    clave__link_enter(c, LINK_HANGUP, CLAVE_NEVER);
}

void clave__link_shut(clave_async_client *c)
{
    bool idle = c->link.phase == LINK_IDLE;
    clave__link_enter(c, idle ? LINK_IDLE : LINK_HANGUP, CLAVE_NEVER);
}

/* The server in use, or being dialled, is no longer in the list. */
static void link_leave_host(clave_async_client *c)
{
    struct link *l = &c->link;
    bool waits = l->phase == LINK_IDLE && l->until != CLAVE_NEVER;
    clave__client_fault(c, "the server is not in the new list of hosts");
    if (waits)
        clave__link_enter(c, LINK_IDLE, c->now);
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
        link_leave_host(c); /* its callbacks run with the next entry */
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
    clave__link_host(c, host, sizeof host);
    if (c->link.phase == LINK_DIALLING)
        clave__client_fault(c, "cannot connect to %s in time", host);
    else
        clave__client_fault(c, "%s does not answer%s", host,
                            c->link.phase == LINK_SECURING ? " in the TLS handshake" : "");
    clave__link_drop(c, CLAVE_ETIMEDOUT);
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* This host is of use, so far: when the connection ends, the next attempt need not wait for a
 * pause.
 */
void clave__link_is_of_use(clave_async_client *c)
{
    c->link.answered = true;
    clave__hosts_answered(&c->hosts);
}

/* The server does not know the session, or refuses to re-attach or make one. */
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
    c->link.answered = false; /* the host is of no use: a pause follows */
    clave__link_drop(c, err);
}
