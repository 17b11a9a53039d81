/* testserver_sessions.c - expires and disconnects sessions, skips time, and counts what the server
 * has. */
#include <string.h>

#include "base/sized_options.h"
#include "runtime/testing/testserver_internal.h"
#include "server/connection/conn.h"
#include "server/request/request.h"

static clave_err testserver_unknown(clave_test_server *t, int64_t id)
{
    return clave__testserver_fault(t, CLAVE_EUNKNOWNSESSION, "there is no session 0x%llx",
                                   (unsigned long long)id);
}

static clave_err testserver_expire(clave_test_server *t, void *arg)
{
    const int64_t *id = arg;
    struct server *s = t->run->server;
    return clave__sessions_find(&s->sessions, *id) ? clave__session_expire(s, *id)
                                                   : testserver_unknown(t, *id);
}

clave_err clave_test_server_expire(clave_test_server *t, int64_t session_id)
{
    return clave__testserver_call(t, testserver_expire, &session_id);
}

static clave_err testserver_drop(clave_test_server *t, void *arg)
{
    const int64_t *id = arg;
    if (*id == 0) {
        clave__conn_close_quiet(t->run, true);
        return CLAVE_OK;
    }
    const struct session *s = clave__sessions_find(&t->run->server->sessions, *id);
    if (!s)
        return testserver_unknown(t, *id);
    if (!s->conn)
        return clave__testserver_fault(t, CLAVE_ECONNLOSS, "session 0x%llx has no connection",
                                       (unsigned long long)*id);
    clave__conn_drop(s->conn);
    return CLAVE_OK;
}

clave_err clave_test_server_drop(clave_test_server *t, int64_t session_id)
{
    return clave__testserver_call(t, testserver_drop, &session_id);
}

static clave_err testserver_skip_time(clave_test_server *t, void *arg)
{
    const int64_t *ms = arg;
    t->run->ahead_ms += *ms;
    t->run->armed_at = INT64_MAX; /* it was not late */
    t->run->ticked = false;
    clave__run_tick(t->run);
    return CLAVE_OK;
}

clave_err clave_test_server_skip_time(clave_test_server *t, int64_t ms)
{
    enum { YEAR_S = 366 * 24 * 3600 };
    if (ms < 0 || ms / 1000 > (int64_t)100 * YEAR_S)
        return CLAVE_EINVAL;
    return clave__testserver_call(t, testserver_skip_time, &ms);
}

static clave_err testserver_stats(clave_test_server *t, void *arg)
{
    clave_test_stats *out = arg;
    struct server_stats st = {0};
    if (t->run)
        clave__server_run_stats(t->run, &st);
    memcpy(out->requests, t->fault_injectors.seen, sizeof out->requests);
    out->strikes = t->fault_injectors.strikes;
    out->connections = st.connections;
    out->sessions = st.sessions;
    out->watches = st.watches;
    out->ephemerals = st.ephemerals;
    out->nodes = st.nodes;
    out->zxid = st.last_zxid;
    return CLAVE_OK;
}

clave_err clave_test_server_stats(clave_test_server *t, clave_test_stats *out)
{
    clave_test_stats now = CLAVE_TEST_STATS_INIT;
    clave_err err = clave__testserver_call_anyhow(t, testserver_stats, &now);
    return err == CLAVE_OK ? clave__options_give(out, &now, sizeof now) : err;
}
