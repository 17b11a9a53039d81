/* claim_nodes.c - see claim_nodes.h. Called by the table of claims, by claim_elsewhere.c and by the
 * endpoint that gives claims back. */
#include "web/session/claim_nodes.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK_PREFIX CLAIM_MARKS "/gone-"
enum { MARK_MS = 60000, FEW_MARKS = 64, MOST_MARKS = 4096 };
enum { NODE_NAME = CLAIM_NODE_ID + CLAVE_UUID_TEXT };

/* ---- claims that were given back ------------------------------------------------------------- */

struct claim_mark {
    struct list link;
    char uuid[CLAVE_UUID_TEXT + 1];
    int64_t at; /* when it was learnt of here */
};

static struct claim_mark *claim_mark_find(const struct http_session *s, const char *id)
{
    for (struct list *l = s->marks.prev; l != &s->marks; l = l->prev) {
        struct claim_mark *m = LIST_ENTRY(l, struct claim_mark, link);
        if (strcmp(m->uuid, id) == 0)
            return m;
    }
    return NULL;
}

bool clave__claim_is_marked(const struct http_session *s, const char *id)
{
    return claim_mark_find(s, id) != NULL;
}

static void claim_mark_drop(struct http_session *s, struct claim_mark *m)
{
    list_remove(&m->link);
    s->nmarks--;
    clave__mem_free(&s->all->web->mem, m);
}

void clave__claim_marks_free(struct http_session *s)
{
    while (!list_empty(&s->marks))
        claim_mark_drop(s, LIST_ENTRY(s->marks.next, struct claim_mark, link));
}

clave_err clave__claim_mark_note(struct http_session *s, const char *id)
{
    struct web *w = s->all->web;
    struct claim_mark *m = claim_mark_find(s, id);
    assert(strlen(id) == CLAVE_UUID_TEXT);
    if (m)
        return CLAVE_OK;
    m = clave__mem_zalloc(&w->mem, sizeof *m);
    if (!m)
        return CLAVE_ENOMEM;
    memcpy(m->uuid, id, sizeof m->uuid);
    m->at = w->now;
    list_push_back(&s->marks, &m->link);
    s->nmarks++;
    return CLAVE_OK;
}

static void claim_mark_path(char out[sizeof MARK_PREFIX + CLAVE_UUID_TEXT], const char *id)
{
    snprintf(out, sizeof MARK_PREFIX + CLAVE_UUID_TEXT, "%s%s", MARK_PREFIX, id);
}

clave_err clave__claim_mark_send(struct http_session *s, const char *id, clave_result_cb *cb,
                                 void *arg)
{
    clave_create_options o = CLAVE_CREATE_OPTIONS_INIT;
    char path[sizeof MARK_PREFIX + CLAVE_UUID_TEXT];
    o.mode = CLAVE_EPHEMERAL;
    claim_mark_path(path, id);
    return clave_async_create(s->client, path, NULL, 0, &o, cb, arg);
}

/* The oldest go when there are many. Their deletes need not succeed: one that fails is named by the
 * next listing. */
void clave__claim_marks_trim(struct http_session *s)
{
    int64_t now = s->all->web->now;
    bool at_servers = clave__http_session_is_shared(s);
    while (s->nmarks > FEW_MARKS) {
        struct claim_mark *m = LIST_ENTRY(s->marks.next, struct claim_mark, link);
        char path[sizeof MARK_PREFIX + CLAVE_UUID_TEXT];
        if (m->at + MARK_MS > now && s->nmarks <= MOST_MARKS)
            return;
        claim_mark_path(path, m->uuid);
        if (at_servers && clave_async_delete(s->client, path, -1, NULL, NULL) != CLAVE_OK)
            return;
        claim_mark_drop(s, m);
    }
}

bool clave__claim_is_mark(const char *path, const char **id)
{
    size_t n = sizeof MARK_PREFIX - 1;
    *id = path + n;
    return strncmp(path, MARK_PREFIX, n) == 0 && strlen(path) == n + CLAVE_UUID_TEXT;
}

/* ---- whose node is it? ----------------------------------------------------------------------- */

enum { ID_VERSION = 14, ID_OWNER = 24 }; /* where these stand */

/* "" is the owner of all that name none. */
static const char *claim_owner(const char *id)
{
    return id && id[ID_VERSION] == '8' ? id + ID_OWNER : "";
}

bool clave__claim_is_same_owner(const char *id, const char *other)
{
    return strcmp(claim_owner(id), claim_owner(other)) == 0;
}

void clave__claim_draw_id(struct rand_state *r, char out[CLAVE_UUID_TEXT + 1])
{
    clave__rand_uuid(r, out);
    out[ID_VERSION] = '4';
}

/* Each permit has a name of its own, made of the claim's id. */
static bool claim_has_name(const struct claim *c, const char *uuid)
{
    size_t n = c->permits ? c->permits : 1;
    for (size_t i = 0; i < n; i++) {
        char one[CLAVE_UUID_TEXT + 1];
        memcpy(one, c->place.uuid, sizeof one);
        clave__uuid_mix(one, i, 0);
        if (strcmp(one, uuid) == 0)
            return true;
    }
    return false;
}

/* The number in "_c_<uuid>-lock-0000000001". */
static int claim_node_number(const char *name)
{
    const char *dash = strrchr(name, '-');
    return dash ? atoi(dash + 1) : 0;
}

bool clave__claim_node_parse(const char *path, const char *claimed, struct claim_node *out)
{
    size_t len = strlen(claimed),
           below = len > 1 ? len + 1 : 1; /* the slash after all but the root */
    if (strncmp(path, claimed, len) != 0 || path[below - 1] != '/')
        return false;
    const char *name = path + below;
    out->queues = strncmp(name, "locks/", strlen("locks/")) == 0;
    bool leased = strncmp(name, "leases/", strlen("leases/")) == 0;
    name = out->queues || leased ? strchr(name, '/') + 1 : name;
    if (strncmp(name, "_c_", CLAIM_NODE_ID) != 0 || strlen(name) <= NODE_NAME || strchr(name, '/'))
        return false;
    memcpy(out->uuid, name + CLAIM_NODE_ID, CLAVE_UUID_TEXT);
    out->uuid[CLAVE_UUID_TEXT] = '\0';
    out->kind = out->queues || leased ? QUEUE_LEASE : clave__queue_kind_of(name);
    out->number = out->queues ? -1 : claim_node_number(name);
    return true;
}

bool clave__claim_has_node(const struct claim *c, const struct claim_node *n)
{
    return n->kind == c->kind->queue && claim_has_name(c, n->uuid);
}

/* Of several nodes the first tells the id: that which queues for leases, else the first lease. */
static void claim_note_other(struct claim *c, const struct claim_node *n)
{
    struct claim_other *o = &c->other;
    if (o->uuid[0] && o->number <= n->number)
        return;
    memcpy(o->uuid, n->uuid, sizeof o->uuid);
    o->fits = n->kind == c->kind->queue;
    o->number = n->number;
}

bool clave__claim_excludes(void *place, const char *path)
{
    struct claim *c = LIST_ENTRY((struct queue_place *)place, struct claim, place);
    struct claim_node n;
    const char *id;
    if (clave__claim_is_mark(path, &id)) {
        c->marked |= strcmp(id, c->place.uuid) == 0;
        return c->marked;
    }
    if (!clave__claim_node_parse(path, c->path, &n) || clave__claim_has_node(c, &n) ||
        !clave__claim_is_same_owner(n.uuid, c->place.uuid))
        return false;
    claim_note_other(c, &n);
    return true;
}
