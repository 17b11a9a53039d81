/* claim_elsewhere.c - what a session has that another gate made, or this one before it was
 * restarted. A connection to the servers is all that makes a gate the session's: another gate that
 * attaches takes it away. So what was listed on a connection, behind a commit, stays all that there
 * is for as long as that connection lasts, but for what this gate makes and deletes itself. A proof
 * (http_session_confirm.c) lists it once a connection:
 *
 *   - a place that is not known here is taken up: read, and made a claim of, which the recipe finds
 *     at the name of its node;
 *   - a claim that waits and has no node any more ends: it was given back elsewhere;
 *   - the node of a claim that is marked as given back (claim_nodes.c) is deleted: its delete was
 *     lost.
 *
 * Called by the session when it has listed its nodes. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "client/client_for_gate.h"
#include "recipe/queue/identity.h"
#include "recipe/queue/queue_kind.h"
#include "web/session/claim.h"
#include "web/session/claim_nodes.h"
#include "web/session/kinds/claim_kinds.h"

/* ---- taking up ------------------------------------------------------------------------------- */

/* A node of the session that no claim here has, while what it says is read. */
struct claim_found {
    struct http_session *s;
    char uuid[CLAVE_UUID_TEXT + 1]; /* the claim's id */
    /* While max_hold_ms is measured: what the node said, when it was granted by the servers' clock,
     * and when that was asked by ours. */
    char *data;
    size_t len;
    int64_t granted, asked, ends_at;
    char node[];
};

/* What of its terms only its node tells, since another gate has them from the request. */
static int64_t claim_found_number(const clave_result *res, const char *key)
{
    char text[24];
    return clave__identity_get_field(res->data, res->len, key, text, sizeof text)
               ? clave__identity_number(text)
               : 0;
}

static const struct claim_kind *claim_found_kind(enum queue_kind kind)
{
    static const struct claim_kind *const kinds[] = {&clave__lock_claim, &clave__read_claim,
                                                     &clave__write_claim, &clave__semaphore_claim,
                                                     &clave__election_claim};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i]->queue == kind)
            return kinds[i];
    return NULL;
}

/* The length of the path that is claimed: of a semaphore the directory above. */
static size_t claim_found_path(const struct claim_found *f, uint32_t limit, enum queue_kind *kind)
{
    const char *name = clave__path_name(f->node);
    size_t n = clave__path_parent_len(f->node, strlen(f->node));
    size_t locks = strlen("/locks"), leases = strlen("/leases");
    *kind = clave__queue_kind_of(name);
    bool queues = *kind == QUEUE_LOCK && limit > 0 && n >= locks &&
                  strncmp(f->node + n - locks, "/locks", locks) == 0;
    bool leased = *kind == QUEUE_LEASE && n >= leases &&
                  strncmp(f->node + n - leases, "/leases", leases) == 0;
    if (!queues && !leased)
        return *kind == QUEUE_LEASE ? 0 : n;
    *kind = QUEUE_LEASE;
    n = clave__path_parent_len(f->node, n);
    return n > 0 ? n : 1;
}

/* The claim is on this path; NULL: the node is of none. */
static char *claim_found_terms(const struct claim_found *f, const clave_result *res,
                               struct claim_terms *t)
{
    const struct clave_mem *mem = &f->s->all->web->mem;
    clave_identity said = {.limit = 0};
    enum queue_kind queue = QUEUE_OTHER;
    char *text = clave__mem_strndup(mem, res->len > 0 ? res->data : "", res->len);
    if (!text)
        return NULL;
    clave__identity_parse(text, res->len, &said);
    size_t n = claim_found_path(f, said.limit, &queue);
    char *path = n > 0 ? clave__mem_strndup(mem, f->node, n) : NULL;
    *t = (struct claim_terms){
        .path = path,
        .kind = claim_found_kind(queue),
        .limit = queue == QUEUE_LEASE ? said.limit : 0,
        .permits = (uint32_t)claim_found_number(res, "permits"),
        .lock_delay_ms = claim_found_number(res, "lock_delay_ms"),
        .max_hold_ms = claim_found_number(res, "max_hold_ms"),
        .revocable = said.revocable > 0,
        .id = f->uuid,
        .found = {.node = f->node, .data = res->data, .len = res->len, .ends_at = f->ends_at}};
    clave__mem_free(mem, text);
    return path;
}

