/* connect.c - opens and closes the session of a verb (see connect.h). Every wait ends after
 * --timeout at the latest, and when a call returns an error, a message has been printed. */
#include "cmd/cli/connect.h"

#include <stdio.h>
#include <string.h>

#include "base/deadline.h"
#include "base/path.h"
#include "clave/tls.h"
#include "clave/uv.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/local_warning.h"
#include "cmd/cli/unreachable.h"

enum { CLOSE_MS = 1000 };

static void connect_on_log(void *arg, int level, const char *msg)
{
    const struct options *o = arg;
    int wanted = o->verbose >= 2 ? CLAVE_LOG_DEBUG : CLAVE_LOG_INFO;
    if (o->verbose > 0 && level <= wanted)
        diag(o, "%s", msg);
}

void connect_client_options(struct options *o, clave_client_options *co)
{
    *co = (clave_client_options){.size = sizeof *co,
                                 .session_timeout_ms = o->session_timeout_ms,
                                 .tls = o->tls,
                                 .auths = o->client.auths,
                                 .nauths = o->client.nauths,
                                 .log = o->verbose > 0 ? connect_on_log : NULL,
                                 .log_arg = o};
}

static void connect_get_timeout(clave_async_client *c, void *arg)
{
    *(int32_t *)arg = clave_async_client_session_timeout(c);
}

void connect_note_session(const struct options *o, int64_t id, int32_t got_ms)
{
    local_note(o);
    diag_note(o, "session 0x%llx, timeout %dms", (unsigned long long)id, (int)got_ms);
}

static void connect_note_session_of(const struct options *o, clave_client *c)
{
    int32_t got_ms = 0;
    if (o->verbose > 0 && clave_client_run(c, connect_get_timeout, &got_ms) == CLAVE_OK)
        connect_note_session(o, clave_client_id(c), got_ms);
}

/* false, after a message: TLS cannot be set up. */
static bool connect_make_tls(struct options *o, const char *connect)
{
    char fault[512];
    const clave_tls_options t = {.size = sizeof t,
                                 .ca_file = o->client.tls_texts[CLIENT_TLS_CA],
                                 .cert_file = o->client.tls_texts[CLIENT_TLS_CERT],
                                 .key_file = o->client.tls_texts[CLIENT_TLS_KEY],
                                 .server_name = o->client.tls_texts[CLIENT_TLS_NAME],
                                 .any_name = o->tls_any_name};
    if (o->tls || strncmp(connect, "tls:", 4) != 0)
        return true;
    clave_err err = clave_tls_new(&o->tls, &t, fault, sizeof fault);
    if (err != CLAVE_OK)
        diag_end(o, NULL, EXIT_USAGE, "%s", *fault ? fault : clave_strerror(err));
    return err == CLAVE_OK;
}

const char *connect_dial(struct options *o)
{
    const char *connect = o->connect ? o->connect : "local:";
    const char *fault = clave_async_client_host_fault(connect);
    if (fault)
        diag_end(o, NULL, EXIT_USAGE, "invalid server list '%s': %s", connect, fault);
    return fault || !local_may_be_used(o, connect) || !connect_make_tls(o, connect) ? NULL
                                                                                    : connect;
}

/* Like clave_client_wait, for the time that is left of --timeout. */
static clave_err connect_await_server(struct options *o, clave_client *c, const char *connect)
{
    struct unreachable r;
    char fault[512];
    int64_t left = options_left_ms(o);
    unreachable_begin(&r, o, connect, clave_now() + left);
    clave_err err;
    for (;;) {
        int64_t due = unreachable_due_ms(&r);
        err = clave_client_wait(c, deadline_earlier(due, left));
        left = options_left_ms(o);
        if (err != CLAVE_EUNREACHABLE || left == 0 || clave_client_state(c) == CLAVE_STATE_CLOSED)
            break;
        unreachable_report(&r, clave_client_errmsg(c, fault, sizeof fault));
    }
    unreachable_clear(&r);
    return err;
}

int connect_open(struct options *o, const clave_client_options *co, clave_client **out)
{
    clave_client_options own;
    clave_client *c;
    char fault[512];
    const char *connect = connect_dial(o);
    *out = NULL;
    if (!connect)
        return EXIT_USAGE;
    if (!co) {
        connect_client_options(o, &own);
        co = &own;
    }
    clave_err err = clave_client_open(&c, NULL, connect, co);
    if (err != CLAVE_OK)
        return diag_err(o, connect, err, NULL);
    err = connect_await_server(o, c, connect);
    int code = EXIT_OK;
    if (err == CLAVE_EUNREACHABLE)
        code = unreachable_give_up(o, connect, o->timeout_ms,
                                   clave_client_errmsg(c, fault, sizeof fault));
    else if (err == CLAVE_ETLS || err == CLAVE_ELOCAL || err == CLAVE_ETHREAD)
        code = diag_refused(o, connect, clave_client_errmsg(c, fault, sizeof fault));
    else if (err != CLAVE_OK)
        code = diag_err(o, connect, err, c);
    if (code != EXIT_OK) {
        clave_client_close(c, 0);
        return code;
    }
    connect_note_session_of(o, c);
    *out = c;
    return EXIT_OK;
}

const char *connect_address(const clave_target *t, char out[ADDRESS_CAP])
{
    const char *host = t->host ? t->host : "";
    bool is_v6 = strchr(host, ':') != NULL;
    if (t->port > 0)
        snprintf(out, ADDRESS_CAP, "%s%s%s%s:%u", t->tls ? "tls:" : "", is_v6 ? "[" : "", host,
                 is_v6 ? "]" : "", (unsigned)t->port);
    else
        snprintf(out, ADDRESS_CAP, "%s%s", *host == '/' ? "unix:" : "", host);
    return out;
}

void connect_close(clave_client *c)
{
    if (c)
        clave_client_close(c, CLOSE_MS);
}

bool connect_path_ok(struct options *o, const char *path)
{
    const char *fault = clave__path_fault(path, strlen(path), false);
    if (fault)
        diag_path(o, path, fault);
    return fault == NULL;
}
