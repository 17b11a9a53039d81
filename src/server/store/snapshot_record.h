/* snapshot_record.h - the bytes of what a snapshot has: Apache's format, without its checksums. */
#ifndef CLAVE_SERVER_STORE_SNAPSHOT_RECORD_H
#define CLAVE_SERVER_STORE_SNAPSHOT_RECORD_H

#include "wire/jute.h"

struct acl;
struct node;
struct session;
struct sessions;

void clave__snapshot_put_header(struct jwriter *w);
void clave__snapshot_put_session_count(struct jwriter *w, const struct sessions *t);
void clave__snapshot_put_session(struct jwriter *w, const struct session *session);
void clave__snapshot_put_list(struct jwriter *w, const struct acl *list);
void clave__snapshot_put_node(struct jwriter *w, const struct node *n);

#endif
