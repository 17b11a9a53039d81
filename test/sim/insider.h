/* insider.h - what is done to a server by others than the clients under test: operators,
 * and clients of other kinds. A connection from inside its process, used at once. */
#ifndef CLAVE_SIM_INSIDER_H
#define CLAVE_SIM_INSIDER_H

#include "server_host.h"

void insider_end_session(struct server_host *h, int64_t session);
/* The nth child of `path`, its path into out; false: there are fewer. */
bool insider_remove_child(struct server_host *h, const char *path, size_t nth, char *out,
                          size_t cap);
bool insider_write_child(struct server_host *h, const char *path, size_t nth, char *out,
                         size_t cap);
/* A node of Curator's or kazoo's name that goes after so long; false: no such path, or one
 * stands there. */
bool insider_queue_up(struct server_host *h, const char *path, int64_t us);
void insider_fini(struct server_host *h);

#endif
