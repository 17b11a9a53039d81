/* waiting.c - see waiting.h. problem.c enters, answer.c and exchange.c leave. A sender is a user
 * with a name, or an address without its port. Invariant: a sender is in the map while any of its
 * requests counts. */
#include "web/http/waiting.h"

#include <string.h>

#include "base/map.h"

/* Of all that may wait, those of one sender may be 4 in 5: whoever takes that many leaves room for
 * others. */
enum { MOST_WAITING = 15000, ONE_SENDER = 4, OF_ALL = 5 };

struct waiting {
    struct map senders;
    size_t n;
};

struct waiting_sender {
    struct map_node node;
    size_t n;
    size_t len;
    char name[];
};

clave_err clave__waiting_new(struct web *w)
{
    w->waiting = clave__mem_zalloc(&w->mem, sizeof *w->waiting);
    return w->waiting ? clave__map_init(&w->waiting->senders, &w->mem, clave__rand_u64(&w->rand))
                      : CLAVE_ENOMEM;
}

void clave__waiting_free(struct web *w)
{
    if (w->waiting)
        clave__map_fini(&w->waiting->senders);
    clave__mem_free(&w->mem, w->waiting);
    w->waiting = NULL;
}

/* ---- senders -------------------------------------------------------------------------------- */

struct sender_name {
    const char *text;
    size_t len;
};

static struct sender_name waiting_name(const struct web_exchange *x)
{
    const char *address = x->peer.address ? x->peer.address : "";
    const char *port = strrchr(address, ':');
    if (x->who.name[0])
        return (struct sender_name){x->who.name, strlen(x->who.name)};
    return (struct sender_name){address, port ? (size_t)(port - address) : strlen(address)};
}

static bool waiting_is(const struct map_node *node, const void *key)
{
    const char *at = (const char *)node - offsetof(struct waiting_sender, node);
    const struct waiting_sender *s = (const void *)at;
    const struct sender_name *name = key;
    return s->len == name->len && memcmp(s->name, name->text, s->len) == 0;
}

/* NULL: out of memory. */
static struct waiting_sender *waiting_sender(struct web *w, const struct sender_name *name)
{
    struct map *m = &w->waiting->senders;
    uint32_t hash = clave__map_hash_bytes(m, name->text, name->len);
    struct map_node *found = clave__map_find(m, hash, waiting_is, name);
    if (found)
        return MAP_ENTRY(found, struct waiting_sender, node);
    struct waiting_sender *s = clave__mem_zalloc(&w->mem, sizeof *s + name->len);
    if (!s)
        return NULL;
    s->len = name->len;
    memcpy(s->name, name->text, name->len);
    clave__map_insert(m, &s->node, hash);
    return s;
}

static void waiting_forget(struct web *w, struct waiting_sender *s)
{
    if (s->n > 0)
        return;
    clave__map_remove(&w->waiting->senders, &s->node);
    clave__mem_free(&w->mem, s);
}

/* ---- requests ------------------------------------------------------------------------------- */

enum waiting_found clave__waiting_enter(struct web_exchange *x, size_t *most)
{
    struct web *w = x->web;
    size_t all = w->o.max_waiting ? w->o.max_waiting : MOST_WAITING;
    size_t of_one = (all * ONE_SENDER + OF_ALL - 1) / OF_ALL;
    struct sender_name name = waiting_name(x);
    struct waiting_sender *s = waiting_sender(w, &name);
    if (!s)
        return WAITING_NO_MEMORY;
    if (w->waiting->n < all && s->n < of_one) {
        s->n++;
        w->waiting->n++;
        x->waits_as = s;
        return WAITING_COUNTS;
    }
    bool taken = w->waiting->n >= all;
    *most = taken ? all : of_one;
    waiting_forget(w, s);
    return taken ? WAITING_ALL_TAKEN : WAITING_SENDER_HAS_MOST;
}

void clave__waiting_leave(struct web_exchange *x)
{
    struct waiting_sender *s = x->waits_as;
    if (!s)
        return;
    x->waits_as = NULL;
    x->web->waiting->n--;
    s->n--;
    waiting_forget(x->web, s);
}

size_t clave__waiting_count(const struct web *w)
{
    return w->waiting->n;
}
