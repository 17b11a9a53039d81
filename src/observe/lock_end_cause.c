/* lock_end_cause.c - see lock_end_cause.h. Called by observe.c. Invariant: each place that was
 * added is given once, after SETTLE_MS or when its cause was said. */
#include "observe/lock_end_cause.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "clave/async/slots.h"
#include "recipe/queue/identity.h"

enum { SETTLE_MS = 100, MOST_SAID = 10000 };

/* What somebody knows of a node that still exists, or is just going. */
struct said_cause {
    struct map_node node;
    struct list link;
    int64_t token;
    enum lock_cause cause;
};

const char *clave__lock_cause_name(enum lock_cause cause)
{
    static const char *const names[LOCK_CAUSES] = {
        [LOCK_UNKNOWN] = "unknown", [LOCK_RELEASED] = "released", [LOCK_EXPIRED] = "expired",
        [LOCK_CLOSED] = "closed",   [LOCK_BROKEN] = "broken",
    };
    assert(names[cause]);
    return names[cause];
}

clave_err clave__lock_end_causes_init(struct lock_end_causes *e, const struct clave_mem *mem,
                                      uint64_t seed)
{
    *e = (struct lock_end_causes){.mem = mem};
    list_init(&e->pending);
    list_init(&e->said);
    return clave__map_init(&e->by_token, mem, seed);
}

static void cause_free(struct lock_end_causes *e, struct said_cause *s)
{
    list_remove(&s->link);
    clave__map_remove(&e->by_token, &s->node);
    clave__mem_free(e->mem, s);
}

void clave__lock_end_causes_fini(struct lock_end_causes *e)
{
    for (struct list *at; (at = list_pop_front(&e->pending));)
        clave__mem_free(e->mem, LIST_ENTRY(at, struct lock_end, link));
    while (!list_empty(&e->said))
        cause_free(e, LIST_ENTRY(e->said.next, struct said_cause, link));
    clave__map_fini(&e->by_token);
}

/* ---- what is said ---------------------------------------------------------------------------- */

static bool cause_eq(const struct map_node *node, const void *key)
{
    const char *at = (const char *)node - offsetof(struct said_cause, node);
    return ((const struct said_cause *)(const void *)at)->token == *(const int64_t *)key;
}

static struct said_cause *cause_find(const struct lock_end_causes *e, int64_t token)
{
    struct map_node *node =
        clave__map_find(&e->by_token, clave__map_hash_u64((uint64_t)token), cause_eq, &token);
    return node ? MAP_ENTRY(node, struct said_cause, node) : NULL;
}

void clave__lock_end_causes_say(struct lock_end_causes *e, int64_t token, enum lock_cause cause)
{
    struct said_cause *s = cause_find(e, token);
    if (s) {
        s->cause = cause;
        return;
    }
    s = clave__mem_zalloc(e->mem, sizeof *s);
    if (!s)
        return;
    s->token = token;
    s->cause = cause;
    if (e->by_token.count >= MOST_SAID)
        cause_free(e, LIST_ENTRY(e->said.next, struct said_cause, link));
    list_push_back(&e->said, &s->link);
    clave__map_insert(&e->by_token, &s->node, clave__map_hash_u64((uint64_t)token));
}

void clave__lock_end_causes_suppose(struct lock_end_causes *e, int64_t token, enum lock_cause cause)
{
    if (!cause_find(e, token))
        clave__lock_end_causes_say(e, token, cause);
}

/* ---- what has ended -------------------------------------------------------------------------- */

/* Of the owner of a slot, or of one that waits for it; 0: not known. */
static uint32_t end_slot_id(const struct lock_end_causes *e, const struct lock_node *p)
{
    char id[CLAVE_SLOT_ID_MAX + 1];
    bool known = p->data && clave__identity_get_field(p->data, p->ndata, "name", id, sizeof id);
    return known ? clave__map_hash_bytes(&e->by_token, id, strlen(id)) : 0;
}

struct lock_end *clave__lock_end_causes_add(struct lock_end_causes *e, int64_t now,
                                            const struct lock_node *p, const char *path)
{
    size_t n = strlen(path) + 1;
    struct lock_end *end = clave__mem_zalloc(e->mem, sizeof *end + n);
    if (!end)
        return NULL;
    *end = (struct lock_end){.due = now + SETTLE_MS,
                             .session = p->session ? p->session->id : 0,
                             .token = p->token,
                             .kind = clave__lock_kind(p->queue),
                             .held = p->holds && !clave__lock_acquired(p->queue),
                             .kept = p->kept,
                             .left_over = p->left_over,
                             .id = end_slot_id(e, p)};
    memcpy(end->path, path, n);
    list_push_back(&e->pending, &end->link);
    return end;
}

struct lock_end *clave__lock_end_causes_take(struct lock_end_causes *e, int64_t now,
                                             const struct lock_model *m)
{
    if (list_empty(&e->pending))
        return NULL;
    struct lock_end *end = LIST_ENTRY(e->pending.next, struct lock_end, link);
    struct said_cause *said = cause_find(e, end->token);
    bool may_be_taken = end->kind == LOCK_KIND_SLOT && !end->held; /* its slot may come yet */
    if ((!said || may_be_taken) && end->due > now)
        return NULL;
    if (said) {
        end->cause = said->cause;
        cause_free(e, said);
    } else if (end->left_over) {
        end->cause = LOCK_BROKEN;
    } else if (end->kept || (end->session && clave__lock_model_has_session(m, end->session))) {
        end->cause = LOCK_RELEASED;
    }
    list_remove(&end->link);
    return end;
}

struct lock_end *clave__lock_end_causes_taken(struct lock_end_causes *e,
                                              const struct lock_node *slot, const char *path)
{
    uint32_t id = end_slot_id(e, slot);
    for (struct list *at = e->pending.next; id != 0 && at != &e->pending; at = at->next) {
        struct lock_end *end = LIST_ENTRY(at, struct lock_end, link);
        bool waited = end->kind == LOCK_KIND_SLOT && !end->held && end->id == id;
        if (!waited || end->token >= slot->token || strcmp(end->path, path) != 0)
            continue;
        list_remove(&end->link);
        return end;
    }
    return NULL;
}

void clave__lock_end_causes_free(struct lock_end_causes *e, struct lock_end *end)
{
    assert(list_empty(&end->link)); /* it was taken */
    clave__mem_free(e->mem, end);
}

int64_t clave__lock_end_causes_deadline(const struct lock_end_causes *e)
{
    return list_empty(&e->pending) ? CLAVE_NEVER
                                   : LIST_ENTRY(e->pending.next, struct lock_end, link)->due;
}
