/* conf_and_envi.c - what conf, envi and the admin commands show of a server's driver: its port, its
 * directory, the system. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/server/uv_server_internal.h"

/* Of the first address that has one. */
static int32_t conf_port(const struct server_run *r, bool tls, int32_t none)
{
    for (struct list *e = r->listeners.next; e != &r->listeners; e = e->next) {
        const struct listener *l = LIST_ENTRY(e, struct listener, link);
        const char *colon = l->is_unix || l->tls != tls ? NULL : strrchr(l->text, ':');
        if (colon)
            return (int32_t)strtol(colon + 1, NULL, 10);
    }
    return none;
}

void clave__run_set_driver_info(struct server_run *r)
{
    snprintf(r->version_2, sizeof r->version_2, "%s/version-2", r->dir.path);
    struct driver_info info = {
        .client_port = conf_port(r, false, -1),
        .secure_client_port = conf_port(r, true, 0),
        .max_per_address = (int32_t)r->address_limit.max_connections,
        .data_dir = r->version_2,
    };
    size_t n = sizeof r->host_name;
    if (uv_os_uname(&r->system) == 0 && uv_os_gethostname(r->host_name, &n) == 0) {
        const struct environment_line lines[ENVIRONMENT_LINES] = {
            {"host.name", r->host_name},
            {"os.name", r->system.sysname},
            {"os.arch", r->system.machine},
            {"os.version", r->system.release}};
        memcpy(info.environment, lines, sizeof lines);
    }
    clave__server_set_driver_info(r->server, &info);
}
