/* handshake.c - the first frames of a connection: ConnectRequest, and ConnectResponse, with which
 * the session is made or attached again. driver_calls.c calls it in the phase HANDSHAKE. */
#include <assert.h>

#include "client/client_internal.h"

void clave__handshake_send(clave_async_client *c)
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
    l->handshake_sent = l->wrote = c->now;
}

static void handshake_not_zookeeper(clave_async_client *c)
{
    char host[300];
    clave__client_fault(c, "%s does not speak ZooKeeper's protocol: is it the right port?",
                        clave__link_host(c, host, sizeof host));
    clave__link_drop(c, CLAVE_EPROTO);
}

/* A TLS alert, read as the length of a frame: a TLS server's answer to a client without TLS. */
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

void clave__handshake_bad_frame(clave_async_client *c, size_t n)
{
    if (handshake_is_tls_alert(n))
        handshake_wants_tls(c);
    else
        handshake_not_zookeeper(c);
}

void clave__handshake_take(clave_async_client *c, struct jreader *r)
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
        /* Some servers hand out another session: what the old session held is no longer ours. The
         * next dial asks for a new one. */
        clave__client_fault(c, "the server answered with another session");
        clave__link_is_of_use(c);
        clave__session_lose(c, CLAVE_EREPLACED);
        return;
    }
    clave__link_enter(c, LINK_OPEN, CLAVE_NEVER);
    clave__session_attached(c, &m, c->link.handshake_sent);
}
