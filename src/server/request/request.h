/* request.h - what the server does with each opcode: one table, one line an opcode, in request.c.
 * What the protocol says of it (name, body, reply, effect) is in wire/opcode.h. */
#ifndef CLAVE_SERVER_REQUEST_REQUEST_H
#define CLAVE_SERVER_REQUEST_REQUEST_H

#include "server/connection/conn.h"
#include "wire/opcode.h"

struct request_op;

/* Answers a whole request. */
typedef void request_answer(struct server_conn *c, const struct wire_request *q,
                            const struct request_op *op);
/* Checks a request whose body could be read, and does it: a write makes its change in s->txn, where
 * it sees those of the ops before it. ZooKeeper's code, or ENOMEM. */
typedef clave_err request_act(struct server_conn *c, int32_t op, const union wire_body *body);
/* Writes what the reply says of a node. */
typedef void request_show(struct jwriter *w, const struct server_conn *c, const struct node *n);

struct request_op {
    request_answer *answer; /* NULL: not a request by itself */
    request_act *act;       /* of writes and requests about watches */
    request_show *show;     /* of reads of one node */
    int32_t perms;          /* likewise: the client needs at least one of these */
    bool shows_others;      /* likewise: it shows nodes below that one, too */
};

/* Never NULL; all NULL for what the server does not know. */
const struct request_op *clave__request_op(int32_t op);

#endif
