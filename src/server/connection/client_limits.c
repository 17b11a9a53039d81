/* client_limits.c - the table of limits on clients, and the log's message when one is exceeded; see
 * conn.h. Each limit logs at most one message a second, so a client that keeps being refused does
 * not fill the log. */
#include "server/connection/conn.h"

#include <inttypes.h>
#include <stdio.h>

#include "wire/proto.h"

enum { LIMIT_PAUSE_MS = 1000, ADVICE_CAP = 48 };

static const struct {
    const char *name; /* the metric's label; the flag is --max-NAME */
    size_t fallback;
    const char *what;   /* completes "N ... , the limit is M" */
    const char *advice; /* what to do instead of raising the flag, if there is no flag */
} table[SERVER_LIMITS] = {
    [LIMIT_WATCHES] = {"watches", 10000000, "watches of all connections"},
    [LIMIT_CONNECTION_WATCHES] = {"connection_watches", 1000000, "watches of its connection"},
    [LIMIT_SESSIONS] = {"sessions", 1000000, "sessions"},
    [LIMIT_DISCONNECTED] = {"disconnected", 10000, "sessions of its address without a connection"},
    [LIMIT_ANSWER] = {"answer", 64 * 1024 * 1024, "bytes or more of one answer"},
    [LIMIT_NAME] = {"name", 8192, "bytes of a node's name"},
    [LIMIT_PATH] = {"path", 16384, "bytes of a path"},
    [LIMIT_DEPTH] = {"depth", 256, "nodes in a path"},
    [LIMIT_SEQUENCE] = {"sequence", INT32_MAX, "sequence numbers of one parent",
                        "create another parent"},
    [LIMIT_REQUEST] = {"request", WIRE_MAX_FRAME, "bytes of a request"},
};

const char *clave__client_limit_name(enum server_limit limit)
{
    return table[limit].name;
}

size_t clave__client_limit_default(enum server_limit limit)
{
    return table[limit].fallback;
}

/* The flag that raises the limit, "--max-connection-watches", or the table's advice. */
static const char *client_limit_advice(enum server_limit limit, char out[ADVICE_CAP])
{
    if (table[limit].advice)
        return table[limit].advice;
    snprintf(out, ADVICE_CAP, "--max-%s", table[limit].name);
    for (char *c = out; *c; c++)
        if (*c == '_')
            *c = '-';
    return out;
}

void clave__client_limits_set(struct server *s, const size_t most[SERVER_LIMITS])
{
    for (size_t i = 0; i < SERVER_LIMITS; i++)
        s->refused.limits[i].most = most[i] ? most[i] : table[i].fallback;
    s->refused.limits[LIMIT_REQUEST].most = s->limits.max_frame;
}

bool clave__client_limit_allows(struct server_conn *c, enum server_limit limit, size_t n)
{
    struct server *s = c->s;
    struct limit_state *l = &s->refused.limits[limit];
    char advice[ADVICE_CAP];
    if (n <= l->most)
        return true;
    l->refused++;
    if (l->told > 0 && s->now - l->told_at < LIMIT_PAUSE_MS)
        return false;
    const struct log_about about = {.connection = c->peer.text,
                                    .session = c->session ? c->session->id : 0};
    clave__log_about(&s->log, CLAVE_LOG_WARN, &about,
                     "%s is refused: %zu %s, the limit is %zu (%s; %" PRIu64
                     " refused since the last message)",
                     c->peer.text, n, table[limit].what, l->most,
                     client_limit_advice(limit, advice), l->refused - l->told);
    l->told = l->refused;
    l->told_at = s->now;
    return false;
}
