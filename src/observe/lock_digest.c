/* lock_digest.c - see lock_digest.h. Called by the endpoints. Invariant: a place has a token of its
 * own, and its version, whether it holds and whether it was asked only ever go up. So a digest does
 * not come back while there are places. */
#include "observe/lock_digest.h"

#include <string.h>

#include "base/siphash.h"

/* The same key everywhere. Whoever chooses names so that two states of a lock have one digest has
 * kept a change of that lock from those who wait for it, and nothing else. */
static uint64_t digest_bytes(const void *p, size_t n)
{
    return clave__siphash(clave__siphash_key(1), p, n);
}

static uint64_t digest_add(uint64_t digest, const struct lock_place *p)
{
    uint64_t marks = (uint64_t)p->holds | (uint64_t)p->asked << 1 | (uint64_t)p->unreadable << 2;
    const uint64_t words[] = {digest, digest_bytes(p->name, strlen(p->name)), (uint64_t)p->token,
                              (uint64_t)p->version, marks};
    return digest_bytes(words, sizeof words);
}

uint64_t clave__lock_digest(const struct lock_queue *q)
{
    const uint64_t head[] = {clave__lock_sort(q), clave__lock_limit(q)};
    uint64_t digest = digest_bytes(head, sizeof head);
    struct lock_place *p;
    for (const char *last = ""; (p = clave__lock_holder_after(q, last)); last = p->name)
        digest = digest_add(digest, p);
    for (const char *last = ""; (p = clave__lock_waiter_after(q, last)); last = p->name)
        digest = digest_add(digest, p);
    return digest;
}

/* What has led last, and is told no more, differs from what never was. */
static uint64_t election_last_token(const struct election *e)
{
    const struct election_term *last =
        list_empty(&e->terms) ? NULL : LIST_ENTRY(e->terms.prev, struct election_term, link);
    return last ? (uint64_t)last->token : 0;
}

uint64_t clave__election_digest(const struct election *e, const struct lock_queue *q)
{
    const uint64_t words[] = {q ? clave__lock_digest(q) : 0,
                              e->value ? digest_bytes(e->value, e->nvalue) : 0, e->over && !q,
                              election_last_token(e)};
    return digest_bytes(words, sizeof words);
}
