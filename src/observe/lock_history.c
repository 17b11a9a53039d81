/* lock_history.c - what happened to locks (lock_history.h): why holds ended, the history, and
 * counts.
 *
 * What must stay true: each place that has ended is handed out exactly once, after SETTLE_MS or
 * when its cause has been said. Entries are numbered consecutively, and only the oldest are
 * dropped. A hold that began before the gate started is counted when it ends, but its duration is
 * not, since its beginning is unknown. */
#include "observe/lock_history.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "clave/async/slots.h"
#include "observe/lock_json.h"
#include "recipe/queue/identity.h"

/* ---- why a hold ended ------------------------------------------------------------------------ */

enum { SETTLE_MS = 100, MOST_SAID = 10000 };

/* What is known about a node that still exists or is just going. */
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

/* ---- causes that were said ------------------------------------------------------------------- */

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

/* ---- places that have ended ------------------------------------------------------------------ */

/* Hashes the id of the owner of a slot, or of one waiting for it; 0: unknown. */
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
    bool may_be_taken = end->kind == LOCK_KIND_SLOT && !end->held; /* its slot may still appear */
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

/* ---- the history --------------------------------------------------------------------------- */

/* Numbers advance by this much per ms; nothing makes entries that fast. */
enum { NUMBERS_PER_MS = 1000 };
enum { MOST_ENTRIES = 20000, KEPT_BYTES = 16 << 20, PLACE_MAX = 16384 };
enum {
    DEED_MAX = 4096,  /* bytes of JSON: a longer deed is not kept */
    MOST_DEEDS = 100, /* how many deeds may wait for their entries */
    DEED_LOOKS = 200, /* entries back from the newest in which a deed finds its own */
};

/* A deed whose entry has not come yet. */
struct said_deed {
    struct list link;
    int64_t token;
    enum lock_change what;
    char *text;
};
#define KEPT_MS (INT64_C(7) * 86400000)

static int lock_history_compare(const void *key, const struct ordered_node *node)
{
    uint64_t n = *(const uint64_t *)key, own = ORDERED_ENTRY(node, struct history_entry, node)->n;
    return n < own ? -1 : n > own;
}

void clave__history_init(struct history *h, const struct clave_mem *mem, uint64_t seed)
{
    *h = (struct history){.mem = mem};
    list_init(&h->deeds);
    clave__ordered_init(&h->entries, lock_history_compare, seed);
}

static struct history_entry *lock_history_first(const struct history *h)
{
    struct ordered_node *n = clave__ordered_first(&h->entries, ORDERED_ANY);
    return n ? ORDERED_ENTRY(n, struct history_entry, node) : NULL;
}

static void lock_history_drop(struct history *h, struct history_entry *e)
{
    assert(h->bytes >= e->size);
    clave__ordered_remove(&h->entries, &e->n);
    h->bytes -= e->size;
    clave__mem_free(h->mem, e->deed);
    clave__mem_free(h->mem, e);
}

/* Removes the deed, whose text then belongs to the caller. */
static char *lock_history_take_deed(struct history *h, struct said_deed *d)
{
    char *text = d->text;
    list_remove(&d->link);
    h->ndeeds--;
    clave__mem_free(h->mem, d);
    return text;
}

void clave__history_fini(struct history *h)
{
    while (!list_empty(&h->deeds))
        clave__mem_free(
            h->mem, lock_history_take_deed(h, LIST_ENTRY(h->deeds.next, struct said_deed, link)));
    for (struct history_entry *e; (e = lock_history_first(h));)
        lock_history_drop(h, e);
}

static void lock_history_trim(struct history *h, int64_t at)
{
    for (struct history_entry *e; (e = lock_history_first(h)) && e->n != h->last;
         lock_history_drop(h, e)) {
        if (h->entries.count <= MOST_ENTRIES && h->bytes <= KEPT_BYTES && at - e->at <= KEPT_MS)
            return;
        h->from = e->at;
    }
}

void clave__history_begin(struct history *h, int64_t at)
{
    assert(h->entries.count == 0);
    h->last = (uint64_t)(at > 0 ? at : 0) * NUMBERS_PER_MS + MOST_ENTRIES;
    h->from = at;
}

/* ---- who did it, and why ------------------------------------------------------------------- */

static void lock_history_set_deed(struct history *h, struct history_entry *e, char *text)
{
    size_t before = e->deed ? strlen(e->deed) + 1 : 0, n = strlen(text) + 1;
    clave__mem_free(h->mem, e->deed);
    e->deed = text;
    e->size += n - before;
    h->bytes += n - before;
}

