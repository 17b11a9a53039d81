/* gate_reload.c - what may change while the gate runs: access and limits, the file of the audit
 * log, the certificates. The verbs call gate_change and gate_reopen at SIGHUP, on any thread. */
#include <assert.h>

#include "runtime/gate/gate_internal.h"
#include "runtime/tls/tls_context.h"

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
    clave__web_set_max_sender_sessions(g->web, gate_max_sender_sessions(g, &limits));
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