static void claim_on_found_gone(clave_async_client *client, const clave_result *res, void *arg);

/* It was given back, but the delete of its node was lost: nobody else makes that any more. */
static bool claim_found_delete(struct claim_found *f)
{
    return clave_async_delete(f->s->client, f->node, -1, claim_on_found_gone, f) == CLAVE_OK;
}

/* true: its delete is under way. */
static bool claim_found_take(struct claim_found *f, const clave_result *res)
{
    struct http_session *s = f->s;
    struct claim_terms t;
    struct claim *c;
    char id[CLAVE_UUID_TEXT + 1];
    /* One of several leases says which claim they are of. */
    if (clave__identity_get_field(res->data, res->len, "claim", id, sizeof id) &&
        clave__claim_is_id(id))
        memcpy(f->uuid, id, sizeof f->uuid);
    if (clave__claim_is_marked(s, f->uuid))
        return claim_found_delete(f);
    char *path = claim_found_terms(f, res, &t);
    const struct claim *known = path ? clave__claim_on_path(s, path, f->uuid) : NULL;
    bool taken = known && strcmp(known->place.uuid, f->uuid) == 0; /* by another of its nodes */
    if (path && !taken && t.kind && !t.kind->misfit(&t))
        (void)clave__claim_new(s, &t, &c); /* else it is looked for on the next connection */
    clave__mem_free(&s->all->web->mem, path);
    return false;
}

static void claim_found_end(struct claim_found *f)
{
    struct http_session *s = f->s;
    clave__mem_free(&s->all->web->mem, f->data);
    clave__mem_free(&s->all->web->mem, f);
    assert(s->taking > 0);
    if (--s->taking == 0 && s->state == HTTP_SESSION_LIVE)
        clave__http_session_known(s);
}

static void claim_on_found_gone(clave_async_client *client, const clave_result *res, void *arg)
{
    struct claim_found *f = arg;
    (void)client;
    if (res->err != CLAVE_OK && res->err != CLAVE_ENONODE)
        f->s->looked_on = 0;
    claim_found_end(f);
}

/* ---- for how long it has been held ---- */

/* By the servers' clock alone: the time of a write, which says when it was granted, for the next
 * gate, less that of the write by which the granting gate said so. From when it was asked for, so
 * the hold ends early by a round trip at most. */
static void claim_on_measured(clave_async_client *client, const clave_result *res, void *arg)
{
    struct claim_found *f = arg;
    struct http_session *s = f->s;
    clave_result said = {.err = res->err, .data = f->data, .len = f->len};
    (void)client;
    if (res->err == CLAVE_OK && s->state == HTTP_SESSION_LIVE) {
        int64_t held = res->stat->mtime - f->granted;
        f->ends_at = f->asked + claim_found_number(&said, "max_hold_ms") - (held > 0 ? held : 0);
        if (claim_found_take(f, &said))
            return;
    } else if (res->err != CLAVE_ENONODE) {
        s->looked_on = 0;
    }
    claim_found_end(f);
}

static bool claim_found_measure(struct claim_found *f, const clave_result *res)
{
    const struct clave_mem *mem = &f->s->all->web->mem;
    char field[48];
    int64_t since = claim_found_number(res, "since");
    bool limited = claim_found_number(res, "max_hold_ms") > 0 &&
                   (since > 0 || claim_found_number(res, CLAIM_GRANTED) > 0);
    if (!limited)
        return false;
    f->granted = since > 0 ? since : res->stat->mtime;
    int n = since > 0 ? 0 : snprintf(field, sizeof field, "since=%" PRId64 "\n", f->granted);
    f->data = clave__mem_alloc(mem, res->len + sizeof field);
    if (!f->data)
        return false;
    memcpy(f->data, res->data, res->len);
    memcpy(f->data + res->len, field, (size_t)n);
    f->len = res->len + (size_t)n;
    f->asked = f->s->all->web->now;
    return clave_async_set(f->s->client, f->node, f->data, f->len, res->stat->version,
                           claim_on_measured, f) == CLAVE_OK;
}

