/* operator.h - what others than the clients under test do to a server: operators, clients of other
 * kinds, and intruders. They use a connection from inside the server's process, without the
 * network. */
#ifndef CLAVE_SIM_OPERATOR_H
#define CLAVE_SIM_OPERATOR_H

#include "server_host.h"
#include "wire/jute.h"

void operator_end_session(struct server_host *h, int64_t session);
/* As a super user of the server, whose nodes outlive it until it expires. */
void operator_bar_session(struct server_host *h, int64_t session);
/* A client without an identity comes with this session, and makes a request. */
void operator_intrude(struct server_host *h, int64_t session, int32_t timeout_ms, int32_t op);
/* The nth child of `path`, its path into out; false: there are fewer. */
bool operator_remove_child(struct server_host *h, const char *path, size_t nth, char *out,
                           size_t cap);
bool operator_write_child(struct server_host *h, const char *path, size_t nth, char *out,
                          size_t cap);
void operator_write(struct server_host *h, const char *path, struct jbytes data);
/* A sequential node of this name that goes after so long; false: no such path, or one stands
 * there. */
bool operator_enqueue(struct server_host *h, const char *path, const char *name, int64_t us);
/* The parent's sequence counter jumps: so many numbers are left. false: no such path, or that would
 * be backwards. */
bool operator_exhaust_counter(struct server_host *h, const char *path, int32_t left);
/* What /zookeeper/config says, as from the configuration: no transaction. */
void operator_write_config(struct server *s, const char *text);
void operator_fini(struct server_host *h);

#endif
