/* server_reload.c - what a server takes over while it runs: files at SIGHUP, and changed settings.
 */
#include <assert.h>
#include <signal.h>

#include "runtime/server/uv_server_internal.h"
#include "server/store/restore.h"

clave_err clave__run_note_longest_session(const struct server_run *r, const struct fault *f)
{
    return clave__datadir_note_longest_session(&r->dir, clave__restore_longest_session(r->server),
                                               f);
}

/* Sessions may be longer now; or the note has been damaged since the start, and so are backups. */
static void reload_note(struct server_run *r)
{
    char text[600] = "";
    if (clave__run_note_longest_session(r, &(struct fault){text, sizeof text}) != CLAVE_OK)
        clave__log(&r->log, CLAVE_LOG_ERROR,
                   "%s; until then a restore has to be told the --longest-session", text);
}

static void reload_on_hangup(uv_signal_t *s, int number)
{
    struct server_run *r = s->data;
    (void)number;
    bool renewed = r->tls && clave__tls_context_renew(r->tls, &r->log);
    if (r->audit)
        clave__audit_log_reopen(r->audit);
    if (r->on_hangup)
        r->on_hangup(r->hangup_arg, renewed);
    reload_note(r);
}

void clave__run_take_limits(struct server_run *r, const struct server_run_options *o)
{
    r->idle_exit_ms = o->idle_exit_ms > 0 ? (uint64_t)o->idle_exit_ms : 0;
    clave__address_limit_set(&r->address_limit, o->max_per_address, o->max_sessionless);
}

clave_err clave__server_run_change(struct server_run *r, const struct server_run_options *o)
{
    assert(clave__run_is_current(r));
    clave_err err = clave__server_change(r->server, &o->engine);
    if (err != CLAVE_OK)
        return err;
    clave__run_take_limits(r, o);
    clave__run_set_driver_info(r);
    uv_timer_stop(&r->idle);
    clave__run_count(r);
    return CLAVE_OK;
}

void clave__run_init_reload(struct server_run *r, bool signals)
{
    uv_signal_init(&r->loop, &r->hangup);
    r->hangup.data = r;
    if (signals) /* caught even with nothing to reload: by default it would kill */
        uv_signal_start(&r->hangup, reload_on_hangup, SIGHUP);
}
