/* lock_etag.c - see lock_etag.h. Called by the endpoints. Invariant: a place has a token of its
 * own, and its version, whether it holds and whether it was asked only ever go up. So a digest does
 * not come back while there are places. A bounded number of them is looked at: what changes of a
 * place further back is not seen, but that any came or went is. */
#include "observe/lock_etag.h"

#include <string.h>

#include "base/hash/siphash.h"

enum { DIGEST_PLACES = 1000 }; /* of each side */

/* The same key everywhere. Whoever chooses names so that two states of a lock have one digest has
 * kept a change of that lock from those who wait for it, and nothing else. */
static uint64_t etag_bytes(const void *p, size_t n)
{
    return clave__siphash(clave__siphash_key(1), p, n);
}

static uint64_t etag_add(uint64_t digest, const struct lock_node *p)
{
    uint64_t marks = (uint64_t)p->holds | (uint64_t)p->asked << 1 | (uint64_t)p->unreadable << 2;
    const uint64_t words[] = {digest, etag_bytes(p->name, strlen(p->name)), (uint64_t)p->token,
                              (uint64_t)p->version, marks};
    return etag_bytes(words, sizeof words);
}

static uint64_t etag_add_places(uint64_t digest, const struct lock_queue *q,
                                struct lock_node *(*after)(const struct lock_queue *q,
                                                           const struct lock_node *p))
{
    struct lock_node *p = NULL;
    for (int i = 0; i < DIGEST_PLACES && (p = after(q, p)); i++)
        digest = etag_add(digest, p);
    return digest;
}

/* The newest, of a queue in which places come at the end only: with how many there are it tells
 * whether any came or went. */
static uint64_t etag_add_last(uint64_t digest, const struct lock_queue *q)
{
    struct ordered_node *last = q ? clave__ordered_last(&q->places, ORDERED_ANY) : NULL;
    return last ? etag_add(digest, ORDERED_ENTRY(last, struct lock_node, node)) : digest;
}

uint64_t clave__lock_etag(const struct lock_queue *q)
{
    const uint64_t head[] = {clave__lock_kind(q), clave__lock_limit(q), q->nholders,
                             clave__lock_nwaiters(q), clave__lock_nleft_over(q)};
    uint64_t digest = etag_bytes(head, sizeof head);
    digest = etag_add_places(digest, q, clave__lock_holder_after);
    digest = etag_add_places(digest, q, clave__lock_left_over_after);
    digest = etag_add_places(digest, q, clave__lock_waiter_after);
    return etag_add_last(etag_add_last(digest, q), q->partner);
}

/* What has led last, and is told no more, differs from what never was. */
static uint64_t etag_election_last_token(const struct election *e)
{
    const struct election_term *last =
        list_empty(&e->terms) ? NULL : LIST_ENTRY(e->terms.prev, struct election_term, link);
    return last ? (uint64_t)last->token : 0;
}

uint64_t clave__election_digest(const struct election *e, const struct lock_queue *q)
{
    const uint64_t words[] = {q ? clave__lock_etag(q) : 0,
                              e->value ? etag_bytes(e->value, e->nvalue) : 0, e->over && !q,
                              etag_election_last_token(e)};
    return etag_bytes(words, sizeof words);
}
