/* session_claims.c - the claims of a session: how they are made, found and forgotten; to which of
 * them a node belongs; and the claims that another gate made or released, or this gate before it
 * was restarted. Called by the endpoints of claims, and by the session when it has listed its
 * nodes.
 *
 * A gate has a session only by its connection to the servers: another gate that attaches takes the
 * session over, and that ends the connection. So what was listed on a connection, after a commit,
 * is all that the session has for as long as that connection lasts, except for what this gate makes
 * and deletes itself. A proof lists the session's nodes once on each connection
 * (clave__claims_listed):
 *
 *   - a place that is not known here is taken up: it is read, and a claim is made of it, whose
 *     place the recipe finds by the name of the node;
 *   - a claim that waits and has no node any more ends, because it was released elsewhere. A claim
 *     that is marked as released ends, too, and its node, if it has one, is deleted;
 *   - a node that belongs to no claim here and is marked as released is deleted, because its delete
 *     was lost.
 *
 * Invariants: a session has one place for each path and owner (clave__claim_is_same_owner); a claim
 * is freed only when no callback of its recipe, and no contender of its place, can come back to
 * it. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash/siphash.h"
#include "base/memory.h"
#include "base/path.h"
#include "client/client_for_gate.h"
#include "recipe/queue/identity.h"
#include "web/session/claim.h"

/* The UUID in the name of a node comes after "_c_". */
enum { CLAIM_DATA = 8192, NODE_ID = 3, NODE_NAME = NODE_ID + CLAVE_UUID_TEXT };

/* What the name of a node says, if it belongs to a claim on some path. */
struct claim_node {
    char uuid[CLAVE_UUID_TEXT + 1];
    enum queue_kind kind; /* QUEUE_LEASE: of a semaphore, also if it queues for leases */
    bool queues;          /* it queues for leases */
    int number;
};

/* ==== whose node is it? ======================================================================= */

enum { ID_VERSION = 14, ID_OWNER = 24 }; /* where they are in a UUID */

/* The end of the ids that gates make. Their version is 8, which shows that a node is clave's. */
static const char no_owner[] = "000000000000";

/* The owner that an id names; "" is the owner of all ids that name none. */
static const char *claim_owner(const char *id)
{
    bool names = id && id[ID_VERSION] == '8' && strcmp(id + ID_OWNER, no_owner) != 0;
    return names ? id + ID_OWNER : "";
}

bool clave__claim_is_same_owner(const char *id, const char *other)
{
    return strcmp(claim_owner(id), claim_owner(other)) == 0;
}

/* A new id, which names no owner. */
static void claim_draw_id(struct rand_state *r, char out[CLAVE_UUID_TEXT + 1])
{
    clave__rand_uuid(r, out);
    memcpy(out + ID_OWNER, no_owner, sizeof no_owner);
}

/* Each permit has a name of its own, derived from the claim's id. */
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

static bool claim_node_parse(const char *path, const char *claimed, struct claim_node *out)
{
    size_t len = strlen(claimed),
           below = len > 1 ? len + 1 : 1; /* the slash after all but the root */
    if (strncmp(path, claimed, len) != 0 || path[below - 1] != '/')
        return false;
    const char *name = path + below;
    out->queues = strncmp(name, "locks/", strlen("locks/")) == 0;
    bool leased = strncmp(name, "leases/", strlen("leases/")) == 0;
    name = out->queues || leased ? strchr(name, '/') + 1 : name;
    if (strncmp(name, "_c_", NODE_ID) != 0 || strlen(name) <= NODE_NAME || strchr(name, '/'))
        return false;
    memcpy(out->uuid, name + NODE_ID, CLAVE_UUID_TEXT);
    out->uuid[CLAVE_UUID_TEXT] = '\0';
    out->kind = out->queues || leased ? QUEUE_LEASE : clave__queue_kind_of(name);
    out->number = out->queues ? -1 : claim_node_number(name);
    return true;
}

static bool claim_has_node(const struct claim *c, const struct claim_node *n)
{
    return n->kind == c->kind->queue && claim_has_name(c, n->uuid);
}

/* If there are several nodes, takes the id from the one queueing for leases, otherwise from the
 * first lease. */