/* Attaches what was said about this place before its entry came. */
static void lock_history_find_deed(struct history *h, struct history_entry *e)
{
    for (struct list *at = h->deeds.next; at != &h->deeds; at = at->next) {
        struct said_deed *d = LIST_ENTRY(at, struct said_deed, link);
        if (d->token != e->token || d->what != e->what)
            continue;
        lock_history_set_deed(h, e, lock_history_take_deed(h, d));
        return;
    }
}

static struct history_entry *lock_history_of_place(const struct history *h, int64_t token,
                                                   enum lock_change what)
{
    uint64_t n = h->last;
    for (int i = 0; i < DEED_LOOKS && n > 0; i++, n--) {
        struct ordered_node *node = clave__ordered_find(&h->entries, &n);
        struct history_entry *e = node ? ORDERED_ENTRY(node, struct history_entry, node) : NULL;
        if (e && e->token == token && e->what == what)
            return e;
    }
    return NULL;
}

/* The deed as JSON; NULL: no memory, or it is too long. */
static char *lock_history_deed_text(const struct history *h, const struct history_deed *deed)
{
    struct buf text;
    clave__buf_init(&text, h->mem, DEED_MAX);
    struct json j = clave__json_to(&text);
    clave__json_open(&j, NULL, '{');
    if (deed->by && *deed->by)
        clave__json_string(&j, "by", deed->by);
    if (deed->reason && *deed->reason)
        clave__json_string(&j, "reason", deed->reason);
    clave__json_close(&j, '}');
    char *copy = j.err == CLAVE_OK
                     ? clave__mem_strndup(h->mem, clave__buf_text(&text), clave__buf_len(&text))
                     : NULL;
    clave__buf_fini(&text);
    return copy;
}

void clave__history_say(struct history *h, const struct history_deed *deed)
{
    struct history_entry *e = lock_history_of_place(h, deed->token, deed->what);
    struct said_deed *d = NULL;
    char *text = lock_history_deed_text(h, deed);
    if (text && e) {
        lock_history_set_deed(h, e, text);
        return;
    }
    d = text ? clave__mem_zalloc(h->mem, sizeof *d) : NULL;
    if (!d) {
        clave__mem_free(h->mem, text);
        return;
    }
    if (h->ndeeds >= MOST_DEEDS)
        clave__mem_free(
            h->mem, lock_history_take_deed(h, LIST_ENTRY(h->deeds.next, struct said_deed, link)));
    *d = (struct said_deed){.token = deed->token, .what = deed->what, .text = text};
    list_push_back(&h->deeds, &d->link);
    h->ndeeds++;
}

uint64_t clave__history_add(struct history *h, int64_t at, int64_t zxid, enum lock_change what,
                            const struct lock_node *p, const char *path)
{
    struct buf place;
    clave__buf_init(&place, h->mem, PLACE_MAX);
    struct json j = clave__json_to(&place);
    clave__lock_place_json(&j, NULL, p);
    size_t npath = strlen(path) + 1, nplace = clave__buf_len(&place);
    size_t size = sizeof(struct history_entry) + npath + nplace + 1;
    struct history_entry *e = j.err == CLAVE_OK ? clave__mem_zalloc(h->mem, size) : NULL;
    if (e) {
        *e = (struct history_entry){
            .n = ++h->last, .at = at, .zxid = zxid, .what = what, .token = p->token, .size = size};
        e->kind = clave__lock_kind(p->queue);
        memcpy(e->path, path, npath);
        memcpy(e->path + npath, clave__buf_bytes(&place), nplace);
        e->place = e->path + npath;
        clave__ordered_insert(&h->entries, &e->node, &e->n, 0);
        h->bytes += size;
        lock_history_find_deed(h, e);
        lock_history_trim(h, at);
    }
    clave__buf_fini(&place);
    return e ? e->n : 0;
}

void clave__history_take_before(struct history *h, struct history *from)
{
    assert(h->mem->alloc == from->mem->alloc && h->mem->arg == from->mem->arg);
    const struct history_entry *first = lock_history_first(h);
    uint64_t n = first ? first->n : h->last + 1;
    for (struct ordered_node *node;
         n > 1 && (node = clave__ordered_last(&from->entries, ORDERED_ANY));) {
        struct history_entry *e = ORDERED_ENTRY(node, struct history_entry, node);
        if (h->entries.count >= MOST_ENTRIES || h->bytes + e->size > KEPT_BYTES)
            return;
        clave__ordered_remove(&from->entries, &e->n);
        from->bytes -= e->size;
        e->n = --n;
        h->from = e->at;
        clave__ordered_insert(&h->entries, &e->node, &e->n, 0);
        h->bytes += e->size;
    }
}

