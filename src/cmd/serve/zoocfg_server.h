/* zoocfg_server.h - a line "server.1=..." of zoo.cfg, which names the client port since 3.5:
 *
 *   host:2888:3888[:participant][|host:2888:3888...][;[[address:]2181][;[address:]2281]]
 *
 * The last part, a port for TLS, is of the versions after 3.9. zoocfg_load.c reads it. */
#ifndef CLAVE_CMD_SERVE_ZOOCFG_SERVER_H
#define CLAVE_CMD_SERVE_ZOOCFG_SERVER_H

#include "runtime/start_error.h"

enum { ZOOCFG_HOST_CAP = 256, ZOOCFG_PORT_CAP = 8 };

struct zoocfg_client_address {
    char host[ZOOCFG_HOST_CAP]; /* without brackets; "": every address */
    char port[ZOOCFG_PORT_CAP]; /* "": the line names none */
};
struct zoocfg_server {
    struct zoocfg_client_address client, secure_client;
};

/* EINVAL, with the fault: it does not have that form, or is an observer's. */
clave_err zoocfg_server_parse(const char *value, struct zoocfg_server *out, const struct fault *f);

/* EINVAL, with the fault: DATA_DIR/myid is there and is not `id`, which is what follows "server."
 * in the key. A server without replication needs no such file. */
clave_err zoocfg_server_check_id(const char *data_dir, const char *id, const struct fault *f);

#endif
