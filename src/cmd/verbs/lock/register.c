/* register.c - `clave register`: an instance of a service is registered while a command runs. What
 * its node says is clave/async/instances.h's, how it is kept member.c's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "clave/instances.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/participant.h"
#include "cmd/verbs/lock/member.h"
#include "runtime/clock.h"

enum {
    REGISTER_BASE = RUN_FLAG_OWN,
    REGISTER_ID,
    REGISTER_ADDRESS,
    REGISTER_PORT,
    REGISTER_SSL_PORT,
    REGISTER_PAYLOAD,
    REGISTER_TYPE,
    REGISTER_SERVERSET,
    REGISTER_DISABLED,
    REGISTER_URI,
};

struct registration {
    struct options *o;
    const char *base;
    clave_instance instance;
    const char *uri; /* its spec as text; NULL: none */
    struct member member;
};

/* ---- what is registered ---------------------------------------------------------------------- */

static bool register_take_port(struct options *o, const char *flag, int32_t *out)
{
    int64_t n = 0;
    if (!options_number(o, flag, 1, UINT16_MAX, &n))
        return false;
    *out = (int32_t)n;
    return true;
}

static bool register_take_payload(struct registration *r)
{
    const clave_instance with = {.name = "name", .id = "id", .payload = r->o->value};
    char shown[PARTICIPANT_TEXT_CAP];
    r->instance.payload = r->o->value;
    if (!clave_instance_fault(&with))
        return true;
    diag_usage(r->o, "--payload '%s': not JSON, such as 5, \"a text\" or {\"zone\": \"b\"}%s",
               participant_text_printable(r->o->value, shown, sizeof shown),
               *r->o->value == '@' ? "; that of a file is --payload \"$(cat FILE)\"" : "");
    return false;
}

/* false, after a message. */
static bool register_take_flag(struct registration *r, int id)
{
    struct options *o = r->o;
    clave_instance *i = &r->instance;
    switch (id) {
    case REGISTER_BASE:
        r->base = o->value;
        return true;
    case REGISTER_ID:
        i->id = o->value;
        return true;
    case REGISTER_ADDRESS:
        i->address = o->value;
        return true;
    case REGISTER_PORT:
        return register_take_port(o, "port", &i->port);
    case REGISTER_SSL_PORT:
        return register_take_port(o, "ssl-port", &i->ssl_port);
    case REGISTER_PAYLOAD:
        return register_take_payload(r);
    case REGISTER_TYPE:
        if (clave_service_type_parse(o->value, &i->type) && i->type != CLAVE_SERVICE_SERVERSET)
            return true;
        diag_usage(o, "--type %s: it is DYNAMIC, STATIC, PERMANENT or DYNAMIC_SEQUENTIAL",
                   o->value);
        return false;
    case REGISTER_SERVERSET:
        i->type = CLAVE_SERVICE_SERVERSET;
        return true;
    case REGISTER_URI:
        r->uri = o->value;
        if (!clave_uri_spec_fault(r->uri))
            return true;
        diag_usage(o, "--uri: %s %s", r->uri, clave_uri_spec_fault(r->uri));
        return false;
    case REGISTER_DISABLED:
        return i->disabled = true;
    default:
        return member_take_flag(&r->member, id);
    }
}

static clave_persistent_node_kind register_kind(clave_service_type type)
{
    switch (type) {
    case CLAVE_SERVICE_DYNAMIC_SEQUENTIAL:
    case CLAVE_SERVICE_SERVERSET:
        return CLAVE_KEPT_EPHEMERAL_SEQUENTIAL;
    case CLAVE_SERVICE_STATIC:
    case CLAVE_SERVICE_PERMANENT:
        return CLAVE_KEPT_PERSISTENT;
    case CLAVE_SERVICE_DYNAMIC:
        break;
    }
    return CLAVE_KEPT_EPHEMERAL;
}

/* ---- the verb -------------------------------------------------------------------------------- */

/* NULL: out of memory. */
static char *register_format(clave_instance i, bool disabled)
{
    i.disabled |= disabled;
    size_t n = clave_instance_format(&i, NULL, 0);
    char *json = malloc(n + 1);
    if (json)
        clave_instance_format(&i, json, n + 1);
    return json;
}

/* Returns an exit code. */
static int register_run_at(struct registration *r, const char *path)
{
    clave_service_type type = r->instance.type;
    struct member *m = &r->member;
    bool disables = m->on_unhealthy == ON_UNHEALTHY_DISABLE;
    if (!connect_path_ok(r->o, path))
        return EXIT_PATH;
    char *json = register_format(r->instance, false);
    char *disabled = disables ? register_format(r->instance, true) : NULL;
    m->path = path;
    m->data = json;
    m->disabled = disabled;
    m->what = "an instance";
    m->kind = register_kind(type);
    m->replace = true;
    m->stays = type == CLAVE_SERVICE_PERMANENT;
    bool no_memory = !json || (disables && !disabled);
    int code = no_memory ? diag_err(r->o, path, CLAVE_ENOMEM, NULL) : member_run(m);
    free(disabled);
    free(json);
    return code;
}