static void claim_note_other(struct claim *c, const struct claim_node *n)
{
    struct claim_other *o = &c->other;
    if (o->uuid[0] && o->number <= n->number)
        return;
    memcpy(o->uuid, n->uuid, sizeof o->uuid);
    o->fits = n->kind == c->kind->queue;
    o->number = n->number;
}

static bool claim_excludes(void *place, const char *path)
{
    struct claim *c = LIST_ENTRY((struct queue_place *)place, struct claim, place);
    struct claim_node n;
    const char *id;
    if (clave__http_session_is_mark(path, &id)) {
        c->marked |= strcmp(id, c->place.uuid) == 0;
        return c->marked;
    }
    if (!claim_node_parse(path, c->path, &n) || claim_has_node(c, &n) ||
        !clave__claim_is_same_owner(n.uuid, c->place.uuid))
        return false;
    claim_note_other(c, &n);
    return true;
}

/* ==== made, found, forgotten ================================================================== */

/* ---- from the session ------------------------------------------------------------------------ */

static void claim_session_ended(struct session_part *p, clave_err why)
{
    clave__claim_end(clave__claim_of(p), why == CLAVE_OK ? CLAVE_ECLOSED : why);
}

static void claim_node_missing(struct session_part *p)
{
    clave__claim_end(clave__claim_of(p), CLAVE_ENONODE);
}

static void claim_session_elsewhere(struct session_part *p)
{
    clave__claim_went_elsewhere(clave__claim_of(p));
}

static bool claim_is_open(struct session_part *p)
{
    const struct claim *c = clave__claim_of(p);
    bool leaves = c->state == CLAIM_LEAVING && c->place.ncontenders > 0;
    return c->state == CLAIM_WANTED || leaves || c->state == CLAIM_SOUGHT;
}

/* ---- finding --------------------------------------------------------------------------------- */

struct claim *clave__claim_find(const struct http_session *s, const char *id)
{
    struct claim *found = NULL;
    for (struct claim *c = NULL; (c = clave__claim_after(s, c));) {
        bool tried =
            clave__claim_is_over(c) &&
            (c->why == CLAVE_EBUSY || c->why == CLAVE_ECONNLOSS || c->why == CLAVE_ENODEEXISTS);
        if (!tried && strcmp(c->place.uuid, id) == 0)
            found = c;
    }
    return found;
}

struct claim *clave__claim_on_path(const struct http_session *s, const char *path, const char *id)
{
    for (struct claim *c = NULL; (c = clave__claim_after(s, c));) {
        if (!clave__claim_is_over(c) && strcmp(c->path, path) == 0 &&
            clave__claim_is_same_owner(c->place.uuid, id))
            return c;
    }
    return NULL;
}

bool clave__claim_is_being_left(const struct http_session *s, const char *path, const char *id)
{
    for (struct claim *c = NULL; (c = clave__claim_after(s, c));) {
        bool is_same = id && strcmp(c->place.uuid, id) == 0;
        bool leaves = c->state == CLAIM_SOUGHT && c->why != CLAVE_ENODEEXISTS; /* made no node */
        if (leaves && strcmp(c->path, path) == 0 &&
            (is_same ||
             ((!c->placed || c->strays) && clave__claim_is_same_owner(c->place.uuid, id))))
            return true;
    }
    return false;
}

bool clave__claim_is_sought(const struct http_session *s, const char *id)
{
    for (struct claim *c = NULL; (c = clave__claim_after(s, c));) {
        if (c->state == CLAIM_SOUGHT && c->why == CLAVE_ECONNLOSS && strcmp(c->place.uuid, id) == 0)
            return true;
    }
    return false;
}

bool clave__claim_is_half_left(const struct claim *c)
{
    bool given_back = c->why == CLAVE_OK || c->why == CLAVE_ECANCELED;
    return (c->state == CLAIM_LEAVING || (c->state == CLAIM_SOUGHT && given_back)) &&
           !clave__http_session_mark_is_certain(c->part.s, c->place.uuid);
}

static void claim_say_text(char *out, size_t cap, const char *name, const char *value)
{
    snprintf(out, cap, "with \"%s\": \"%.100s\"", name, value);
}

