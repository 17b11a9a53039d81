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
#include "cmd/verbs/lock/member.h"
#include "runtime/clock.h"

enum {
    REGISTER_BASE = FLAG_LONG,
    REGISTER_ID,
    REGISTER_ADDRESS,
    REGISTER_PORT,
    REGISTER_SSL_PORT,
    REGISTER_PAYLOAD,
    REGISTER_TYPE,
    REGISTER_SERVERSET,
    REGISTER_DISABLED,
};

struct registration {
    struct options *o;
    const char *base;
    clave_instance instance;
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
        i->payload = o->value;
        return true;
    case REGISTER_TYPE:
        if (clave_service_type_parse(o->value, &i->type) && i->type != CLAVE_SERVICE_SERVERSET)
            return true;
        diag_usage(o, "--type %s: it is DYNAMIC, STATIC, PERMANENT or DYNAMIC_SEQUENTIAL",
                   o->value);
        return false;
    case REGISTER_SERVERSET:
        i->type = CLAVE_SERVICE_SERVERSET;
        return true;
    default:
        return i->disabled = true;
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

/* Returns an exit code. */
static int register_run_at(struct registration *r, const char *path)
{
    const clave_instance *i = &r->instance;
    if (!connect_path_ok(r->o, path))
        return EXIT_PATH;
    size_t n = clave_instance_format(i, NULL, 0);
    char *json = malloc(n + 1);
    if (!json)
        return diag_err(r->o, path, CLAVE_ENOMEM, NULL);
    clave_instance_format(i, json, n + 1);
    struct member m = {.o = r->o,
                       .path = path,
                       .data = json,
                       .what = "an instance",
                       .kind = register_kind(i->type),
                       .replace = true,
                       .stays = i->type == CLAVE_SERVICE_PERMANENT};
    int code = member_run(&m);
    free(json);
    return code;
}

static int register_run(struct registration *r)
{
    const clave_instance *i = &r->instance;
    const char *fault = clave_instance_fault(i);
    if (!i->address)
        return diag_usage(r->o, "--address is missing: where the instance can be reached");
    if (fault)
        return diag_usage(r->o, "%s %s", i->name, fault);
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

static int run_register(struct options *o, int argc, char **argv)
{
    struct registration r = {.o = o, .base = "/services"};
    char id[MEMBER_ID_CAP];
    int flag;
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
    return connect_path_ok(o, r.base) ? register_run(&r) : EXIT_PATH;
}

static const struct flag flags[] = {
    {REGISTER_BASE, "base", "PATH", "the parent of the services' nodes [/services]"},
    {REGISTER_ID, "id", "ID", "of the instance, unique in the service [HOST-PID]"},
    {REGISTER_ADDRESS, "address", "ADDRESS", "where it can be reached"},
    {REGISTER_PORT, "port", "PORT", "for connections without TLS"},
    {REGISTER_SSL_PORT, "ssl-port", "PORT", "for connections with TLS"},
    {REGISTER_PAYLOAD, "payload", "JSON", "what else there is to know"},
    {REGISTER_TYPE, "type", "TYPE", "DYNAMIC, DYNAMIC_SEQUENTIAL, STATIC, PERMANENT [DYNAMIC]"},
    {REGISTER_SERVERSET, "serverset", NULL,
     "as a member of a server set, for Finagle and Prometheus"},
    {REGISTER_DISABLED, "disabled", NULL, "registered, but not to be used"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_register = {
    .name = "register",
    .args = "SERVICE [--] COMMAND [ARGUMENT]...",
    .summary = "Run a command, and be an instance of a service meanwhile",
    .text = "The node BASE/SERVICE/ID says where the instance can be reached, as Curator's "
            "x-discovery\n"
            "has it. It is there from before the command starts until it has ended, over every "
            "loss of\n"
            "the session; another registration of this id loses its place. The exit code is the\n"
            "command's.\n",
    .flags = flags,
    .max_args = 1,
    .runs_command = true,
    .run = run_register,
};
