/* instance_json.h - an instance of a service as JSON, for the program, the gate, and Prometheus. */
#ifndef CLAVE_OBSERVE_INSTANCE_JSON_H
#define CLAVE_OBSERVE_INSTANCE_JSON_H

#include "base/json_writer.h"
#include "clave/async/instances.h"

/* "up", "disabled", or "unreadable". A static string. */
const char *clave__instance_state(const clave_instances_entry *e);
/* Writes the members of an instance into an object that is open: service, path, state, fault, id,
 * address, port, ssl_port, payload, registered, type, uri_spec, uri; those that it does not have,
 * or that cannot be read, are null. */
void clave__instance_json(struct json *j, const clave_instances_entry *e);
/* An object with one target, as Prometheus's http_sd_configs takes it: the address with the port,
 * or with the SSL port if there is no other. Returns false, and writes nothing, if the instance is
 * not up, or has no address or no port. */
bool clave__instance_http_sd(struct json *j, const clave_instances_entry *e);

#endif
