#include "http/http_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "http/http_told.h"
#include "http/http_world.h"
#include "server/server_internal.h"

struct http_place *http_place_find(struct http_world *h, unsigned site, int64_t token)
{
    struct http_places *s = &h->places;
    size_t n = s->n < HTTP_PLACES ? s->n : HTTP_PLACES;
    for (size_t i = 1; i <= n; i++) {
        struct http_place *p = &s->list[(s->n - i) % HTTP_PLACES];
        if (p->token == token && p->site == site)
            return p;
    }
    return NULL;
}

static bool place_is(const struct http_place *p, unsigned site, const struct node *n)
{
    return p->token == n->stat.czxid && p->site == site && p->session == n->stat.owner &&
           strlen(p->node) == n->path_len && memcmp(p->node, clave__node_path(n), n->path_len) == 0;
}

static struct http_place *place_find(struct http_places *s, unsigned site, const struct node *n)
{
    for (size_t i = 0; i < HTTP_PLACES; i++)
        if (place_is(&s->list[i], site, n))
            return &s->list[i];
    return NULL;
}

/* The number of a request in "rq17", which is the name that it gave. */
static uint64_t place_request(const struct node *n)
{
    char text[512];
    struct jbytes data = clave__node_data(n);
    if (data.n <= 0)
        return 0;
    snprintf(text, sizeof text, "%.*s", (int)data.n, data.p);
    const char *at = strstr(text, "rq");
    return at ? strtoull(at + 2, NULL, 10) : 0;
}

static struct http_place *place_new(struct http_places *s)
{
    struct http_place *p;
    do
        p = &s->list[s->n++ % HTTP_PLACES];
    while (p->token != 0 && p->gone == HTTP_NEVER);
    return p;
}

static void place_appears(struct http_world *h, unsigned site, const struct node *n)
{
    struct http_places *s = &h->places;
    int64_t token = n->stat.czxid;
    /* After a crash one is back whose deletion was not on the disk. */
    struct http_place *p = token <= s->newest ? place_find(s, site, n) : NULL;
    if (!p) {
        p = place_new(s);
        *p = (struct http_place){.site = site,
                                 .session = n->stat.owner,
                                 .token = token,
                                 .turn = HTTP_NEVER,
                                 .request = place_request(n)};
        snprintf(p->node, sizeof p->node, "%.*s", (int)n->path_len, clave__node_path(n));
        s->newest = token > s->newest ? token : s->newest;
        http_told_place(h, p);
    }
    p->gone = p->holds = HTTP_NEVER;
    p->seen = true;
    world_must(s->nstanding < HTTP_STANDING);
    s->standing[s->nstanding++] = p;
}

static void place_look(struct http_world *h, unsigned site, const struct node *n)
{
    struct http_places *s = &h->places;
    for (size_t i = 0; i < s->nstanding; i++)
        if (place_is(s->standing[i], site, n)) {
            s->standing[i]->seen = true;
            return;
        }
    place_appears(h, site, n);
}

static void places_find_gone(struct http_world *h, unsigned site)
{
    struct http_places *s = &h->places;
    size_t kept = 0;
    for (size_t i = 0; i < s->nstanding; i++) {
        struct http_place *p = s->standing[i];
        if (p->site == site && !p->seen) {
            p->gone = h->w->now;
            http_told_gone(h, p);
            continue;
        }
        s->standing[kept++] = p;
    }
    s->nstanding = kept;
}

/* UUIDs of version 8 name an owner by their end: what each has is beside what the other has. */
static bool place_owners_differ(const char *uuid, const char *other)
{
    const char *owner = uuid[14] == '8' ? uuid + 24 : "000000000000";
    const char *others = other[14] == '8' ? other + 24 : "000000000000";
    return (uuid[14] == '8') != (other[14] == '8') || strncmp(owner, others, 12) != 0;
}