static void claim_say_number(char *out, size_t cap, const char *name, int64_t value)
{
    if (value == 0)
        snprintf(out, cap, "without \"%s\"", name);
    else
        snprintf(out, cap, "with \"%s\": %" PRId64, name, value);
}

/* Where gates may not write SESSION_MARKS, one that has taken up a claim on an election does not
 * know its terms: then the request is believed. */
bool clave__claim_differs(const struct claim *c, const struct claim_terms *t,
                          struct claim_difference *out)
{
    bool moved = strcmp(c->path, t->path) != 0;
    bool knows = !c->kind->plain || !c->at || c->part.s->all->web->marks != MARKS_DENIED;
    const struct {
        const char *name;
        int64_t made, asked;
    } numbers[] = {
        {"limit", c->limit, t->limit},
        {"permits", c->permits ? c->permits : 1, t->permits ? t->permits : 1},
        {"max_hold_ms", c->max_hold_ms, t->max_hold_ms},
        {"depend_ms", c->depend_ms, t->depend_ms},
        {"lock_delay_ms", c->lock_delay_ms, t->lock_delay_ms},
    };
    if (moved || c->kind != t->kind) {
        const char *name = moved ? "path" : "kind";
        claim_say_text(out->made, sizeof out->made, name, moved ? c->path : c->kind->name);
        claim_say_text(out->asked, sizeof out->asked, name, moved ? t->path : t->kind->name);
        return true;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && knows; i++) {
        if (numbers[i].made == numbers[i].asked)
            continue;
        claim_say_number(out->made, sizeof out->made, numbers[i].name, numbers[i].made);
        claim_say_number(out->asked, sizeof out->asked, numbers[i].name, numbers[i].asked);
        return true;
    }
    snprintf(out->made, sizeof out->made, "%s \"revocable\"", c->revocable ? "with" : "without");
    snprintf(out->asked, sizeof out->asked, "%s \"revocable\"", t->revocable ? "with" : "without");
    return knows && c->revocable != t->revocable;
}

bool clave__claim_is_id(const char *key)
{
    for (size_t i = 0; i < CLAVE_UUID_TEXT; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (!key[i] || (dash ? key[i] != '-' : !strchr("0123456789abcdef", key[i])))
            return false;
    }
    return key[CLAVE_UUID_TEXT] == '\0';
}

/* A key that is a UUID is the id itself; from any other key a UUID is derived, the same on every
 * gate. */
void clave__claim_id_of_key(const struct http_session *s, const char *key,
                            char out[CLAVE_UUID_TEXT + 1])
{
    if (clave__claim_is_id(key)) {
        memcpy(out, key, CLAVE_UUID_TEXT + 1);
        return;
    }
    struct siphash_key k = {(uint64_t)s->id, 0x636c61766531ull};
    uint64_t a = clave__siphash(k, key, strlen(key));
    k.k1++;
    uint64_t b = clave__siphash(k, key, strlen(key));
    snprintf(out, CLAVE_UUID_TEXT + 1,
             "%08" PRIx64 "-%04" PRIx64 "-8%03" PRIx64 "-8%03" PRIx64 "-%s", a >> 32,
             a >> 16 & 0xffff, a & 0xfff, b >> 52, no_owner);
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Adds to the data of a node the terms that another gate cannot learn otherwise when it takes the
 * claim up. */
static size_t claim_put_terms(const struct claim *c, char data[CLAIM_DATA], size_t n)
{
    const struct {
        const char *key;
        int64_t value, unsaid;
    } terms[] = {{"permits", c->permits, 1},
                 {"lock_delay_ms", c->lock_delay_ms, 0},
                 {"max_hold_ms", c->max_hold_ms, 0},
                 {"depend_ms", c->depend_ms, 0}};
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
        char text[24];
        snprintf(text, sizeof text, "%" PRId64, terms[i].value);
        if (terms[i].value > terms[i].unsaid)
            n = clave__identity_put_field(data, n, CLAIM_DATA, terms[i].key, text);
    }
    return c->permits > 1 ? clave__identity_put_field(data, n, CLAIM_DATA, "claim", c->place.uuid)
                          : n;
}

enum { TERMS_PATH = sizeof CLAIM_TERMS_NOTE + CLAVE_UUID_TEXT };

static void claim_terms_path(char out[TERMS_PATH], const char *id)
{
    snprintf(out, TERMS_PATH, "%s%s", CLAIM_TERMS_NOTE, id);
}

