/* instance_json.c - see instance_json.h. What the node of an instance says is untrusted: a payload
 * is JSON, which the parser has seen to. */
#include "observe/instance_json.h"

#include <stdio.h>
#include <string.h>

enum { URI_CAP = 2048 };

const char *clave__instance_state(const clave_instances_entry *e)
{
    if (!e->instance)
        return "unreadable";
    return e->instance->disabled ? "disabled" : "up";
}

static void instance_json_port(struct json *j, const char *key, int32_t port)
{
    if (port > 0)
        clave__json_int(j, key, port);
    else
        clave__json_string(j, key, NULL);
}

void clave__instance_json(struct json *j, const clave_instances_entry *e)
{
    static const clave_instance nothing;
    char uri[URI_CAP];
    const clave_instance *i = e->instance ? e->instance : &nothing;
    clave__json_string(j, "service", e->service);
    clave__json_string(j, "path", e->path);
    clave__json_string(j, "state", clave__instance_state(e));
    clave__json_string(j, "fault", e->fault);
    clave__json_string(j, "id", i->id);
    clave__json_string(j, "address", i->address);
    instance_json_port(j, "port", i->port);
    instance_json_port(j, "ssl_port", i->ssl_port);
    clave__json_number(j, "payload", i->payload ? i->payload : "null");
    if (e->instance && i->type != CLAVE_SERVICE_SERVERSET)
        clave__json_int(j, "registered", i->registered);
    else
        clave__json_string(j, "registered", NULL);
    clave__json_string(j, "type", e->instance ? clave_service_type_name(i->type) : NULL);
    clave__json_number(j, "uri_spec", i->uri_spec ? i->uri_spec : "null");
    size_t n = clave_instance_uri(i, uri, sizeof uri);
    clave__json_string(j, "uri", n > 0 && n < sizeof uri ? uri : NULL);
}

bool clave__instance_http_sd(struct json *j, const clave_instances_entry *e)
{
    enum { ADDRESS_MAX = 255, TARGET_CAP = ADDRESS_MAX + 16 };
    const clave_instance *i = e->instance;
    char target[TARGET_CAP];
    if (!i || i->disabled || !i->address || !*i->address || strlen(i->address) > ADDRESS_MAX ||
        (i->port == 0 && i->ssl_port == 0))
        return false;
    bool is_v6 = strchr(i->address, ':') && i->address[0] != '[';
    snprintf(target, sizeof target, is_v6 ? "[%s]:%d" : "%s:%d", i->address,
             (int)(i->port ? i->port : i->ssl_port));
    clave__json_open(j, NULL, '{');
    clave__json_open(j, "targets", '[');
    clave__json_string(j, NULL, target);
    clave__json_close(j, ']');
    clave__json_open(j, "labels", '{');
    clave__json_string(j, "__meta_clave_service", e->service);
    clave__json_string(j, "__meta_clave_path", e->path);
    clave__json_string(j, "__meta_clave_id", i->id ? i->id : "");
    clave__json_string(j, "__meta_clave_type", clave_service_type_name(i->type));
    if (i->payload)
        clave__json_string(j, "__meta_clave_payload", i->payload);
    if (i->port == 0)
        clave__json_string(j, "__scheme__", "https");
    clave__json_close(j, '}');
    clave__json_close(j, '}');
    return true;
}
