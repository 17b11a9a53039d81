/* election_terms.c - the elections of a tree over time (election_terms.h). What must stay true:
 * only the last term of an election may be unfinished. */
#include "observe/election_terms.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/hash/siphash.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "observe/lock_json.h"
#include "observe/lock_who.h"

enum { MOST_ELECTIONS = 10000, MOST_TERMS = 32 };

static const char value_suffix[] = "-value";

/* ---- elections ------------------------------------------------------------------------------- */

static int election_compare(const void *key, const struct ordered_node *node)
{
    return strcmp(key, ORDERED_ENTRY(node, struct election, node)->path);
}

void clave__election_model_init(struct election_model *m, const struct clave_mem *mem,
                                uint64_t seed)
{
    *m = (struct election_model){.mem = mem};
    clave__ordered_init(&m->elections, election_compare, seed);
    list_init(&m->changed);
}

static void election_free(struct election_model *m, struct election *e)
{
    clave__ordered_remove(&m->elections, e->path);
    list_remove(&e->in_changed);
    for (struct list *at; (at = list_pop_front(&e->terms));)
        clave__mem_free(m->mem, LIST_ENTRY(at, struct election_term, link));
    clave__mem_free(m->mem, e->value);
    clave__mem_free(m->mem, e);
}

void clave__election_model_fini(struct election_model *m)
{
    for (struct ordered_node *n; (n = clave__ordered_first(&m->elections, ORDERED_ANY));)
        election_free(m, ORDERED_ENTRY(n, struct election, node));
}

struct election *clave__election_find(const struct election_model *m, const char *path)
{
    struct ordered_node *n = clave__ordered_find(&m->elections, path);
    return n ? ORDERED_ENTRY(n, struct election, node) : NULL;
}

struct election *clave__election_after(const struct election_model *m, const char *path)
{
    struct ordered_node *n = clave__ordered_after(&m->elections, path, ORDERED_ANY);
    return n ? ORDERED_ENTRY(n, struct election, node) : NULL;
}

static void election_changed(struct election_model *m, struct election *e)
{
    list_remove(&e->in_changed);
    list_push_back(&m->changed, &e->in_changed);
}

void clave__election_clear(struct election_model *m)
{
    for (struct election *e = NULL; (e = clave__election_after(m, e ? e->path : ""));) {
        clave__mem_free(m->mem, e->value);
        e->value = NULL;
        e->nvalue = 0;
        e->over = true; /* until its node is reported */
        election_changed(m, e);
    }
}

/* Finds the election, or makes it. NULL: no memory. */
static struct election *election_at(struct election_model *m, const char *path)
{
    struct election *e = clave__election_find(m, path);
    size_t n = strlen(path) + 1;
    if (!e) {
        e = clave__mem_zalloc(m->mem, sizeof *e + n);
        if (!e)
            return NULL;
        memcpy(e->path, path, n);
        e->vacant_since = -1;
        list_init(&e->terms);
        list_init(&e->in_changed);
        clave__ordered_insert(&m->elections, &e->node, e->path, 0);
    }
    election_changed(m, e);
    return e;
}

struct election *clave__election_take_changed(struct election_model *m)
{
    struct list *at = list_pop_front(&m->changed);
    return at ? LIST_ENTRY(at, struct election, in_changed) : NULL;
}

void clave__election_settle(struct election_model *m, struct election *e, bool exists)
{
    bool worth = e->nterms > 0 && m->elections.count <= MOST_ELECTIONS;
    if (!exists && !worth && !e->value)
        election_free(m, e);
}

/* ---- terms ----------------------------------------------------------------------------------- */

static struct election_term *election_last_term(const struct election *e)
{
    return list_empty(&e->terms) ? NULL : LIST_ENTRY(e->terms.prev, struct election_term, link);
}

static void election_trim_terms(struct election_model *m, struct election *e)
{
    for (; e->nterms > MOST_TERMS; e->nterms--)
        clave__mem_free(m->mem, LIST_ENTRY(list_pop_front(&e->terms), struct election_term, link));
}

