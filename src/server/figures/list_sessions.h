/* list_sessions.h - the admin commands that list connections, sessions, their nodes and their
 * watches. Each writes members of the JSON object that admin.c has opened. */
#ifndef CLAVE_SERVER_FIGURES_LIST_SESSIONS_H
#define CLAVE_SERVER_FIGURES_LIST_SESSIONS_H

#include "base/json.h"
#include "server/figures/figures.h"

void clave__list_connections(struct server *s, struct json *j, bool full);
void clave__list_sessions(struct server *s, struct json *j);
void clave__list_watches(struct server *s, struct json *j);
void clave__list_watches_by_path(struct server *s, struct json *j);

#endif
