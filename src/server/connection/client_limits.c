/* client_limits.c - the table of bounds, and what is said when one is reached; see client_limits.h.
 * A message a second for each, so that a client that is refused does not fill the log. */
#include "server/connection/client_limits.h"

#include <inttypes.h>

enum { BOUND_PAUSE_MS = 1000 };

static const struct {
    const char *name; /* of the metric's label */
    size_t fallback;
    const char *what; /* that there would be too many of */
    const char *flag;
} table[SERVER_BOUNDS] = {
    [BOUND_WATCHES] = {"watches", 10000000, "watches of all connections", "--max-watches"},
    [BOUND_CONNECTION_WATCHES] = {"connection_watches", 1000000, "watches of its connection",
                                  "--max-connection-watches"},
    [BOUND_SESSIONS] = {"sessions", 1000000, "sessions", "--max-sessions"},
    [BOUND_DISCONNECTED] = {"disconnected", 10000, "sessions of its address without a connection",
                            "--max-disconnected"},
    [BOUND_ANSWER] = {"answer", 64 * 1024 * 1024, "bytes or more of one answer", "--max-answer"},
    [BOUND_NAME] = {"name", 8192, "bytes of a node's name", "--max-name"},
    [BOUND_PATH] = {"path", 16384, "bytes of a path", "--max-path"},
    [BOUND_DEPTH] = {"depth", 256, "nodes in a path", "--max-depth"},
    [BOUND_SEQUENCE] = {"sequence", INT32_MAX, "sequence numbers of one parent",
                        "create another parent"},
    [BOUND_REQUEST] = {"request", 0, "bytes of a request", "--max-request"},
};

const char *clave__client_limit_name(enum server_bound bound)
{
    return table[bound].name;
}

void clave__client_limits_set(struct server *s, const size_t most[SERVER_BOUNDS])
{
    for (size_t i = 0; i < SERVER_BOUNDS; i++)
        s->refused.bounds[i].most = most[i] ? most[i] : table[i].fallback;
    s->refused.bounds[BOUND_REQUEST].most = s->limits.max_frame;
}

bool clave__client_limit_allows(struct server_conn *c, enum server_bound bound, size_t n)
{
    struct server *s = c->s;
    struct bound_state *b = &s->refused.bounds[bound];
    if (n <= b->most)
        return true;
    b->refused++;
    if (b->told > 0 && s->now - b->told_at < BOUND_PAUSE_MS)
        return false;
    const struct log_about about = {.connection = c->peer.text,
                                    .session = c->session ? c->session->id : 0};
    clave__log_about(
        &s->log, CLAVE_LOG_WARN, &about,
        "%s is refused: %zu %s, the bound is %zu (%s; %" PRIu64 " refused since the last message)",
        c->peer.text, n, table[bound].what, b->most, table[bound].flag, b->refused - b->told);
    b->told = b->refused;
    b->told_at = s->now;
    return false;
}