const struct history_entry *clave__history_find(const struct history *h, uint64_t n)
{
    struct ordered_node *node = clave__ordered_find(&h->entries, &n);
    return node ? ORDERED_ENTRY(node, struct history_entry, node) : NULL;
}

void clave__history_forget(struct history *h, uint64_t n)
{
    struct ordered_node *node = clave__ordered_find(&h->entries, &n);
    if (node)
        lock_history_drop(h, ORDERED_ENTRY(node, struct history_entry, node));
}

void clave__history_set_cause(struct history *h, uint64_t n, enum lock_cause cause)
{
    struct ordered_node *node = clave__ordered_find(&h->entries, &n);
    if (node)
        ORDERED_ENTRY(node, struct history_entry, node)->cause = cause;
}

const struct history_entry *clave__history_after(const struct history *h, uint64_t n)
{
    struct ordered_node *node = clave__ordered_after(&h->entries, &n, ORDERED_ANY);
    return node ? ORDERED_ENTRY(node, struct history_entry, node) : NULL;
}

void clave__history_json(struct json *j, const struct history_entry *e)
{
    static const char *const what[] = {[LOCK_QUEUED] = "queued",
                                       [LOCK_GRANTED] = "granted",
                                       [LOCK_ASKED] = "asked",
                                       [LOCK_ENDED] = "ended"};
    clave__json_open(j, NULL, '{');
    clave__json_int64(j, "n", (int64_t)e->n);
    if (e->zxid)
        clave__json_int64(j, "zxid", e->zxid);
    else
        clave__json_string(j, "zxid", NULL);
    clave__lock_time_json(j, "time", e->at);
    clave__json_string(j, "path", e->path);
    clave__json_string(j, "kind", clave__lock_kind_name(e->kind));
    clave__json_string(j, "what", what[e->what]);
    clave__json_string(j, "cause", e->what == LOCK_ENDED ? clave__lock_cause_name(e->cause) : NULL);
    if (e->deed)
        clave__json_number(j, "deed", e->deed);
    else
        clave__json_string(j, "deed", NULL);
    clave__json_number(j, "place", e->place);
    clave__json_close(j, '}');
}

/* ---- counts and durations -------------------------------------------------------------------- */

/* In ms. */
static const struct histogram_bounds durations = {
    12, {1, 5, 10, 50, 100, 500, 1000, 5000, 10000, 60000, 300000, 3600000}};

void clave__lock_counters_init(struct lock_counters *m)
{
    *m = (struct lock_counters){0};
    for (int kind = 0; kind < LOCK_KINDS; kind++) {
        clave__histogram_init(&m->waited[kind], &durations);
        clave__histogram_init(&m->left[kind], &durations);
        clave__histogram_init(&m->held[kind], &durations);
    }
}

/* The duration from `then` to `at`, never negative, since the clocks of servers and gate may
 * differ. */
static int64_t counters_since(int64_t at, int64_t then)
{
    return at > then ? at - then : 0;
}

/* When the owner began to queue: for a lease or slot, that was in the other queue. */
static int64_t counters_queued(const struct lock_node *p)
{
    const struct lock_node *turn = clave__lock_turn_of(p);
    return turn && turn->queued < p->queued ? turn->queued : p->queued;
}

void clave__lock_counters_note(struct lock_counters *m, enum lock_change what,
                               const struct lock_node *p, int64_t at)
{
    enum lock_queue_kind kind = clave__lock_kind(p->queue);
    if (p->left_over)
        return; /* nobody has waited */
    bool holds = p->holds &&
                 !clave__lock_acquired(
                     p->queue); /* the first to wait for a lease has its turn, but holds nothing */
    if (what == LOCK_GRANTED)
        clave__histogram_note(&m->waited[kind], counters_since(at, counters_queued(p)));
    if (what == LOCK_ENDED && !holds && kind != LOCK_KIND_SLOT)
        clave__histogram_note(&m->left[kind], counters_since(at, p->queued));
    if (what == LOCK_ENDED && holds && !p->held_before)
        clave__histogram_note(&m->held[kind], counters_since(at, p->held));
}

void clave__lock_counters_note_taken(struct lock_counters *m, const struct lock_end *waited)
{
    clave__histogram_note(&m->waited[LOCK_KIND_SLOT], waited->waited);
}

void clave__lock_counters_note_cause(struct lock_counters *m, const struct lock_end *end)
{
    if (end->held)
        m->ends[end->kind][end->cause]++;
    else if (end->kind == LOCK_KIND_SLOT &&
             !end->left_over) /* only now is it certain that it was not granted */
        clave__histogram_note(&m->left[end->kind], end->waited);
}
