/* inspect.h - reading the content of Apache's files without serving it: the records of a log one
 * by one, and the nodes and sessions of a server that has loaded the files. */
#ifndef CLAVE_SERVER_STORE_INSPECT_H
#define CLAVE_SERVER_STORE_INSPECT_H

#include "server/server.h"
#include "server/store/txn_log_read.h"
#include "server/store/txn_record.h"
#include "wire/record.h"

/* ---- a log ----------------------------------------------------------------------------------- */

/* A transaction as recorded. */
struct log_entry {
    size_t offset; /* in the file */
    size_t size;   /* of the whole record */
    struct txn_record txn;
};

/* As clave__txn_log_walk_next; DAMAGED too if the record is not a transaction. */
enum log_step clave__txn_log_next_entry(struct log_walk *w, struct log_entry *out);

/* ---- what a server has loaded ---------------------------------------------------------------- */

struct node_view {
    struct jbytes path; /* "" is the root */
    struct jbytes data;
    struct jvec acl;
    struct wire_stat stat;
    int32_t stored_cversion;
    int64_t stored_owner; /* also of containers and of nodes with a TTL */
};

/* Visit every node, parents first, and every session. */
void clave__server_each_node(const struct server *s,
                             void (*visit)(void *arg, const struct node_view *n), void *arg);
void clave__server_each_session(const struct server *s,
                                void (*visit)(void *arg, int64_t id, int32_t timeout_ms),
                                void *arg);

#endif
