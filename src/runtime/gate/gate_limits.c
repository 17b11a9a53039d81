/* gate_limits.c - what the gate's senders may have of its connections and files, and what may
 * change while it runs: access and limits, the audit's file, the certificates. */
#include <assert.h>
#include <sys/resource.h>

#include "runtime/gate/gate_internal.h"
#include "runtime/tls/tls_context.h"

enum {
    MAX_CONNECTIONS = 20000,
    MOST_CONNECTIONS = 1000000, /* of --http-max-connections */
    RESERVED_FILES = 64
};

size_t gate_files(const struct gate_options *o, size_t part, size_t most)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY)
        return most;
    size_t room =
        files.rlim_cur > 2 * RESERVED_FILES ? files.rlim_cur - RESERVED_FILES : files.rlim_cur / 2;
    room = (o->in_server ? room / 4 : room) / part;
    return most < room ? most : room;
}

size_t gate_file_connections(const struct gate_options *o)
{
    return gate_files(o, 1, MOST_CONNECTIONS);
}

unsigned gate_max_connections(const struct gate *g, const struct gate_limits *limits)
{
    size_t most = limits->max_connections > 0 ? limits->max_connections : MAX_CONNECTIONS;
    return (unsigned)(most < g->file_connections ? most : g->file_connections);
}

/* A waiting request must not use up the connection that renewals and releases need. */
size_t gate_max_waiting(const struct gate *g, const struct gate_limits *limits)
{
    size_t connections = gate_max_connections(g, limits);
    return limits->max_waiting > 0 ? limits->max_waiting : connections - connections / 4;
}

/* ---- changes --------------------------------------------------------------------------------- */

void gate_on_changed(uv_async_t *a)
{
    struct gate *g = a->data;
    pthread_mutex_lock(&g->mutex);
    struct gate_access *next = g->next_access;
    const struct gate_limits limits = g->next_limits;
    bool reopens = g->reopens;
    g->next_access = NULL;
    g->reopens = false;
    pthread_mutex_unlock(&g->mutex);
    if (reopens && g->audit)
        gate_audit_reopen(g->audit);
    if (!next)
        return;
    clave__web_set_access(g->web, gate_access_of(next));
    gate_access_free(g->access);
    g->access = next;
    clave__web_set_max_waiting(g->web, gate_max_waiting(g, &limits));
    clave__web_set_max_sender_sessions(g->web, limits.max_sender_sessions);
    clave__web_set_max_connections(g->web, gate_max_connections(g, &limits));
    if (g->http)
        clave__http_server_set_max_connections(g->http, gate_max_connections(g, &limits));
}

void gate_change(struct gate *g, struct gate_access *access, const struct gate_limits *limits)
{
    assert(access);
    pthread_mutex_lock(&g->mutex);
    struct gate_access *unused = g->next_access;
    g->next_access = access;
    g->next_limits = *limits;
    pthread_mutex_unlock(&g->mutex);
    gate_access_free(unused);
    uv_async_send(&g->changed);
}

bool gate_reopen(struct gate *g)
{
    pthread_mutex_lock(&g->mutex);
    g->reopens = true;
    pthread_mutex_unlock(&g->mutex);
    uv_async_send(&g->changed);
    return g->http_tls && clave__tls_context_renew(g->http_tls, &g->log);
}