static bool claim_has_terms(const struct claim *c)
{
    bool any = c->max_hold_ms > 0 || c->depend_ms > 0 || c->lock_delay_ms > 0 || c->revocable;
    return c->kind->plain && any && c->part.s->known;
}

static clave_err claim_note_terms(struct claim *c);

/* If the note was lost with the connection, it is sent again at once, still ahead of the place. If
 * somebody deleted the directory, that is made again too. */
static void claim_on_terms_noted(clave_async_client *client, const clave_result *res, void *arg)
{
    struct claim *c = arg;
    (void)client;
    bool lost = clave_err_classify(res->err) == CLAVE_CLASS_UNKNOWN;
    bool homeless = clave__http_session_note_is_homeless(c->part.s, res->err);
    if (clave__claim_repaid(c) && (lost || homeless) && c->state <= CLAIM_HELD)
        (void)claim_note_terms(c);
}

/* Notes the terms of a claim on an election before its place is made, so that a gate that takes the
 * place up finds them. */
static clave_err claim_note_terms(struct claim *c)
{
    const clave_identity id = {.revocable = c->revocable ? 1 : -1};
    char path[TERMS_PATH], data[CLAIM_DATA];
    if (!claim_has_terms(c))
        return CLAVE_OK;
    c->noted = true;
    claim_terms_path(path, c->place.uuid);
    size_t n = claim_put_terms(c, data, clave_identity_format(&id, data, sizeof data));
    const struct session_note note = {
        .data = data, .len = n, .done = claim_on_terms_noted, .arg = c};
    return clave__claim_owe(c, clave__http_session_note(c->part.s, path, &note));
}

/* Writes c->data, what the claim's node says: for `clave locks`, the page and the search for
 * deadlocks. */
static clave_err claim_describe(struct claim *c, const struct claim_terms *t)
{
    const struct clave_mem *mem = &c->part.s->all->web->mem;
    if (t->found.node) {
        c->len = t->found.len;
        c->data = clave__mem_strndup(mem, t->found.len > 0 ? t->found.data : "", t->found.len);
        return c->data ? CLAVE_OK : CLAVE_ENOMEM;
    }
    const clave_identity id = {.host = t->host,
                               .name = t->name,
                               .command = t->command,
                               .traceparent = t->traceparent,
                               .revocable = t->revocable ? 1 : -1};
    const char *text = t->text ? t->text : t->name;
    char data[CLAIM_DATA];
    if (!text)
        text = "";
    if (c->kind->plain) {
        c->len = strlen(text);
    } else {
        c->len = clave_identity_format(&id, data, sizeof data);
        if (t->lock_delay_ms > 0)
            c->len = clave__lock_delay_field_put(data, c->len, sizeof data);
        c->len = claim_put_terms(c, data, c->len);
        text = data;
    }
    if (c->len >= CLAIM_DATA)
        return CLAVE_ETOOBIG;
    c->data = clave__mem_strndup(mem, text, c->len);
    return c->data ? CLAVE_OK : CLAVE_ENOMEM;
}

/* Makes room for one more claim by forgetting the oldest claims that are over and for which nobody
 * waits. Returns false if the session has too many. */
static bool claim_make_room(struct http_session *s)
{
    size_t n = 0, ended = 0;
    for (struct list *l = s->parts.prev, *before; l != &s->parts; l = before) {
        struct claim *c = clave__claim_of(LIST_ENTRY(l, struct session_part, link));
        before = l->prev;
        if (c->state == CLAIM_OVER && list_empty(&c->polls) && ++ended > SESSION_ENDED_CLAIMS)
            clave__claim_free(&c->part); /* as if it had never been requested */
        else
            n++;
    }
    return n < SESSION_CLAIMS + SESSION_ENDED_CLAIMS;
}

