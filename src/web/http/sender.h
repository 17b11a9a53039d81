/* sender.h - who sends requests: an identity (of a token, a certificate, a user of the machine)
 * where there is one, else an address: an IPv4 address, the /64 of an IPv6 address. */
#ifndef CLAVE_WEB_HTTP_SENDER_H
#define CLAVE_WEB_HTTP_SENDER_H

#include "base/map.h"
#include "web/http/exchange.h"

/* What there is of each, and what a sender has of it: sender_limits.h. */
enum sender_pool {
    POOL_WAITS,
    POOL_BYTES,
    POOL_STRANGE_BYTES,
    POOL_CONNECTIONS,
    POOL_SESSIONS,
    POOLS
};

struct senders {
    struct map map;
    size_t used[POOLS];
};

enum sender_kind {
    SENDER_NAMED,    /* by its name */
    SENDER_ADMITTED, /* by its address, with a role */
    SENDER_STRANGER, /* by its address: all of them together have a part of SENDER_BYTES apart */
};

/* With counted references. */
struct sender {
    struct map_node node;
    unsigned refs;
    size_t used[POOLS];
    enum sender_kind kind;
    size_t len;
    char name[];
};

/* Makes w->senders. ENOMEM. */
clave_err clave__senders_new(struct web *w);
/* Every reference was given back. */
void clave__senders_free(struct web *w);

/* The sender of this name or address ("10.0.0.1:80", "[2001:db8::1]:80"), with a reference. NULL:
 * out of memory. */
struct sender *clave__sender_get(struct web *w, enum sender_kind kind, const char *text);
struct sender *clave__sender_ref(struct sender *s);
/* NULL is ignored. */
void clave__sender_unref(struct web *w, struct sender *s);

/* Whose share the request counts to. NULL: out of memory. */
struct sender *clave__web_sender(struct web_exchange *x);

#endif
