/* write.h - what all writing requests share: checks, one transaction each, events, the reply. */
#ifndef CLAVE_SERVER_REQUEST_WRITE_H
#define CLAVE_SERVER_REQUEST_WRITE_H

#include "server/request/request.h"

/* Begins s->txn with the next zxid. */
void clave__write_begin(struct server *s, int64_t client, int32_t cxid, int32_t type);
/* Logs the transaction, then fires its watches; the caller ends it. ENOMEM: it is undone and ended,
 * nothing is logged. */
clave_err clave__write_commit(struct server *s);
/* Undoes the changes and logs that the request failed. ENOMEM, also as `why`: nothing is logged. */
clave_err clave__write_fail(struct server *s, clave_err why);

/* A write by itself, and several in one transaction (multi.c). */
request_answer clave__conn_write;
request_answer clave__conn_multi;
request_answer clave__conn_multi_read;

/* The writes: the table in request.c refers to them. */
request_act clave__write_create; /* all four creates: create.c */
request_act clave__write_delete;
request_act clave__write_delete_container;
request_act clave__write_set_data;
request_act clave__write_set_acl;
request_act clave__write_check;
request_act clave__write_reconfig; /* reconfig.c */

/* What they check, as Apache in this order: whether it looks like a path, EMARSHALLING, EBADARGS;
 * whether it is a valid one, EBADARGS; permissions, ENOAUTH. */
clave_err clave__write_check_shape(struct jbytes path);
clave_err clave__write_check_path(struct jbytes path);
clave_err clave__write_check_access(const struct node *n, const struct server_conn *c,
                                    int32_t perm);
/* A change of s->txn, of this node; it is not made yet. ENOMEM. */
clave_err clave__write_add_change(struct server *s, int32_t type, struct jbytes path,
                                  struct node *n, struct change **out);

/* Writes the body of the reply to an op that made this change, with the Stat of this moment. */
void clave__write_put_reply(struct jwriter *w, int32_t op, const struct change *c);

request_answer clave__conn_close_session; /* end_session.c */
/* The server itself ends a session and its nodes. ENOMEM: the session lives on. */
clave_err clave__session_expire(struct server *s, int64_t id);

#endif