static struct claim *claim_alloc(struct http_session *s, const struct claim_terms *t)
{
    assert(t->kind->size >= sizeof(struct claim));
    assert(!t->id || strlen(t->id) == CLAVE_UUID_TEXT);
    struct web *w = s->all->web;
    struct claim *c = clave__mem_zalloc(&w->mem, t->kind->size);
    if (!c)
        return NULL;
    c->part = (struct session_part){.s = s,
                                    .ended = claim_session_ended,
                                    .missing = claim_node_missing,
                                    .elsewhere = claim_session_elsewhere,
                                    .is_open = claim_is_open,
                                    .free = clave__claim_free};
    c->kind = t->kind;
    c->part.more = t->kind->more;
    c->proof.done = clave__claim_on_proven;
    list_init(&c->proof.link);
    list_init(&c->polls);
    list_push_back(&s->parts, &c->part.link);
    c->path = clave__mem_strdup(&w->mem, t->path);
    c->limit = t->limit;
    c->permits = t->permits;
    c->max_hold_ms = t->max_hold_ms;
    c->depend_ms = t->depend_ms;
    c->lock_delay_ms = t->lock_delay_ms;
    c->revocable = t->revocable;
    c->trying = t->trying;
    if (t->id)
        memcpy(c->place.uuid, t->id, sizeof c->place.uuid);
    else
        claim_draw_id(&w->rand, c->place.uuid);
    /* Another gate may have made this claim, and this gate may not know that yet. */
    bool has_more = s->resumed || clave__http_session_is_shared(s);
    bool listed = has_more && !clave__http_session_must_list(s) && !s->blind;
    /* A listed node that is still being read is not a claim yet: only a search finds it. */
    bool knows = listed && (t->found.node || s->taking == 0);
    bool queues = c->kind->queue != QUEUE_LEASE;
    c->place.search = s->elsewhere && (t->id || has_more) && (!knows || (t->found.node && !queues));
    c->place.below = has_more ? "/" : NULL;
    c->place.is_shared = clave__http_session_is_shared(s);
    c->limited = (t->max_hold_ms > 0 || t->depend_ms > 0) && s->known;
    clave__claim_limit_init(c);
    if (t->found.node) {
        c->at = clave__mem_strdup(&w->mem, clave__path_name(t->found.node));
        c->place.at = queues ? c->at : NULL;
        c->waited = true; /* whether it is held now is being asked */
        c->noted = claim_has_terms(c);
    }
    c->place.excludes = claim_excludes;
    c->place.unused = clave__claim_place_unused;
    return c;
}

clave_err clave__claim_new(struct http_session *s, const struct claim_terms *t, struct claim **out)
{
    *out = NULL;
    assert(!t->kind->misfit(t));
    assert(s->client);
    if (clave__path_fault(t->path, strlen(t->path), false))
        return CLAVE_EPATH;
    if (clave__claim_is_being_left(s, t->path, t->id))
        return CLAVE_EINUSE;
    if (!claim_make_room(s))
        return CLAVE_EQUOTA;
    struct claim *c = claim_alloc(s, t);
    if (!c)
        return CLAVE_ENOMEM;
    clave_err err = c->path && (!t->found.node || c->at) ? claim_describe(c, t) : CLAVE_ENOMEM;
    clave_async_client_tick(s->client, s->all->web->now);
    if (err == CLAVE_OK && s->state != HTTP_SESSION_LIVE)
        err = CLAVE_ECLOSED; /* its time ran out just now */
    if (err == CLAVE_OK && !t->found.node)
        err = claim_note_terms(c);
    if (err == CLAVE_OK)
        err = c->kind->begin(c);
    if (err != CLAVE_OK) {
        clave__claim_free(&c->part);
        return err;
    }
    clave__http_session_flush(s);
    *out = c;
    return CLAVE_OK;
}

/* ==== what another gate made ================================================================== */

/* ---- taking up ------------------------------------------------------------------------------- */

/* A node of the session that belongs to no claim here, while its data are read. */
struct claim_found {
    struct http_session *s;
    char uuid[CLAVE_UUID_TEXT + 1]; /* the claim's id */
    char *data; /* of an election: the data of the node, while its terms are read */
    size_t len;
    char node[];
};

/* A number among the terms, which this gate can only learn from the node, since another gate got
 * the request. */
static int64_t claim_found_number(const clave_result *res, const char *key)
{
    char text[24];
    return clave__identity_get_field(res->data, res->len, key, text, sizeof text)
               ? clave__identity_number(text)
               : 0;
}

