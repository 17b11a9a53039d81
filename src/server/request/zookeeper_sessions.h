/* zookeeper_sessions.h - what a super user sees below /zookeeper/sessions, and nobody else: a node
 * for each session, which it may read, and delete to end the session. The tree does not have them.
 */
#ifndef CLAVE_SERVER_REQUEST_ZOOKEEPER_SESSIONS_H
#define CLAVE_SERVER_REQUEST_ZOOKEEPER_SESSIONS_H

#include "server/connection/conn.h"

/* A request of a super user. false: it is about something else. */
bool clave__session_nodes_answer(struct server_conn *c, const struct wire_request *q);

#endif
