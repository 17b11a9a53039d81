/* list_connections.c - the connections with their counters and sessions: as text for cons and stat,
 * as JSON for connections and stats. Both forms have the same fields in the same order. */
#include "server/monitoring/listing.h"
#include "server/monitoring/mntr_and_metrics.h"

#include <inttypes.h>

static const char *list_connections_op(int32_t op)
{
    static const struct {
        int32_t op;
        const char *name;
    } names[] = {
        {OP_CREATE, "CREA"},        {OP_DELETE, "DELE"},        {OP_EXISTS, "EXIS"},
        {OP_GET_DATA, "GETD"},      {OP_SET_DATA, "SETD"},      {OP_GET_ACL, "GETA"},
        {OP_SET_ACL, "SETA"},       {OP_GET_CHILDREN, "GETC"},  {OP_SYNC, "SYNC"},
        {OP_PING, "PING"},          {OP_GET_CHILDREN2, "GETC"}, {OP_MULTI, "MULT"},
        {OP_CREATE2, "CREA"},       {OP_SET_WATCHES, "SETW"},   {OP_AUTH, "AUTH"},
        {OP_CLOSE_SESSION, "CLOS"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].op == op)
            return names[i].name;
    return "NA";
}

/* When it was accepted, by the wall clock. */
static int64_t list_connections_since(const struct server *s, const struct server_conn *c)
{
    return s->wall - (s->now - c->accepted_at);
}

/* That of a connection is a whole number. */
static int64_t list_connections_average(const struct latency *l)
{
    return l->sum / (l->count > 0 ? (int64_t)l->count : 1);
}

/* ---- as text --------------------------------------------------------------------------------- */

static void list_connections_put_text(struct server *s, struct text *t, const struct server_conn *c,
                                      bool full)
{
    const struct latency *l = &c->latency;
    clave__text_put(t, " /%s[%d](queued=%zu,recved=%" PRIu64 ",sent=%" PRIu64, c->peer.text,
                    clave__server_conn_wants_read(c) ? 1 : 0, c->undurable, c->received, c->sent);
    if (full && c->session) {
        clave__text_put(t, ",sid=0x%" PRIx64 ",lop=%s,est=%" PRId64 ",to=%d",
                        (uint64_t)c->session->id, list_connections_op(c->last_op),
                        list_connections_since(s, c), (int)c->session->timeout_ms);
        if (c->last_xid >= 0)
            clave__text_put(t, ",lcxid=0x%" PRIx64, (uint64_t)c->last_xid);
        clave__text_put(t, ",lzxid=0x%" PRIx64 ",lresp=%" PRId64, (uint64_t)c->last_zxid,
                        c->last_reply_at);
        clave__text_put(t,
                        ",llat=%" PRId64 ",minlat=%" PRId64 ",avglat=%" PRId64 ",maxlat=%" PRId64,
                        c->last_latency, l->min, list_connections_average(l), l->max);
    }
    clave__text_put(t, ")\n");
}

bool clave__connections_text(struct listing *l)
{
    const struct server_conn *c = clave__listing_next_conn(l);
    if (!c)
        clave__text_put(&l->text, "\n");
    else if (clave__conn_is_open(c))
        list_connections_put_text(l->s, &l->text, c, !l->brief);
    return c;
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static void list_connections_put_json(struct server *s, struct json *j, const struct server_conn *c,
                                      bool full)
{
    const struct latency *l = &c->latency;
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "remote_socket_address", c->peer.text);
    clave__json_int(j, "interest_ops", clave__server_conn_wants_read(c) ? 1 : 0);
    clave__json_int(j, "outstanding_requests", (int64_t)c->undurable);
    clave__json_int(j, "packets_received", (int64_t)c->received);
    clave__json_int(j, "packets_sent", (int64_t)c->sent);
    if (full && c->session) {
        clave__json_int(j, "session_id", c->session->id);
        clave__json_string(j, "last_operation", list_connections_op(c->last_op));
        clave__json_int(j, "established", list_connections_since(s, c));
        clave__json_int(j, "session_timeout", c->session->timeout_ms);
        clave__json_int(j, "last_cxid", c->last_xid);
        clave__json_int(j, "last_zxid", c->last_zxid);
        clave__json_int(j, "last_response_time", c->last_reply_at);
        clave__json_int(j, "last_latency", c->last_latency);
        clave__json_int(j, "min_latency", l->min);
        clave__json_int(j, "avg_latency", list_connections_average(l));
        clave__json_int(j, "max_latency", l->max);
    }
    clave__json_close(j, '}');
}

static bool list_connections_put_element(struct listing *l, bool secure)
{
    if (!l->begun)
        clave__json_open(&l->json, secure ? "secure_connections" : "connections", '[');
    const struct server_conn *c = clave__listing_next_conn(l);
    if (!c)
        clave__json_close(&l->json, ']');
    else if (clave__conn_is_open(c) && c->peer.secure == secure)
        list_connections_put_json(l->s, &l->json, c, !l->brief);
    return c;
}

bool clave__connections_json(struct listing *l)
{
    return list_connections_put_element(l, false);
}

bool clave__secure_connections_json(struct listing *l)
{
    return list_connections_put_element(l, true);
}

/* ---- resets ---------------------------------------------------------------------------------- */

bool clave__connections_reset(struct listing *l)
{
    struct server_conn *c = clave__listing_next_conn(l);
    if (!c)
        return false;
    c->latency = (struct latency){0};
    c->received = c->sent = 0;
    c->last_xid = -1;
    return true;
}