static const struct claim_kind *claim_kind_of_nodes(enum queue_kind queue)
{
    const struct claim_kind *const *k = clave__claim_kinds;
    while (*k && (*k)->queue != queue)
        k++;
    return *k;
}

/* The length of the path that is claimed. For a semaphore that is the parent of `locks` or
 * `leases`. 0: the node is not of a claim. */
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

/* Works out what is claimed, and on which path; `res` has the terms. The caller frees *path, which
 * is NULL if the node does not belong to a claim. ENOMEM. */
static clave_err claim_found_terms(const struct claim_found *f, const clave_result *place,
                                   const clave_result *res, struct claim_terms *t, char **path)
{
    const struct clave_mem *mem = &f->s->all->web->mem;
    clave_identity said = {.limit = 0};
    enum queue_kind queue = QUEUE_OTHER;
    *path = NULL;
    char *text = clave__mem_strndup(mem, res->len > 0 ? res->data : "", res->len);
    if (!text)
        return CLAVE_ENOMEM;
    clave__identity_parse(text, res->len, &said);
    size_t n = claim_found_path(f, said.limit, &queue);
    *path = n > 0 ? clave__mem_strndup(mem, f->node, n) : NULL;
    *t = (struct claim_terms){.path = *path,
                              .kind = claim_kind_of_nodes(queue),
                              .limit = queue == QUEUE_LEASE ? said.limit : 0,
                              .permits = (uint32_t)claim_found_number(res, "permits"),
                              .lock_delay_ms = claim_found_number(res, "lock_delay_ms"),
                              .max_hold_ms = claim_found_number(res, "max_hold_ms"),
                              .depend_ms = claim_found_number(res, "depend_ms"),
                              .revocable = said.revocable > 0,
                              .id = f->uuid,
                              .found = {.node = f->node, .data = place->data, .len = place->len}};
    clave__mem_free(mem, text);
    return n > 0 && !*path ? CLAVE_ENOMEM : CLAVE_OK;
}

static void claim_on_found_gone(clave_async_client *client, const clave_result *res, void *arg);

/* Deletes the node of a claim that was released: its first delete was lost, and nobody else repeats
 * it. Returns false if the delete cannot be sent. */
static bool claim_found_delete(struct claim_found *f)
{
    return clave_async_delete(f->s->client, f->node, -1, claim_on_found_gone, f) == CLAVE_OK;
}

/* Takes up the claim of a node that was found. `res` is the place, or the note with its terms.
 * Returns true if the claim was marked as released, and the delete of the node is under way. */
static bool claim_found_take(struct claim_found *f, const clave_result *place,
                             const clave_result *res)
{
    struct http_session *s = f->s;
    struct claim_terms t;
    struct claim *c;
    char id[CLAVE_UUID_TEXT + 1];
    /* If a claim has several leases, each of them says to which claim it belongs. */
    if (clave__identity_get_field(res->data, res->len, "claim", id, sizeof id) &&
        clave__claim_is_id(id))
        memcpy(f->uuid, id, sizeof f->uuid);
    if (clave__http_session_has_mark(s, f->uuid))
        return claim_found_delete(f);
    char *path;
    clave_err err = claim_found_terms(f, place, res, &t, &path);
    const struct claim *known = path ? clave__claim_on_path(s, path, f->uuid) : NULL;
    bool taken = known && strcmp(known->place.uuid, f->uuid) == 0; /* it was taken up by another of
                                                                    * its nodes */
    if (path && !taken && t.kind && !t.kind->misfit(&t))
        err = clave__claim_new(s, &t, &c);
    if (err != CLAVE_OK) /* for example while an older claim on that path is being released */
        s->listed_on = 0;
    clave__mem_free(&s->all->web->mem, path);
    return false;
}

static void claim_found_end(struct claim_found *f)
{
    struct http_session *s = f->s;
    clave__mem_free(&s->all->web->mem, f->data);
    clave__mem_free(&s->all->web->mem, f);
    clave__http_session_taken(s);
}

static void claim_on_found_gone(clave_async_client *client, const clave_result *res, void *arg)
{
    struct claim_found *f = arg;
    (void)client;
    if (res->err != CLAVE_OK && res->err != CLAVE_ENONODE)
        f->s->listed_on = 0;
    claim_found_end(f);
}