static void claim_on_found(clave_async_client *client, const clave_result *res, void *arg)
{
    struct claim_found *f = arg;
    bool own = res->err == CLAVE_OK && res->stat->ephemeral_owner == f->s->id;
    (void)client;
    if (res->err != CLAVE_OK && res->err != CLAVE_ENONODE && res->err != CLAVE_ENOAUTH)
        f->s->looked_on = 0;
    bool goes_on = own && f->s->state == HTTP_SESSION_LIVE;
    if (goes_on && claim_found_measure(f, res))
        return;
    if (!goes_on || !claim_found_take(f, res))
        claim_found_end(f);
}

static void claim_find_terms(struct http_session *s, const char *node, const char *uuid)
{
    const struct clave_mem *mem = &s->all->web->mem;
    struct claim_found *f = clave__mem_zalloc(mem, sizeof *f + strlen(node) + 1);
    if (!f)
        return;
    f->s = s;
    f->ends_at = CLAVE_NEVER;
    memcpy(f->node, node, strlen(node) + 1);
    memcpy(f->uuid, uuid, CLAVE_UUID_TEXT);
    if (clave_async_get(s->client, f->node, NULL, claim_on_found, f) == CLAVE_OK)
        s->taking++;
    else
        clave__mem_free(mem, f);
}

/* ---- the listing ----------------------------------------------------------------------------- */

/* The claim here that this node is of; one that has ended may still delete it. NULL: none. */
static struct claim *claim_of_node(const struct http_session *s, const char *path)
{
    for (struct list *l = s->parts.prev; l != &s->parts; l = l->prev) {
        struct claim *c = clave__claim_of(LIST_ENTRY(l, struct session_part, link));
        struct claim_node n;
        bool over = c->state == CLAIM_ENDED && c->place.ncontenders == 0;
        if (!over && clave__claim_node_parse(path, c->path, &n) && clave__claim_has_node(c, &n))
            return c;
    }
    return NULL;
}

static void claim_look_at(struct http_session *s, const char *path)
{
    const char *name = clave__path_name(path);
    enum queue_kind kind = clave__queue_kind_of(name);
    char uuid[CLAVE_UUID_TEXT + 1] = "";
    struct claim *c = claim_of_node(s, path);
    if (c) {
        c->there = true;
        return;
    }
    if (strncmp(name, "_c_", CLAIM_NODE_ID) != 0 ||
        strlen(name) <= CLAIM_NODE_ID + CLAVE_UUID_TEXT || kind == QUEUE_OTHER)
        return;
    memcpy(uuid, name + CLAIM_NODE_ID, CLAVE_UUID_TEXT);
    claim_find_terms(s, path, uuid);
}

/* Its node is known, and is not there: only what is held is checked by the proof itself. */
static bool claim_is_missing(const struct claim *c)
{
    bool placed = c->state == CLAIM_WAITING && c->placed;
    return !c->there && (placed || c->state == CLAIM_DELAYED || c->state == CLAIM_PROVING);
}

static void claims_end_missing(struct http_session *s)
{
    struct list round, *l;
    list_init(&round);
    list_splice(&round, &s->parts);
    while ((l = list_pop_front(&round))) {
        list_push_back(&s->parts, l);
        struct claim *c = clave__claim_of(LIST_ENTRY(l, struct session_part, link));
        bool marked = clave__claim_is_marked(s, c->place.uuid);
        if (c->state == CLAIM_ENDED && c->why == CLAVE_ENONODE && marked)
            c->why = CLAVE_OK; /* the proof did not know why its node was gone */
        if (claim_is_missing(c))
            clave__claim_end(c, marked ? CLAVE_OK : CLAVE_ENONODE);
    }
}

void clave__claims_look(struct http_session *s, const clave_result *res)
{
    const char *path, *id;
    for (struct list *l = s->parts.next; l != &s->parts; l = l->next)
        clave__claim_of(LIST_ENTRY(l, struct session_part, link))->there = false;
    for (size_t i = 0; i < res->nnames; i++) {
        path = clave__client_own_path(s->client, res->names[i]);
        if (path && clave__claim_is_mark(path, &id))
            (void)clave__claim_mark_note(s, id);
    }
    for (size_t i = 0; i < res->nnames; i++) {
        path = clave__client_own_path(s->client, res->names[i]);
        if (path && !clave__claim_is_mark(path, &id))
            claim_look_at(s, path);
    }
    claims_end_missing(s);
    clave__claim_marks_trim(s);
}