/* Whichever gates it was asked of, and after a restart too. */
static void places_compare(struct http_world *h, const struct http_place *a,
                           const struct http_place *b)
{
    size_t named = strlen(h->sites[a->site].layout.queue) + 1 + strlen("_c_") + CLAVE_UUID_TEXT;
    if (a->site != b->site || a->session != b->session)
        return;
    if (strncmp(a->node, b->node, named) == 0)
        world_break(h->w, "a claim has one place", "session 0x%llx has %s and %s",
                    (unsigned long long)a->session, a->node, b->node);
    else if (!place_owners_differ(a->node + named - CLAVE_UUID_TEXT,
                                  b->node + named - CLAVE_UUID_TEXT))
        http_rule_broken(h->w, RULE_ONE_PLACE, "session 0x%llx has %s and %s",
                         (unsigned long long)a->session, a->node, b->node);
}

static void places_judge(struct http_world *h, unsigned site)
{
    struct http_places *s = &h->places;
    for (size_t i = 0; i < s->nstanding; i++) {
        struct http_place *p = s->standing[i];
        if (p->site != site)
            continue;
        if (!layout_has_turn(h->server, &h->sites[site].layout, p->node))
            p->holds = HTTP_NEVER;
        else if (p->holds == HTTP_NEVER)
            p->holds = h->w->now;
        if (p->turn == HTTP_NEVER)
            p->turn = p->holds;
        for (size_t k = 0; k < i; k++)
            places_compare(h, p, s->standing[k]);
    }
}

/* The queue as it is; NULL: there is none. *changed: it is another than when it was seen. */
static const struct node *queue_find(struct http_world *h, const char *path,
                                     struct http_queue_seen *seen, bool *changed)
{
    const struct node *top = clave__tree_find(&h->server->server->tree, clave__jbytes(path));
    struct http_queue_seen now = {top ? top->stat.czxid : 0, top ? top->stat.pzxid : 0,
                                  h->server->stats.starts};
    *changed = now.czxid != seen->czxid || now.pzxid != seen->pzxid || now.start != seen->start;
    *seen = now;
    return top;
}

static void queue_look(struct http_world *h, unsigned site, const struct node *top)
{
    struct http_places *s = &h->places;
    for (size_t i = 0; i < s->nstanding; i++)
        s->standing[i]->seen = s->standing[i]->site != site;
    for (const struct node *n = top; n && (n = clave__tree_next(n, top));)
        if (clave__owner_kind(n->stat.owner) == NODE_EPHEMERAL)
            place_look(h, site, n);
    places_find_gone(h, site);
    places_judge(h, site);
}

/* The UUID of a claim's node. NULL: it is of no claim. */
static const char *place_uuid(const char *node)
{
    const char *name = strrchr(node, '/');
    return name && strncmp(name, "/_c_", 4) == 0 ? name + 4 : NULL;
}

/* Who queues for leases of a semaphore may have the lease of this place already, and no other. */
static void waits_compare(struct http_world *h, unsigned site, const struct node *waits)
{
    const struct http_places *s = &h->places;
    for (const struct node *n = waits; n && (n = clave__tree_next(n, waits));) {
        char path[PATH_SIZE];
        snprintf(path, sizeof path, "%.*s", (int)n->path_len, clave__node_path(n));
        const char *own = place_uuid(path);
        for (size_t i = 0; own && i < s->nstanding; i++) {
            const struct http_place *p = s->standing[i];
            const char *other = place_uuid(p->node);
            if (p->site == site && p->session == n->stat.owner && other &&
                strncmp(own, other, CLAVE_UUID_TEXT) != 0 && !place_owners_differ(own, other))
                http_rule_broken(h->w, RULE_ONE_PLACE, "session 0x%llx has %s and %s",
                                 (unsigned long long)p->session, path, p->node);
        }
    }
}

void http_places_look(struct http_world *h)
{
    for (unsigned i = 0; i < HTTP_SITES; i++) {
        const struct lock_layout *at = &h->sites[i].layout;
        char locks[PATH_SIZE];
        bool queue_changed, waits_changed = false;
        const struct node *waits = NULL;
        const struct node *queue = queue_find(h, at->queue, &h->places.queues[i], &queue_changed);
        snprintf(locks, sizeof locks, "%s/locks", at->path);
        if (at->kind == LOCK_SEMAPHORE)
            waits = queue_find(h, locks, &h->places.waits[i], &waits_changed);
        if (queue_changed)
            queue_look(h, i, queue);
        if (queue_changed || waits_changed)
            waits_compare(h, i, waits);
    }
}