static void claim_on_found_terms(clave_async_client *client, const clave_result *res, void *arg)
{
    struct claim_found *f = arg;
    const clave_result place = {.data = f->data, .len = f->len};
    bool own = res->err == CLAVE_OK && res->stat->ephemeral_owner == f->s->id;
    bool goes_on = res->err == CLAVE_OK || res->err == CLAVE_ENONODE;
    (void)client;
    if (!goes_on)
        f->s->listed_on = 0;
    goes_on &= f->s->state == HTTP_SESSION_LIVE;
    if (!goes_on || !claim_found_take(f, &place, own ? res : &place))
        claim_found_end(f);
}

/* The node is a place in an election: reads the note with its terms. Returns false if that request
 * cannot be made; then the listing is repeated. */
static bool claim_found_read_terms(struct claim_found *f, const clave_result *res)
{
    char path[TERMS_PATH];
    claim_terms_path(path, f->uuid);
    f->data = clave__mem_strndup(&f->s->all->web->mem, res->len > 0 ? res->data : "", res->len);
    f->len = res->len;
    bool asked =
        f->data && clave_async_get(f->s->client, path, NULL, claim_on_found_terms, f) == CLAVE_OK;
    if (!asked)
        f->s->listed_on = 0;
    return asked;
}

static void claim_on_found(clave_async_client *client, const clave_result *res, void *arg)
{
    struct claim_found *f = arg;
    bool own = res->err == CLAVE_OK && res->stat->ephemeral_owner == f->s->id;
    (void)client;
    if (res->err != CLAVE_OK && res->err != CLAVE_ENONODE && res->err != CLAVE_ENOAUTH)
        f->s->listed_on = 0;
    bool plain = clave__queue_kind_of(clave__path_name(f->node)) == QUEUE_LATCH;
    if (!own || f->s->state != HTTP_SESSION_LIVE)
        claim_found_end(f);
    else if (plain ? !claim_found_read_terms(f, res) : !claim_found_take(f, res, res))
        claim_found_end(f);
}

static void claim_find_terms(struct http_session *s, const char *node, const char *uuid)
{
    const struct clave_mem *mem = &s->all->web->mem;
    struct claim_found *f = clave__mem_zalloc(mem, sizeof *f + strlen(node) + 1);
    clave_err err = f ? CLAVE_OK : CLAVE_ENOMEM;
    if (f) {
        f->s = s;
        memcpy(f->node, node, strlen(node) + 1);
        memcpy(f->uuid, uuid, CLAVE_UUID_TEXT);
        err = clave_async_get(s->client, f->node, NULL, claim_on_found, f);
    }
    if (err == CLAVE_OK) {
        s->taking++;
        return;
    }
    s->listed_on = 0;
    clave__mem_free(mem, f);
}

/* ---- the listing ----------------------------------------------------------------------------- */

/* The claim here to which this node belongs; that may be one that has ended and is still deleting
 * the node. NULL: none. */
static struct claim *claim_of_node(const struct http_session *s, const char *path)
{
    for (struct list *l = s->parts.prev; l != &s->parts; l = l->prev) {
        struct claim *c = clave__claim_of(LIST_ENTRY(l, struct session_part, link));
        struct claim_node n;
        if (c->state != CLAIM_OVER && claim_node_parse(path, c->path, &n) && claim_has_node(c, &n))
            return c;
    }
    return NULL;
}

static void claim_take_listed(struct http_session *s, const char *path)
{
    const char *name = clave__path_name(path);
    enum queue_kind kind = clave__queue_kind_of(name);
    char uuid[CLAVE_UUID_TEXT + 1] = "";
    struct claim *c = claim_of_node(s, path);
    if (c) {
        c->there = true;
        c->left_there |= clave__claim_is_over(c);
        c->leased |= clave__claim_waits(c) && kind == QUEUE_LEASE;
        if (clave__http_session_has_mark(s, c->place.uuid))
            clave__claim_release(c); /* it was released by another gate, which did not know of this
                                      * node */
        return;
    }
    if (strncmp(name, "_c_", NODE_ID) != 0 || strlen(name) <= NODE_ID + CLAVE_UUID_TEXT ||
        kind == QUEUE_OTHER)
        return;
    memcpy(uuid, name + NODE_ID, CLAVE_UUID_TEXT);
    claim_find_terms(s, path, uuid);
}