static void election_granted(struct election_model *m, int64_t at, const struct lock_node *p)
{
    assert(p->holds);
    char who[LOCK_WHO_CAP];
    struct election *e = election_at(m, p->queue->path);
    size_t n = strlen(clave__lock_who(p, who)) + 1;
    struct election_term *term = e ? clave__mem_zalloc(m->mem, sizeof *term + n) : NULL;
    if (!term)
        return;
    *term = (struct election_term){.token = p->token, .from = p->held_before ? -1 : at, .to = -1};
    memcpy(term->who, who, n);
    if (e->vacant_since >= 0)
        e->vacant_ms += at > e->vacant_since ? at - e->vacant_since : 0;
    e->vacant_since = -1;
    e->over = false;
    e->terms_total++;
    list_push_back(&e->terms, &term->link);
    e->nterms++;
    election_trim_terms(m, e);
}

static void election_ended(struct election_model *m, int64_t at, const struct lock_node *p)
{
    struct election *e = clave__election_find(m, p->queue->path);
    struct election_term *term = e ? election_last_term(e) : NULL;
    /* Unreadable places all have the same unknown token, so the term must not be matched by it
     * alone. */
    if (!term || term->token != p->token || !p->holds)
        return;
    term->to = at;
    e->vacant_since = at;
    election_changed(m, e);
}

/* A left-over candidate has come or gone. Its election may never have had a leader, and has none
 * until the candidate is deleted. */
static void election_left_over(struct election_model *m, const struct lock_node *p)
{
    struct election *e = election_at(m, p->queue->path);
    if (e && e->nterms == 0 && e->vacant_since < 0)
        e->vacant_since = p->queued;
}

void clave__election_note(struct election_model *m, enum lock_change what, int64_t at,
                          const struct lock_node *p)
{
    if (p->kind == QUEUE_LATCH && what == LOCK_GRANTED)
        election_granted(m, at, p);
    if (p->kind == QUEUE_LATCH && what == LOCK_ENDED)
        election_ended(m, at, p);
    if (p->kind == QUEUE_LATCH && p->left_over)
        election_left_over(m, p);
}

static bool election_has_leader(const struct election *e, const struct lock_model *locks)
{
    const struct election_term *term = election_last_term(e);
    const struct lock_queue *q = clave__lock_model_get(locks, e->path, false);
    const struct lock_node *p = q ? clave__lock_holder_after(q, NULL) : NULL;
    return p && p->kind == QUEUE_LATCH && p->token == term->token;
}

/* Ends the terms of candidates that do not lead any more. */
static void election_end_old(struct election_model *m, const struct lock_model *locks, int64_t at)
{
    for (struct election *e = NULL; (e = clave__election_after(m, e ? e->path : ""));) {
        struct election_term *term = election_last_term(e);
        if (!term || term->to >= 0 || election_has_leader(e, locks))
            continue;
        term->to = e->vacant_since = at;
        election_changed(m, e);
    }
}

void clave__election_begin(struct election_model *m, const struct lock_model *locks, int64_t at)
{
    election_end_old(m, locks, at);
    struct lock_queue *q;
    bool leases = false;
    for (const char *path = ""; (q = clave__lock_model_after(locks, path, leases));
         path = q->path) {
        const struct lock_node *p =
            q->of_kind[QUEUE_LATCH] ? clave__lock_holder_after(q, NULL) : NULL;
        leases = q->leases;
        for (struct lock_node *k = NULL; (k = clave__lock_left_over_after(q, k));)
            if (k->kind == QUEUE_LATCH)
                election_left_over(m, k);
        if (!p || p->kind != QUEUE_LATCH)
            continue;
        struct election *e = clave__election_find(m, q->path);
        struct election_term *term = e ? election_last_term(e) : NULL;
        if (!term || term->to >= 0) {
            election_granted(m, at, p);
            e = clave__election_find(m, q->path);
        }
        if (e)
            e->told_leader = clave__election_leader_id(p);
    }
}

/* Takes over earlier terms. If their last leader is the first one here, that is a single term. */
static void election_take_terms(struct election_model *m, struct election *e, struct election *from,
                                int64_t at)
{
    assert(from->nterms > 0);
    struct election_term *last = election_last_term(from);
    struct election_term *first =
        e->nterms > 0 ? LIST_ENTRY(e->terms.next, struct election_term, link) : NULL;
    if (first && first->token == last->token) {
        first->from = last->from;
        list_remove(&last->link);
        from->nterms--;
        clave__mem_free(m->mem, last);
    } else if (last->to < 0) {
        last->to = at;
    }
    if (!first) {
        e->vacant_since = last->to;
        e->over = from->over;
    }
    while (!list_empty(&from->terms)) {
        struct list *link = from->terms.prev;
        list_remove(link);
        list_push_front(&e->terms, link);
    }
    e->nterms += from->nterms;
    from->nterms = 0;
    election_trim_terms(m, e);
}

