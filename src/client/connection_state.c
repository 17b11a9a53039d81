/* connection_state.c - the session states users see: CONNECTED, SUSPENDED, RECONNECTED, LOST,
 * READ_ONLY, CLOSED, in Curator's order. driver_calls.c, driver_calls.c and link.c call it on
 * attach, detach and expiry, deliveries.c on every entry for the deadlines.
 * connection_state_enter is the only function that changes the state. */
#include <assert.h>
#include <string.h>

#include "base/deadline.h"
#include "client/client_internal.h"

static bool connection_state_is_up(const struct session *s)
{
    return s->state == CLAVE_STATE_CONNECTED || s->state == CLAVE_STATE_RECONNECTED ||
           s->state == CLAVE_STATE_READ_ONLY;
}

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

/* The callbacks see it when the engine is consistent: deliveries.c. */
static void connection_state_deliver(struct deliveries *d, clave_state state, clave_err why)
{
    assert(d->nstates < DELIVERY_STATES); /* one entry makes a few at most */
    size_t at = (d->first_state + d->nstates++) % DELIVERY_STATES;
    d->states[at].state = state;
    d->states[at].why = why;
}

static void connection_state_enter(clave_async_client *c, clave_state to, clave_err why)
{
    assert(c->session.state != CLAVE_STATE_CLOSED);
    clave__log_about(&c->log, CLAVE_LOG_INFO, &(struct log_about){.session = c->session.id},
                     "session 0x%llx %s -> %s%s%s", (unsigned long long)c->session.id,
                     clave_state_name(c->session.state), clave_state_name(to), why ? ": " : "",
                     why ? clave_strerror(why) : "");
    c->session.state = to;
    c->metrics.sessions_lost += to == CLAVE_STATE_LOST;
    connection_state_deliver(&c->deliveries, to, why);
}

/* ---- attached -------------------------------------------------------------------------------- */

static void connection_state_take_deadline(clave_async_client *c, bool read_only, bool made,
                                           int64_t sent)
{
    assert(c->session.timeout_ms > 0);
    struct hold_deadline *d = &c->hold_deadline;
    clave__hold_deadline_agreed(d, c->session.timeout_ms, c->margin_ms);
    clave__hold_deadline_expect_relay(d, c->relay_ms); /* until the server is known */
    if (read_only)
        clave__hold_deadline_attached_read_only(d, sent);
    else if (made)
        clave__hold_deadline_made(d, sent);
    else
        clave__hold_deadline_attached(d, sent);
}

/* Nothing waits for this but the report: the requests follow the identities on the connection. */
void clave__session_admitted(clave_async_client *c)
{
    struct session *s = &c->session;
    if (connection_state_is_up(s) || !clave__auth_is_settled(c))
        return;
    clave_state up = s->was_connected ? CLAVE_STATE_RECONNECTED : CLAVE_STATE_CONNECTED;
    c->metrics.reconnects += s->was_connected;
    s->was_connected = s->known = true;
    connection_state_enter(c, s->read_only ? CLAVE_STATE_READ_ONLY : up, CLAVE_OK);
}

/* A new session has another timeout than the one that was requested: a holder that dies is noticed
 * later or earlier than its user believes. Said once. */
static void connection_state_tell_timeout(clave_async_client *c)
{
    struct session *s = &c->session;
    bool less = s->timeout_ms < c->asked_timeout_ms;
    if (s->told_ms == 0 || s->told_ms == s->timeout_ms)
        return;
    s->told_ms = s->timeout_ms;
    if (s->timeout_ms != c->asked_timeout_ms)
        clave__log(&c->log, CLAVE_LOG_WARN,
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
        connection_state_tell_timeout(c);
    connection_state_take_deadline(c, r->read_only, made, sent);
    clave__client_watches_attached(c);
    clave__heartbeat_attached(c);
    clave__session_admitted(c);
    clave__session_hold_moved(c);
    if (!made && !alone && !r->read_only)
        clave__heartbeat_catch_up(c);
    if (!s->closing)
        clave__standalone_server_ask(c);
    clave__pipeline_fill(c);
}

/* ---- detached, lost, ended ------------------------------------------------------------------- */

void clave__session_detached(clave_async_client *c, clave_err why)
{
    assert(c->session.id != 0);
    if (connection_state_is_up(&c->session))
        connection_state_enter(c, CLAVE_STATE_SUSPENDED, why);
    clave__heartbeat_detached(c);
    clave__auth_detached(c);
    clave__pipeline_detached(c);
}

/* Drops everything that belongs to the session: its requests, watches, id and deadline. */
static void drop_session_state(clave_async_client *c, clave_err unsent, clave_err sent)
{
    struct session *s = &c->session;
    clave__pipeline_fail(c, unsent, sent);
    clave__client_watches_lose(c);
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
    bool known = c->session.known;
    drop_session_state(c, CLAVE_ENOTSENT, CLAVE_ECONNLOSS);
    if (known)
        connection_state_enter(c, CLAVE_STATE_LOST, why);
    if (c->session.closing)
        clave__session_end(c, CLAVE_OK);
}

void clave__session_end(clave_async_client *c, clave_err why)
{
    if (c->session.state == CLAVE_STATE_CLOSED)
        return;
    clave__link_shut(c);
    drop_session_state(c, CLAVE_ECLOSED, CLAVE_ECLOSED);
    connection_state_enter(c, CLAVE_STATE_CLOSED, why);
}

/* ---- time ------------------------------------------------------------------------------------ */

void clave__session_hold_moved(clave_async_client *c)
{
    struct session *s = &c->session;
    int64_t deadline = clave__hold_deadline_get(&c->hold_deadline);
    if (s->binding && deadline > s->reported_deadline)
        clave__histogram_note(&c->metrics.slack_ms,
                              s->reported_deadline > c->now ? s->reported_deadline - c->now : 0);
    if (list_empty(&c->holds))
        s->binding = false;
    else if (deadline > c->now)
        s->binding = true; /* from the first grant on that could rely on the deadline */
    if (deadline > s->reported_deadline)
        c->deliveries.deadline_moved = true;
    s->reported_deadline = deadline;
}

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
    if (c->now < clave__session_deadline(c))
        return;
    if (s->closing && c->now >= s->close_by) {
        clave__session_end(c, CLAVE_OK);
        return;
    }
    clave__client_fault(c, "no server has confirmed session 0x%llx for %d ms",
                        (unsigned long long)s->id, (int)s->timeout_ms);
    clave__session_lose(c, CLAVE_ETIMEDOUT);
}