/* The node of the claim should have been listed, and was not. The proof itself checks only what is
 * held. */
static bool claim_is_missing(const struct claim *c)
{
    bool looked_for = c->state > CLAIM_WANTED && c->state < CLAIM_HELD;
    return !c->there && (looked_for || c->state == CLAIM_SPENT);
}

static void claims_end_missing(struct http_session *s)
{
    struct list round, *l;
    list_init(&round);
    list_splice(&round, &s->parts);
    while ((l = list_pop_front(&round))) {
        list_push_back(&s->parts, l);
        struct claim *c = clave__claim_of(LIST_ENTRY(l, struct session_part, link));
        bool marked = clave__http_session_has_mark(s, c->place.uuid);
        if (clave__claim_is_over(c) && c->why == CLAVE_ENONODE && marked)
            c->why = CLAVE_OK; /* the proof did not know why the node was gone */
        if (claim_is_missing(c))
            clave__claim_end(c, marked ? CLAVE_OK : CLAVE_ENONODE);
    }
}

/* ---- notes ---- */

/* One of the listed nodes is a place of this claim, even if the claim is not known here. */
static bool claim_is_listed(struct http_session *s, const clave_result *res, const char *id)
{
    for (size_t i = 0; i < res->nnames; i++) {
        const char *path = clave__client_own_path(s->client, res->names[i]);
        const char *name = path ? clave__path_name(path) : "";
        if (strncmp(name, "_c_", NODE_ID) == 0 && strncmp(name + NODE_ID, id, CLAVE_UUID_TEXT) == 0)
            return true;
    }
    return false;
}

/* Returns false if the node is not a note. A note of a claim that exists no longer is deleted. */
static bool claims_look_at_note(struct http_session *s, const clave_result *res, const char *path)
{
    size_t nterms = sizeof CLAIM_TERMS_NOTE - 1, nhold = sizeof CLAIM_HOLD_NOTE - 1;
    bool terms = strncmp(path, CLAIM_TERMS_NOTE, nterms) == 0, known = false;
    if (!terms && strncmp(path, CLAIM_HOLD_NOTE, nhold) != 0)
        return false;
    char id[CLAVE_UUID_TEXT + 1];
    snprintf(id, sizeof id, "%s", path + (terms ? nterms : nhold));
    for (struct claim *c = NULL; (c = clave__claim_after(s, c));) {
        bool of_it = c->state != CLAIM_OVER && strcmp(c->place.uuid, id) == 0;
        known |= of_it;
        c->noted |= of_it && terms;
    }
    if (!known && !claim_is_listed(s, res, id))
        (void)clave_async_delete(s->client, path, -1, NULL, NULL);
    return true;
}

/* On a new connection: writes the notes of terms that are missing, and learns when limited holds
 * end. */
static void claims_learn(struct http_session *s, bool listed)
{
    for (struct claim *c = NULL; (c = clave__claim_after(s, c));) {
        if (listed && !c->noted && c->state <= CLAIM_HELD)
            (void)claim_note_terms(c); /* if there is no memory, the next listing shows that it is
                                        * missing */
        clave__claim_on_connection(c);
    }
}

/* ---- all of it ---- */

void clave__claims_listed(struct http_session *s, const clave_result *res)
{
    const char *path, *id;
    if (res->err != CLAVE_OK) { /* the servers list nothing */
        claims_learn(s, false);
        return;
    }
    for (struct claim *c = NULL; (c = clave__claim_after(s, c));) {
        c->there = c->leased = c->noted = false;
    }
    for (size_t i = 0; i < res->nnames; i++) {
        path = clave__client_own_path(s->client, res->names[i]);
        if (!path || !clave__http_session_is_mark(path, &id))
            continue;
        (void)clave__http_session_mark(s, id);
        clave__http_session_mark_stands(s, id);
    }
    for (size_t i = 0; i < res->nnames; i++) {
        path = clave__client_own_path(s->client, res->names[i]);
        if (path && !clave__http_session_is_mark(path, &id) && !claims_look_at_note(s, res, path))
            claim_take_listed(s, path);
    }
    claims_end_missing(s);
    claims_learn(s, true);
    clave__http_session_trim_marks(s);
}