void clave__election_take_before(struct election_model *m, struct election_model *from, int64_t at)
{
    for (struct ordered_node *n; (n = clave__ordered_first(&from->elections, ORDERED_ANY));) {
        struct election *known = ORDERED_ENTRY(n, struct election, node);
        struct election *e = known->nterms > 0 ? election_at(m, known->path) : NULL;
        if (e)
            election_take_terms(m, e, known, at);
        election_free(from, known);
    }
}

void clave__election_set_cause(struct election_model *m, const char *path, int64_t token,
                               enum lock_cause cause)
{
    struct election *e = clave__election_find(m, path);
    if (!e)
        return;
    for (struct list *at = e->terms.next; at != &e->terms; at = at->next) {
        struct election_term *term = LIST_ENTRY(at, struct election_term, link);
        if (term->token == token)
            term->cause = cause;
    }
}

bool clave__election_is_shown(const struct election *e, const struct lock_model *locks)
{
    if (e->nterms > 0)
        return true;
    const struct lock_queue *q = clave__lock_model_get(locks, e->path, false);
    return q && q->nleft_over > 0;
}

int64_t clave__election_leader_id(const struct lock_node *leader)
{
    if (!leader || !leader->unreadable)
        return leader ? leader->token : 0;
    return -1 - strtoll(clave__lock_key(leader).number, NULL, 10);
}

