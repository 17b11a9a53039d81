/* shares.c - see shares.h. Called by limits.c, answer.c, exchange.c and web.c. */
#include "web/http/shares.h"

#include <string.h>

#include "web/http/route.h"

/* ---- whose it is ----------------------------------------------------------------------------- */

/* The address as the rules about proxies give it. */
static const char *shares_address(const struct web_exchange *x)
{
    return x->peer.address ? x->peer.address : "";
}

struct sender *clave__web_sender(struct web_exchange *x)
{
    bool named = x->who.is_known && x->who.name[0];
    enum sender_kind kind = SENDER_STRANGER;
    if (x->who.found == ACCESS_KNOWN)
        kind = named ? SENDER_NAMED : SENDER_ADMITTED;
    if (!x->sender)
        x->sender = clave__sender_get(x->web, kind, named ? x->who.name : shares_address(x));
    return x->sender;
}

bool clave__shares_is_own(const struct web_exchange *x)
{
    return x->route && (x->route->flags & ROUTE_OWN);
}

bool clave__shares_reads(const struct web_exchange *x)
{
    return strcmp(x->q->method, "GET") == 0 || strcmp(x->q->method, "HEAD") == 0;
}

enum sender_found clave__shares_may(struct web_exchange *x, enum sender_share share, size_t n,
                                    size_t *most)
{
    const struct sender *s = clave__web_sender(x);
    return s ? clave__sender_may(x->web, s, share, n, most) : SENDER_NO_MEMORY;
}

/* ---- requests that wait ---------------------------------------------------------------------- */

enum sender_found clave__shares_enter(struct web_exchange *x, enum sender_share share, size_t *most)
{
    clave__shares_leave(x); /* a call that begins to wait */
    enum sender_found found = clave__shares_may(x, share, 1, most);
    if (found == SENDER_MAY)
        clave__sender_add(x->web, x->sender, share, 1);
    x->waits = found == SENDER_MAY;
    return found;
}

void clave__shares_count_waiting(struct web_exchange *x)
{
    if (x->waits || clave__shares_is_own(x) || !clave__web_sender(x))
        return;
    x->waits = true;
    clave__sender_add(x->web, x->sender, SENDER_CALLS, 1);
}

void clave__shares_leave(struct web_exchange *x)
{
    if (x->waits)
        clave__sender_give(x->web, x->sender, SENDER_CALLS, 1);
    x->waits = false;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* The exchange has so many from now on. */
static void shares_set_bytes(struct web_exchange *x, size_t n)
{
    if (n > x->bytes)
        clave__sender_add(x->web, x->sender, SENDER_BYTES, n - x->bytes);
    else if (n < x->bytes)
        clave__sender_give(x->web, x->sender, SENDER_BYTES, x->bytes - n);
    x->bytes = n;
}

static enum sender_found shares_try_bytes(struct web_exchange *x, size_t n, size_t *most)
{
    enum sender_found found =
        n > x->bytes ? clave__shares_may(x, SENDER_BYTES, n - x->bytes, most) : SENDER_MAY;
    if (found == SENDER_MAY)
        shares_set_bytes(x, n);
    return found;
}

enum sender_found clave__shares_take_body(struct web_exchange *x, size_t n, size_t *most)
{
    return n <= SHARES_SMALL || n <= x->bytes ? SENDER_MAY : shares_try_bytes(x, n, most);
}

/* The body, as it came and as JSON, and what there is of the answer. */
static size_t shares_bytes(const struct web_exchange *x, size_t answer)
{
    size_t body = x->received.cap + x->tree;
    return (body > SHARES_SMALL ? body : 0) + (answer > SHARES_SMALL ? answer : 0);
}

enum sender_found clave__shares_take_tree(struct web_exchange *x, size_t n, size_t *most)
{
    x->tree = n;
    enum sender_found found = shares_try_bytes(x, shares_bytes(x, 0), most);
    if (found != SENDER_MAY)
        x->tree = 0;
    return found;
}

enum sender_found clave__shares_count_answer(struct web_exchange *x)
{
    size_t n = shares_bytes(x, x->answer.body.cap), most;
    bool must = clave__shares_is_own(x) || !clave__shares_reads(x);
    enum sender_found found = shares_try_bytes(x, n, &most);
    if (found == SENDER_MAY || !must)
        return found;
    if (x->sender)
        shares_set_bytes(x, n);
    return SENDER_MAY;
}

bool clave__shares_count_piece(struct web_exchange *x, size_t n)
{
    size_t most;
    return shares_try_bytes(x, shares_bytes(x, n), &most) == SENDER_MAY;
}

void clave__shares_end(struct web_exchange *x)
{
    clave__shares_leave(x);
    shares_set_bytes(x, 0);
    clave__sender_unref(x->web, x->sender);
    x->sender = NULL;
}
