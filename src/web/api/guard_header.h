/* guard_header.h - Clave-Guard: PATH;token=T. A write is done only while the lock at PATH is held
 * with the fencing token T: the node whose creation the token is must hold, and be there in the
 * same transaction. The header may name several locks, separated by commas or in several lines; all
 * of them must be held. */
#ifndef CLAVE_WEB_API_GUARD_HEADER_H
#define CLAVE_WEB_API_GUARD_HEADER_H

#include "web/http/exchange.h"

enum { MOST_GUARDS = 16 };

struct guard {
    const char *path;
    int64_t token;
    const char *node; /* whose check is in the transaction, once it is found */
};

struct guards {
    struct guard list[MOST_GUARDS];
    size_t n;
    void (*found)(struct web_exchange *x, clave_async_client *c);
    size_t at; /* that is looked for */
};

/* false: it has answered 400, 401 or 403. */
bool clave__guards_read(struct web_exchange *x, struct guards *out);

/* Looks for the node of each, and calls `found` when all hold; or answers 410, or 409 for a place
 * that waits. It is kept in x->state's memory: `g` lasts as long as the exchange. */
void clave__guards_find(struct web_exchange *x, clave_async_client *c, struct guards *g,
                        void (*found)(struct web_exchange *x, clave_async_client *c));
/* The operations that a transaction begins with: g->n of them. */
void clave__guards_put_checks(const struct guards *g, clave_op *ops);
/* The transaction failed by one of them: it has answered, 410 or 403. */
bool clave__guards_failed(struct web_exchange *x, const struct guards *g, const clave_result *res);

#endif