int64_t clave__election_vacant_ms(const struct election *e, int64_t now)
{
    bool vacant = e->vacant_since >= 0 && now > e->vacant_since;
    return e->vacant_ms + (vacant ? now - e->vacant_since : 0);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The length of the leader's node name with which the value begins; 0: it is not a value. */
static size_t election_value_name_len(const char *data, size_t len)
{
    const char *end = data ? memchr(data, '\n', len) : NULL;
    return end ? (size_t)(end - data) : 0;
}

static bool election_is_value_of_candidate(const struct clave_mem *mem, const void *data,
                                           size_t len)
{
    size_t n = election_value_name_len(data, len);
    char *name = n > 0 ? clave__mem_strndup(mem, data, n) : NULL;
    bool is = name && clave__queue_kind_of(name) == QUEUE_LATCH;
    clave__mem_free(mem, name);
    return is;
}

size_t clave__election_value_of(const char *path)
{
    size_t n = strlen(path), nsuffix = sizeof value_suffix - 1;
    return n > nsuffix && strcmp(path + n - nsuffix, value_suffix) == 0 ? n - nsuffix : 0;
}

static void election_set_value(struct election_model *m, const char *path, const void *data,
                               size_t len)
{
    size_t n = clave__election_value_of(path);
    if (n == 0)
        return;
    char *of = clave__mem_strndup(m->mem, path, n);
    bool is = data && election_is_value_of_candidate(m->mem, data, len);
    struct election *e = of ? clave__election_find(m, of) : NULL;
    if (of && !e && is)
        e = election_at(m, of);
    clave__mem_free(m->mem, of);
    if (!e || (!is && !e->value))
        return;
    clave__mem_free(m->mem, e->value);
    e->cut = len > LOCK_DATA_MAX;
    len = e->cut ? clave__utf8_whole(data, LOCK_DATA_MAX) : len;
    e->value = is ? clave__mem_strndup(m->mem, data, len) : NULL;
    e->nvalue = e->value ? len : 0;
    e->value_changed = true;
    election_changed(m, e);
}

void clave__election_set_over(struct election_model *m, const char *path, bool over)
{
    struct election *e = clave__election_find(m, path);
    if (!e || e->over == over)
        return;
    e->over = over;
    election_changed(m, e);
}

void clave__election_node(struct election_model *m, const char *path, const void *data, size_t len)
{
    clave__election_set_over(m, path, false);
    election_set_value(m, path, data, len);
}

void clave__election_node_gone(struct election_model *m, const char *path)
{
    clave__election_set_over(m, path, true);
    election_set_value(m, path, NULL, 0);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static bool election_value_is_text(const char *p, size_t n)
{
    for (size_t i = 0, len; i < n; i += len) {
        len = clave__utf8_len(p + i, n - i);
        if (len == 0 || p[i] == '\0')
            return false;
    }
    return true;
}

/* Writes the value; that of a former leader counts as none. */
static void election_value_json(struct json *j, const struct election *e,
                                const struct lock_node *leader)
{
    size_t n = election_value_name_len(e->value, e->nvalue);
    if (!leader || n != strlen(leader->name) || memcmp(leader->name, e->value, n) != 0) {
        clave__json_string(j, "value", NULL);
        return;
    }
    const char *value = e->value + n + 1;
    size_t len = e->nvalue - n - 1;
    if (e->cut)
        clave__json_bool(j, "value_truncated", true);
    if (election_value_is_text(value, len)) {
        clave__json_bytes(j, "value", value, len);
        return;
    }
    char text[BASE64_LEN(LOCK_DATA_MAX) + 1];
    assert(len <= LOCK_DATA_MAX);
    clave__base64(value, len, text);
    clave__json_string(j, "value", NULL);
    clave__json_string(j, "value_base64", text);
}

static void election_terms_json(struct json *j, const struct election *e)
{
    clave__json_open(j, "terms", '[');
    for (struct list *at = e->terms.next; at != &e->terms; at = at->next) {
        const struct election_term *term = LIST_ENTRY(at, struct election_term, link);
        clave__json_open(j, NULL, '{');
        clave__lock_token_json(j, "token", term->token);
        clave__lock_time_json(j, "from", term->from);
        clave__lock_time_json(j, "to", term->to);
        clave__json_string(j, "cause", term->to < 0 ? NULL : clave__lock_cause_name(term->cause));
        clave__json_string(j, "text", term->who);
        clave__json_close(j, '}');
    }
    clave__json_close(j, ']');
}

/* The copy may have been made anew since the term was seen to begin. */
static int64_t election_led_since(const struct election *e, const struct lock_node *leader)
{
    const struct election_term *term = election_last_term(e);
    enum lock_since how;
    int64_t since = leader ? clave__lock_held_since(leader, &how) : -1;
    return leader && since < 0 && term && term->token == leader->token ? term->from : since;
}

void clave__election_json(struct json *j, const char *key, const struct election *e,
                          const struct election_view *v)
{
    const struct lock_queue *q = clave__lock_model_get(v->locks, e->path, false);
    struct lock_node *leader = q ? clave__lock_holder_after(q, NULL) : NULL, *p = NULL;
    clave__json_open(j, key, '{');
    clave__json_string(j, "path", e->path);
    if (leader) {
        clave__lock_place_json(j, "leader", leader);
        clave__lock_token_json(j, "term", leader->token);
    } else {
        clave__json_string(j, "leader", NULL);
        clave__json_string(j, "term", NULL);
    }
    clave__lock_time_json(j, "since", election_led_since(e, leader));
    election_value_json(j, e, leader);
    clave__json_open(j, "candidates", '[');
    for (size_t i = 0; q && i < v->most_candidates && (p = clave__lock_waiter_after(q, p)); i++)
        clave__lock_place_json(j, NULL, p);
    clave__json_close(j, ']');
    clave__json_open(j, "left_over", '[');
    p = NULL;
    for (size_t i = 0; q && i < v->most_candidates && (p = clave__lock_left_over_after(q, p)); i++)
        clave__lock_place_json(j, NULL, p);
    clave__json_close(j, ']');
    clave__json_bool(j, "over", e->over && !q);
    election_terms_json(j, e);
    if (v->members)
        v->members(j, v->arg);
    clave__json_close(j, '}');
}

/* ---- its state as a number ------------------------------------------------------------------- */

/* The token of the last leader, so that an election that lost its leader differs from one that
 * never had any. */
static uint64_t election_last_token(const struct election *e)
{
    const struct election_term *last = election_last_term(e);
    return last ? (uint64_t)last->token : 0;
}

uint64_t clave__election_digest(const struct election *e, const struct lock_queue *q)
{
    const uint64_t words[] = {q ? clave__lock_etag(q) : 0,
                              e->value ? clave__siphash(clave__siphash_key(1), e->value, e->nvalue)
                                       : 0,
                              e->over && !q, election_last_token(e)};
    return clave__siphash(clave__siphash_key(1), words, sizeof words);
}
