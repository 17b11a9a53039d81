/* config.c - fills in what the flags left open (config.h); cmd_options.c calls it once, after the
 * flags. */
#include "cmd/cli/config.h"

#include "cmd/cli/diag.h"

static void config_on_log(void *arg, int level, const char *msg)
{
    (void)level;
    diag(arg, "%s", msg);
}

bool config_apply(struct options *o)
{
    char text[1024] = "";
    const struct fault f = {text, sizeof text};
    const struct log log = {.cb = config_on_log, .arg = o};
    struct client_settings *s = &o->client;
    s->connect = o->connect;
    s->session_timeout_ms = o->session_timeout_ms;
    s->timeout_ms = o->timeout_given ? o->timeout_ms : 0;
    clave_err err = clave__client_settings_read(s, &log, &f);
    if (err != CLAVE_OK) {
        bool passes = clave__start_error_passes(err); /* nothing is wrong with the file */
        o->status = diag_end(o, NULL, passes ? EXIT_INTERNAL : EXIT_USAGE, "%s", text);
        return false;
    }
    o->connect = s->connect;
    o->session_timeout_ms = s->session_timeout_ms;
    o->timeout_given = s->timeout_ms != 0;
    o->timeout_ms = o->timeout_given ? s->timeout_ms : o->timeout_ms;
    return true;
}