static int register_run(struct registration *r)
{
    const clave_instance *i = &r->instance;
    const char *fault = clave_instance_fault(i);
    if (!i->address || !*i->address)
        return diag_usage(r->o, "--address is %s: where the instance can be reached",
                          i->address ? "empty" : "missing");
    if (strchr(i->name, '/'))
        return diag_usage(r->o, "%s is not the name of a service; give its parent with --base",
                          i->name);
    if (strchr(i->id, '/'))
        return diag_usage(r->o, "--id '%s': it is the name of a node, and has no '/'", i->id);
    if (fault)
        return diag_usage(r->o, "%s %s", i->name, fault);
    if (register_kind(i->type) == CLAVE_KEPT_PERSISTENT && r->member.health.command &&
        r->member.on_unhealthy != ON_UNHEALTHY_DISABLE)
        return diag_usage(r->o,
                          "--health with --type %s needs --on-unhealthy disable: its node "
                          "stays",
                          clave_service_type_name(i->type));
    char *service = clave__path_child(NULL, r->base, i->name);
    char *path = NULL;
    if (service)
        path = clave__path_child(NULL, service,
                                 i->type == CLAVE_SERVICE_SERVERSET ? "member_" : i->id);
    int code = path ? register_run_at(r, path) : diag_err(r->o, r->base, CLAVE_ENOMEM, NULL);
    free(path);
    free(service);
    return code;
}

/* Returns an exit code. */
static int register_with_uri(struct registration *r)
{
    size_t n = r->uri ? clave_uri_spec_format(r->uri, NULL, 0) : 0;
    char *spec = r->uri ? malloc(n + 1) : NULL;
    if (r->uri && !spec)
        return diag_err(r->o, r->base, CLAVE_ENOMEM, NULL);
    if (spec)
        clave_uri_spec_format(r->uri, spec, n + 1);
    r->instance.uri_spec = spec;
    int code = register_run(r);
    free(spec);
    return code;
}

static int run_register(struct options *o, int argc, char **argv)
{
    struct registration r = {.o = o, .base = "/services", .member = MEMBER_INIT};
    char id[MEMBER_ID_CAP];
    int flag;
    r.member.o = o;
    r.instance.id = member_default_id(id);
    r.instance.registered = clave__clock_wall();
    while ((flag = options_next(o, argc, argv)) > 0)
        if (!register_take_flag(&r, flag))
            return EXIT_USAGE;
    if (flag == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 2, -1))
        return EXIT_USAGE;
    r.instance.name = o->argv[0];
    return connect_path_ok(o, r.base) ? register_with_uri(&r) : EXIT_PATH;
}

static const struct flag flags[] = {
    {REGISTER_BASE, "base", "PATH", "the parent of the services' nodes [/services]"},
    {REGISTER_ID, "id", "ID", "of the instance, unique in the service [HOST-PID]"},
    {REGISTER_ADDRESS, "address", "ADDRESS", "where it can be reached: must be given"},
    {REGISTER_PORT, "port", "PORT", "for connections without TLS"},
    {REGISTER_SSL_PORT, "ssl-port", "PORT", "for connections with TLS"},
    {REGISTER_PAYLOAD, "payload", "JSON", "further data about the instance"},
    {REGISTER_URI, "uri", "TEMPLATE", "how to reach it: '{scheme}://{address}:{port}/'"},
    {REGISTER_TYPE, "type", "TYPE", "DYNAMIC, DYNAMIC_SEQUENTIAL, STATIC, PERMANENT [DYNAMIC]"},
    {REGISTER_SERVERSET, "serverset", NULL,
     "as a member of a server set, for Finagle and Prometheus"},
    {REGISTER_DISABLED, "disabled", NULL, "registered, but not to be used"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_register = {
    .name = "register",
    .args = "SERVICE [--] COMMAND [ARGUMENT]...",
    .summary = "Run a command, and register it as an instance of a service",
    .text = "The node BASE/SERVICE/ID says where the instance can be reached, in the layout of\n"
            "Curator's x-discovery. It is made before the command starts, made again after a\n"
            "loss of the session, and deleted when the command has ended; another registration\n"
            "of this id loses its place. With --health the command starts at once, and is\n"
            "registered while the check succeeds; when it fails, the command runs on. The exit\n"
            "code is the command's; 80: it was unhealthy, and --on-unhealthy is end.\n",
    .flags = flags,
    .more_flags = run_flags_of,
    .shares = RUN_REGISTER,
    .max_args = 1,
    .runs_command = true,
    .run = run_register,
};
