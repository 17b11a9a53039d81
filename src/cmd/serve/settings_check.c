/* settings_check.c - see settings_check.h; settings_load.c calls it, for flags and file together.
 */
#include "cmd/serve/settings_check.h"

#include <string.h>

#include "cmd/serve/settings_values.h"
#include "runtime/start_error.h"

enum { DEFAULT_TICK_MS = 2000 };

/* Whether an address begins with this: "tls:", "unix:". */
static bool check_listens_on(const struct serve_settings *v, const char *kind)
{
    for (size_t i = 0; i < v->run.nlisten; i++)
        if (strncmp(v->listen[i], kind, strlen(kind)) == 0)
            return true;
    return false;
}

static bool check_has_unix_socket(const struct serve_settings *v)
{
    return v->local || check_listens_on(v, "unix:");
}

/* A scheme of which no client can have an identity locks everybody out. */
static clave_err check_schemes(const struct serve_settings *v, const struct fault *f)
{
    const char *schemes = v->run.engine.require_auth;
    if (!schemes || strstr(schemes, "digest") || strstr(schemes, "ip"))
        return CLAVE_OK;
    if (strstr(schemes, "uid") && check_has_unix_socket(v))
        return CLAVE_OK;
    if (strstr(schemes, "x509") && check_listens_on(v, "tls:") &&
        v->tls.clients != TLS_CLIENTS_NONE)
        return CLAVE_OK;
    return clave__start_error(f, CLAVE_EINVAL,
                              "--require-auth %s locks everybody out: x509 needs --listen tls:ADDR "
                              "and clients with certificates, uid needs --listen unix:PATH",
                              schemes);
}

void settings_tell_useless(const struct serve_settings *v, const struct log *log)
{
    if (v->run.engine.super_uid && !check_has_unix_socket(v))
        clave__log(log, CLAVE_LOG_WARN,
                   "--super-uid %s applies to nobody: add --listen unix:PATH, over TCP nobody has "
                   "a uid",
                   v->run.engine.super_uid);
}

/* What the addresses with "tls:" of one flag need; their flags begin with `http`: "", "http-". */
static clave_err check_tls_files(const struct tls_server_options *t, const char *http,
                                 const struct fault *f)
{
    if (!t->cert_file && t->key_file)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "--%stls-key %s has no certificate: name it with --%stls-cert "
                                  "FILE",
                                  http, t->key_file, http);
    if (!t->cert_file)
        return clave__start_error(
            f, CLAVE_EINVAL,
            "an address for TLS needs --%stls-cert FILE, and --%stls-key FILE unless "
            "the key is in the same file",
            http, http);
    if (!t->ca_file && t->clients != TLS_CLIENTS_NONE)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "name the authorities for clients' certificates with --%stls-ca "
                                  "FILE, or require none with --%stls-clients none",
                                  http, http);
    return CLAVE_OK;
}

static clave_err check_tls(struct serve_settings *v, const struct fault *f)
{
    const struct tls_server_options *t = &v->tls;
    bool listens = check_listens_on(v, "tls:");
    if (!listens && (t->ca_file || t->cert_file || t->key_file || v->run.engine.x509_super ||
                     settings_given(v, "tls-clients")))
        return clave__start_error(f, CLAVE_EINVAL, "no address for TLS: add --listen tls:ADDR");
    if (!listens)
        return CLAVE_OK;
    clave_err err = check_tls_files(t, "", f);
    if (err == CLAVE_OK)
        v->run.tls = t;
    return err;
}

/* Those of HTTP have tokens: a certificate is asked for if it could be verified, and needed only if
 * that is said. */
static clave_err check_http_tls(struct serve_settings *v, const struct fault *f)
{
    struct tls_server_options *t = &v->gate.tls;
    bool listens = false;
    for (size_t i = 0; i < v->gate.nhttp; i++)
        listens = listens || settings_is_tls(settings_past_proxy(v->gate.http[i]));
    if (!listens &&
        (t->ca_file || t->cert_file || t->key_file || settings_given(v, "http-tls-clients")))
        return clave__start_error(f, CLAVE_EINVAL,
                                  "no address for HTTP with TLS: add --http tls:ADDR");
    if (!settings_given(v, "http-tls-clients"))
        t->clients = t->ca_file ? TLS_CLIENTS_WANT : TLS_CLIENTS_NONE;
    return listens ? check_tls_files(t, "http-", f) : CLAVE_OK;
}

/* What is of use only with an address for it. */
static clave_err check_http(struct serve_settings *v, const struct fault *f)
{
    const struct gate_settings *g = &v->gate;
    if (g->nhttp == 0 && v->is_gate)
        return clave__start_error(f, CLAVE_EINVAL, "name an address with --http ADDR");
    const struct gate_access_options *a = &g->access;
    if (g->nhttp == 0 &&
        (a->tokens || a->hosts || a->publics || a->prefix || a->proxies || a->fleetlock ||
         a->fleets || g->audit || g->key || g->metric_paths || g->max_connections > 0 ||
         g->max_waiting > 0 || g->max_sender_sessions > 0 || g->max_body > 0))
        return clave__start_error(f, CLAVE_EINVAL, "no address for HTTP: add --http ADDR");
    return check_http_tls(v, f);
}

static clave_err check_local(const struct serve_settings *v, const struct fault *f)
{
    if (v->run.data_dir || v->run.nlisten > 0)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "--local has its own data directory and address");
    if (v->run.admin || v->run.metrics || v->gate.nhttp > 0)
        return clave__start_error(f, CLAVE_EINVAL, "--local serves no HTTP");
    return CLAVE_OK;
}

static clave_err check_session_limits(const struct server_options *engine, const struct fault *f)
{
    int32_t tick = engine->tick_ms > 0 ? engine->tick_ms : DEFAULT_TICK_MS;
    int32_t least = engine->min_session_ms > 0 ? engine->min_session_ms : 2 * tick;
    if (engine->max_session_ms > 0 && least > engine->max_session_ms)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "--min-session-timeout, 2 ticks unless given, is above "
                                  "--max-session-timeout");
    return CLAVE_OK;
}

clave_err settings_check(struct serve_settings *v, const struct fault *f)
{
    struct findings all = clave__findings_in(f);
    clave__findings_add(&all, check_http(v, &all.next));
    if (v->is_gate)
        return all.err;
    if (v->local)
        clave__findings_add(&all, check_local(v, &all.next));
    else if (!v->run.data_dir)
        clave__findings_add(&all, clave__start_error(&all.next, CLAVE_EINVAL,
                                                     "name the data directory with --data DIR"));
    if (v->run.admin_url && !v->run.admin)
        clave__findings_add(
            &all, clave__start_error(&all.next, CLAVE_EINVAL, "--admin-url needs --admin ADDR"));
    clave__findings_add(&all, check_session_limits(&v->run.engine, &all.next));
    if (!v->local && v->run.nlisten == 0)
        v->listen[v->run.nlisten++] = "127.0.0.1:2181";
    clave__findings_add(&all, check_tls(v, &all.next));
    clave__findings_add(&all, check_schemes(v, &all.next));
    return all.err;
}
