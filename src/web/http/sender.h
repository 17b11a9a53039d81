/* sender.h - who sends requests, and how much each sender may have of what all of them share. A
 * sender is an identity (of a token, a certificate, a user of the machine) where there is one, else
 * an address: an IPv4 address, the /64 of an IPv6 address. */
#ifndef CLAVE_WEB_HTTP_SENDER_H
#define CLAVE_WEB_HTTP_SENDER_H

#include "base/map.h"
#include "web/http/exchange.h"

/* What senders share, and what each of them has of it: see "shares" below. */
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
    SENDER_STRANGER, /* by its address: all strangers together have a part of SENDER_BYTES set aside
                      * for them */
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
/* Frees w->senders, after every reference was given back. */
void clave__senders_free(struct web *w);

/* The sender of this name or address ("10.0.0.1:80", "[2001:db8::1]:80"), with a reference. NULL:
 * out of memory. */
struct sender *clave__sender_get(struct web *w, enum sender_kind kind, const char *text);
struct sender *clave__sender_ref(struct sender *s);
/* NULL is ignored. */
void clave__sender_unref(struct web *w, struct sender *s);

/* The sender towards whose share the request counts. NULL: out of memory. */
struct sender *clave__web_sender(struct web_exchange *x);

/* ==== shares ================================================================================== */

/* What each sender may have of what all share (requests that wait, memory, connections, sessions),
 * so that one sender cannot take all of it. Nothing here is needed to renew, to release, or to look
 * at one's own session or claim (ROUTE_OWN of exchange.h). */

enum sender_share {
    SENDER_WAITS, /* long polls, and streams until they end */
    SENDER_CALLS, /* other requests that have no answer yet: counted together with SENDER_WAITS,
                   * with room for a few more */
    SENDER_BYTES, /* of bodies, answers and pieces of streams */
    SENDER_CONNECTIONS, /* connections that stay open when others need room */
    SENDER_SESSIONS,    /* with a connection to the servers */
};

enum sender_found { SENDER_MAY, SENDER_ALL_TAKEN, SENDER_HAS_MOST, SENDER_NO_MEMORY };

/* The sender has n more of the share, or n less, whatever the limit. */
void clave__sender_add(struct web *w, struct sender *s, enum sender_share share, size_t n);
void clave__sender_give(struct web *w, struct sender *s, enum sender_share share, size_t n);

/* How much of the share all senders have together. */
size_t clave__senders_have(const struct web *w, enum sender_share share);

/* ---- what a request has of them ------------------------------------------------------------- */

/* Requests are refused by admission.c before they begin: once something may have been done, the
 * answer is sent even if there is no room for it. */

/* Bodies and answers up to this do not count: a connection costs as much. So a claim, a small
 * write, and every refusal have room in any case. */
enum { SHARES_SMALL = 4096 };
/* The bytes that a small body may take once parsed: about 20 operations of a transaction. */
enum { SHARES_SMALL_TREE = 4 * SHARES_SMALL };

/* True for a renewal, a release, or a look at one's own session or claim, which need nothing of
 * what all share. */
bool clave__shares_is_own(const struct web_exchange *x);

/* Returns SENDER_MAY if the sender may have n more; otherwise *most is the limit that is
 * reached. */
enum sender_found clave__shares_may(struct web_exchange *x, enum sender_share share, size_t n,
                                    size_t *most);

/* True if n more would exceed the sender's own limit, *most, whatever all senders have together. */
bool clave__shares_has_most(struct web_exchange *x, enum sender_share share, size_t n,
                            size_t *most);

/* Counts the request as waiting, as SENDER_WAITS or SENDER_CALLS, unless the limit is reached. */
enum sender_found clave__shares_enter(struct web_exchange *x, enum sender_share share,
                                      size_t *most);
/* Counts a request that has no answer yet as a call. */
void clave__shares_count_waiting(struct web_exchange *x);
/* The request was answered: no longer counts it as waiting. */
void clave__shares_leave(struct web_exchange *x);

/* Counts a body of n bytes, announced or received, unless that exceeds the share. */
enum sender_found clave__shares_take_body(struct web_exchange *x, size_t n, size_t *most);
/* Counts the n bytes that the parsed body takes besides the body itself, unless that exceeds the
 * share. */
enum sender_found clave__shares_take_tree(struct web_exchange *x, size_t n, size_t *most);
/* Counts x->answer.body, which is complete or has its first piece. If it does not return
 * SENDER_MAY, there is no room, and the request has changed nothing. */
enum sender_found clave__shares_count_answer(struct web_exchange *x);
/* Counts a piece of a stream in place of the piece before. Returns false if there is no room for
 * it. */
bool clave__shares_count_piece(struct web_exchange *x, size_t n);

/* The request has ended: gives back all that it counted for. */
void clave__shares_end(struct web_exchange *x);

#endif
