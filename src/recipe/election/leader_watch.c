/* leader_watch.c - follows an election from outside. Implements the public API. There is one
 * reading at a time, in stages; an event during a reading makes it begin again at the stage that
 * the event concerns.
 *
 *     LIST ──> NODE ──> VALUE ──> told
 *       └── vacant ────────────────^
 *
 * What must stay true: a value is kept only if it names the node of this leader. */
#include <assert.h>
#include <string.h>

#include "base/err_class.h"
#include "base/memory.h"
#include "base/path.h"
#include "clave/async/leader.h"
#include "clave/async/mutex.h"
#include "client/client_for_recipes.h"
#include "recipe/election/latch_internal.h"
#include "recipe/queue/identity.h"
#include "recipe/queue/participant_list.h"
#include "recipe/queue/queue_nodes.h"
#include "recipe/queue/queue_order.h"

/* All zeros: there was no reading yet, or nobody leads. */
struct leader_reading {
    clave_err err; /* if the reading failed: nothing else is set then */
    char *node;    /* the name of the leader's node; NULL: nobody leads */
    char *data;    /* that node's data; NULL: we may not read it */
    char *value;   /* NULL: none */
    size_t len, nvalue;
    clave_stat stat;
};

static void leader_reading_fini(struct leader_reading *v, const struct clave_mem *mem)
{
    clave__mem_free(mem, v->node);
    clave__mem_free(mem, v->data);
    clave__mem_free(mem, v->value);
    *v = (struct leader_reading){0};
}

static bool leader_reading_same_bytes(const char *a, size_t na, const char *b, size_t nb)
{
    return a && b ? na == nb && memcmp(a, b, na) == 0 : a == b;
}

static bool leader_reading_equals(const struct leader_reading *a, const struct leader_reading *b)
{
    if (a->err != b->err || !a->node != !b->node)
        return false;
    return !b->node || (a->stat.czxid == b->stat.czxid && strcmp(a->node, b->node) == 0 &&
                        leader_reading_same_bytes(a->data, a->len, b->data, b->len) &&
                        leader_reading_same_bytes(a->value, a->nvalue, b->value, b->nvalue));
}

/* Forgets everything, and starts with the leader's node. ENOMEM. */
static clave_err leader_reading_begin(struct leader_reading *v, const struct clave_mem *mem,
                                      const char *node)
{
    leader_reading_fini(v, mem);
    v->node = clave__mem_strdup(mem, node);
    return v->node ? CLAVE_OK : CLAVE_ENOMEM;
}

/* The same, but takes node, data and Stat from another reading. ENOMEM. */
static clave_err leader_reading_begin_with(struct leader_reading *v, const struct clave_mem *mem,
                                           const struct leader_reading *from)
{
    clave_err err = leader_reading_begin(v, mem, from->node);
    v->stat = from->stat;
    v->len = from->len;
    v->data = from->data ? clave__mem_strndup(mem, from->data, from->len) : NULL;
    return err == CLAVE_OK && !v->data && from->data ? CLAVE_ENOMEM : err;
}

/* Keeps the answer to a getData of the node. ENOAUTH is not a failure: the node exists. ENOMEM. */
static clave_err leader_reading_take_node(struct leader_reading *v, const struct clave_mem *mem,
                                          const clave_result *res)
{
    clave__mem_free(mem, v->data);
    v->data = NULL;
    v->len = res->len;
    if (res->stat)
        v->stat = *res->stat;
    if (res->err != CLAVE_OK)
        return CLAVE_OK;
    v->data = clave__mem_strndup(mem, res->len ? res->data : "", res->len);
    return v->data ? CLAVE_OK : CLAVE_ENOMEM;
}

/* Keeps the value in the answer to a getData of the value's node, if it is this leader's. ENOMEM.
 * The data is the name of the leader's node, a newline, and the value (latch.c). The value
 * of a former leader counts as none. */
static clave_err leader_reading_take_value(struct leader_reading *v, const struct clave_mem *mem,
                                           const clave_result *res)
{
    size_t nname = strlen(v->node);
    const char *data = res->data;
    clave__mem_free(mem, v->value);
    v->value = NULL;
    v->nvalue = 0;
    if (res->err != CLAVE_OK || res->len <= nname || data[nname] != '\n' ||
        memcmp(data, v->node, nname) != 0)
        return CLAVE_OK;
    v->nvalue = res->len - nname - 1;
    v->value = clave__mem_strndup(mem, data + nname + 1, v->nvalue);
    return v->value ? CLAVE_OK : CLAVE_ENOMEM;
}

/* Describes the leader as a participant, which points into the reading and into *text; the caller
 * frees *text. ENOMEM. Parses a copy, because the parser modifies its input, and the original is
 * compared with the next reading. */
static clave_err leader_reading_describe(const struct leader_reading *v,
                                         const struct clave_mem *mem, clave_participant *p,
                                         char **text)
{
    *p = (clave_participant){
        .node = v->node, .stat = v->stat, .left_over = clave__queue_node_is_left_over(&v->stat)};
    *text = v->data ? clave__mem_strndup(mem, v->data, v->len) : NULL;
    if (v->data && !*text)
        return CLAVE_ENOMEM;
    if (*text)
        clave__identity_parse(*text, v->len, &p->identity);
    return CLAVE_OK;
}

enum { RETRY_MS = 1000 };
enum stage { STAGE_LIST, STAGE_NODE, STAGE_VALUE, STAGE_NONE };

struct clave_async_leader_watch {
    clave_async_client *client;
    const struct clave_mem *mem;
    char *path;
    char *value_path;
    clave_async_leader_watch_cb *cb;    /* NULL: freed, or `first` is set */
    clave_async_participants_cb *first; /* the callback of a single question; otherwise NULL */
    void *arg;
    clave_async_watch *path_watch; /* while nobody leads */
    clave_async_watch *node_watch;
    clave_async_watch *value_watch;
    struct listener listener;
    struct timer retry;
    enum stage stage; /* the stage of the reading; STAGE_NONE: none is under way */
    enum stage again; /* where to begin again when the reading ends; STAGE_NONE: nowhere */
    bool told;        /* `shown` was reported: if it is all zeros, nobody leads */
    struct leader_reading now, shown;
    unsigned refs; /* the user, a request under way, and running calls */
};

static void leader_watch_read_from(clave_async_leader_watch *w, enum stage stage);

/* ---- creating and freeing -------------------------------------------------------------------- */

static void leader_watch_drop(clave_async_leader_watch *w)
{
    assert(w->refs > 0);
    if (--w->refs > 0)
        return;
    leader_reading_fini(&w->now, w->mem);
    leader_reading_fini(&w->shown, w->mem);
    clave__mem_free(w->mem, w->path);
    clave__mem_free(w->mem, w->value_path);
    clave__mem_free(w->mem, w);
}

void clave_async_leader_watch_free(clave_async_leader_watch *w)
{
    if (!w)
        return;
    w->cb = NULL;
    w->first = NULL;
    clave__client_unlisten(&w->listener);
    clave__client_timer_clear(w->client, &w->retry);
    clave_async_watch_free(w->path_watch);
    clave_async_watch_free(w->node_watch);
    clave_async_watch_free(w->value_watch);
    clave_async_client *c = w->client;
    leader_watch_drop(w);
    clave__client_unref(c);
}

static bool leader_watch_is_freed(const clave_async_leader_watch *w)
{
    return !w->cb && !w->first;
}

/* ---- reporting ------------------------------------------------------------------------------- */

static bool leader_watch_has_news(const clave_async_leader_watch *w)
{
    return !w->told || !leader_reading_equals(&w->shown, &w->now);
}

static void leader_watch_retry_later(clave_async_leader_watch *w)
{
    clave__client_timer_set(w->client, &w->retry, clave__client_now(w->client) + RETRY_MS);
}

static void leader_watch_tell(clave_async_leader_watch *w)
{
    char *text = NULL;
    clave_participant leader;
    clave_leader_news news = {.err = w->now.err, .value = w->now.value, .len = w->now.nvalue};
    if (news.err == CLAVE_OK && w->now.node) {
        news.err = leader_reading_describe(&w->now, w->mem, &leader, &text);
        if (news.err == CLAVE_OK && leader.left_over)
            news.left_over = &leader;
        else if (news.err == CLAVE_OK)
            news.leader = &leader;
    }
    if (news.err == CLAVE_ENOMEM && w->now.err == CLAVE_OK) {
        w->now.err = CLAVE_ENOMEM;
        leader_watch_retry_later(w);
    }
    if (w->first) {
        clave_async_participants_cb *first = w->first;
        clave_async_client *c = w->client;
        void *arg = w->arg;
        w->refs++;
        clave_async_leader_watch_free(w);
        first(c, news.err, news.leader, news.leader != NULL, arg);
        clave__mem_free(w->mem, text);
        leader_watch_drop(w);
        return;
    }
    struct leader_reading old = w->shown;
    w->shown = w->now;
    w->now = (struct leader_reading){0};
    w->told = true;
    w->refs++;
    w->cb(w, &news, w->arg);
    leader_reading_fini(&old, w->mem);
    clave__mem_free(w->mem, text);
    leader_watch_drop(w);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void leader_watch_on_retry(struct timer *t, int64_t now)
{
    (void)now;
    leader_watch_read_from(LIST_ENTRY(t, struct clave_async_leader_watch, retry), STAGE_LIST);
}

/* The reading is complete, or has failed. The result is reported even if the reading must begin
 * again: if only undisturbed readings counted, a leader whose node is written all the time would
 * never be reported. The exception is a reading that must list again, since the leader that it
 * found may be gone. */
static void leader_watch_conclude(clave_async_leader_watch *w, clave_err err)
{
    enum stage again = err == CLAVE_OK ? w->again : STAGE_NONE;
    w->stage = w->again = STAGE_NONE;
    if (err != CLAVE_OK) {
        leader_reading_fini(&w->now, w->mem);
        w->now.err = err;
    }
    if (err != CLAVE_OK && err != CLAVE_ECLOSED)
        leader_watch_retry_later(w);
    /* A follower keeps waiting anyway, so errors that may pass are not reported to it. */
    bool quiet = err != CLAVE_OK && clave__err_passes(err) && w->cb;
    w->refs++;
    if (!quiet && again != STAGE_LIST && leader_watch_has_news(w))
        leader_watch_tell(w);
    if (again != STAGE_NONE && !leader_watch_is_freed(w))
        leader_watch_read_from(w, again);
    leader_watch_drop(w);
}

/* Call it after each request of a reading; the reply continues the reading. */
static void leader_watch_submitted(clave_async_leader_watch *w, clave_err err)
{
    if (err == CLAVE_OK)
        w->refs++;
    else
        leader_watch_conclude(w, err);
}

/* A watch that is armed must not be passed to a request again. */
static clave_async_watch *leader_watch_if_idle(clave_async_watch *watch)
{
    return clave_async_watch_is_armed(watch) ? NULL : watch;
}

static void leader_watch_next_stage(clave_async_leader_watch *w, enum stage stage);

/* Called first for every reply. Returns false if the reading does not continue with it. */
static bool leader_watch_continues(clave_async_leader_watch *w)
{
    if (leader_watch_is_freed(w))
        return false;
    if (w->again == STAGE_LIST) {
        w->again = STAGE_NONE;
        leader_watch_next_stage(w, STAGE_LIST);
        return false;
    }
    return true;
}

static void leader_watch_on_vacant(clave_async_leader_watch *w)
{
    leader_reading_fini(&w->now, w->mem);
    clave_async_watch_disarm(w->node_watch);
    clave_async_watch_disarm(w->value_watch);
    leader_watch_conclude(w, CLAVE_OK);
}

/* The election's path was missing, and a watch was set for its creation. */
static void leader_watch_on_path(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_leader_watch *w = arg;
    (void)c;
    /* that watch is on the path itself; now one on the children is needed */
    if (res->err == CLAVE_OK && !leader_watch_is_freed(w))
        clave_async_watch_disarm(w->path_watch);
    if (leader_watch_continues(w)) {
        if (res->err == CLAVE_OK)
            leader_watch_next_stage(w, STAGE_LIST);
        else if (res->err == CLAVE_ENONODE)
            leader_watch_on_vacant(w);
        else
            leader_watch_conclude(w, res->err);
    }
    leader_watch_drop(w);
}

static const char *leader_watch_first_of(const clave_result *res)
{
    const char *first = NULL;
    for (size_t i = 0; i < res->nnames; i++) {
        const char *name = res->names[i];
        if (clave__queue_order_is_kind(&clave__queue_order_latch, name) &&
            (!first || strcmp(clave__queue_order_key(&clave__queue_order_latch, name).text,
                              clave__queue_order_key(&clave__queue_order_latch, first).text) < 0))
            first = name;
    }
    return first;
}

static clave_err leader_watch_set_node(clave_async_leader_watch *w, const char *name)
{
    if (w->now.node && strcmp(w->now.node, name) == 0)
        return CLAVE_OK;
    clave_async_watch_disarm(w->node_watch);
    return leader_reading_begin(&w->now, w->mem, name);
}

static void leader_watch_on_names(clave_async_client *c, const clave_result *res, void *arg);

static void leader_watch_list(clave_async_leader_watch *w, clave_async_watch *watch)
{
    leader_watch_submitted(
        w, clave_async_children(w->client, w->path, watch, leader_watch_on_names, w));
}

static void leader_watch_on_names(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_leader_watch *w = arg;
    if (leader_watch_continues(w)) {
        const char *first = res->err == CLAVE_OK ? leader_watch_first_of(res) : NULL;
        if (res->err == CLAVE_ENONODE && !clave_async_watch_is_armed(w->path_watch))
            leader_watch_submitted(
                w, clave_async_exists(c, w->path, w->path_watch, leader_watch_on_path, w));
        else if (res->err != CLAVE_OK && res->err != CLAVE_ENONODE)
            leader_watch_conclude(w, res->err);
        else if (!first && !clave_async_watch_is_armed(w->path_watch))
            leader_watch_list(w, w->path_watch); /* rare: only while nobody leads */
        else if (!first)
            leader_watch_on_vacant(w);
        else if (leader_watch_set_node(w, first) != CLAVE_OK)
            leader_watch_conclude(w, CLAVE_ENOMEM);
        else
            leader_watch_next_stage(w, STAGE_NODE);
    }
    leader_watch_drop(w);
}

static void leader_watch_on_node(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_leader_watch *w = arg;
    (void)c;
    if (leader_watch_continues(w)) {
        if (res->err == CLAVE_ENONODE)
            leader_watch_next_stage(w, STAGE_LIST);
        else if (res->err != CLAVE_OK && res->err != CLAVE_ENOAUTH)
            leader_watch_conclude(w, res->err);
        else if (leader_reading_take_node(&w->now, w->mem, res) != CLAVE_OK)
            leader_watch_conclude(w, CLAVE_ENOMEM);
        else
            leader_watch_next_stage(w, w->first ? STAGE_NONE : STAGE_VALUE);
    }
    leader_watch_drop(w);
}

static void leader_watch_get_node(clave_async_leader_watch *w)
{
    char *path = clave__path_child(w->mem, w->path, w->now.node);
    clave_err err = CLAVE_ENOMEM;
    if (path)
        err = clave_async_get(w->client, path, leader_watch_if_idle(w->node_watch),
                              leader_watch_on_node, w);
    clave__mem_free(w->mem, path);
    leader_watch_submitted(w, err);
}

/* ---- the value ------------------------------------------------------------------------------- */

static void leader_watch_on_value(clave_async_client *c, const clave_result *res, void *arg);

/* The value's node was missing and a watch was set for its creation, or it exists by now. */
static void leader_watch_on_no_value(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_leader_watch *w = arg;
    if (leader_watch_continues(w)) {
        if (res->err == CLAVE_OK)
            leader_watch_submitted(
                w, clave_async_get(c, w->value_path, NULL, leader_watch_on_value, w));
        else if (res->err == CLAVE_ENONODE)
            leader_watch_conclude(w, leader_reading_take_value(&w->now, w->mem, res));
        else
            leader_watch_conclude(w, res->err);
    }
    leader_watch_drop(w);
}

static void leader_watch_on_value(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_leader_watch *w = arg;
    if (leader_watch_continues(w)) {
        if (res->err == CLAVE_ENONODE && !clave_async_watch_is_armed(w->value_watch))
            leader_watch_submitted(w, clave_async_exists(c, w->value_path, w->value_watch,
                                                         leader_watch_on_no_value, w));
        else if (res->err == CLAVE_OK || res->err == CLAVE_ENOAUTH || res->err == CLAVE_ENONODE)
            leader_watch_conclude(w, leader_reading_take_value(&w->now, w->mem, res));
        else
            leader_watch_conclude(w, res->err);
    }
    leader_watch_drop(w);
}

/* ---- stages and events ----------------------------------------------------------------------- */

static void leader_watch_next_stage(clave_async_leader_watch *w, enum stage stage)
{
    w->stage = stage;
    switch (stage) {
    case STAGE_LIST:
        leader_watch_list(w, NULL);
        break;
    case STAGE_NODE:
        clave_async_watch_disarm(w->path_watch);
        leader_watch_get_node(w);
        break;
    case STAGE_VALUE:
        leader_watch_submitted(w, clave_async_get(w->client, w->value_path,
                                                  leader_watch_if_idle(w->value_watch),
                                                  leader_watch_on_value, w));
        break;
    case STAGE_NONE:
        leader_watch_conclude(w, CLAVE_OK);
        break;
    }
}

static void leader_watch_read_from(clave_async_leader_watch *w, enum stage stage)
{
    /* a reading has failed and is due for a retry; the leader may have changed since */
    if (w->retry.armed)
        stage = STAGE_LIST;
    if (w->stage != STAGE_NONE) {
        /* The event concerns a later stage, which will show the change. */
        if (stage <= w->stage && stage < w->again)
            w->again = stage;
        return;
    }
    clave__client_timer_clear(w->client, &w->retry);
    if (stage != STAGE_LIST && !w->now.node && w->told && w->shown.node &&
        leader_reading_begin_with(&w->now, w->mem, &w->shown) != CLAVE_OK)
        stage = STAGE_LIST;
    leader_watch_next_stage(w, w->now.node ? stage : STAGE_LIST);
}

static void leader_watch_on_path_event(clave_async_client *c, clave_async_watch *watch,
                                       const clave_event *ev, void *arg)
{
    (void)c, (void)watch;
    if (ev->type != CLAVE_EVENT_LOST)
        leader_watch_read_from(arg, STAGE_LIST);
}

static void leader_watch_on_node_event(clave_async_client *c, clave_async_watch *watch,
                                       const clave_event *ev, void *arg)
{
    (void)c, (void)watch;
    if (ev->type != CLAVE_EVENT_LOST)
        leader_watch_read_from(arg, ev->type == CLAVE_EVENT_DELETED ? STAGE_LIST : STAGE_NODE);
}

static void leader_watch_on_value_event(clave_async_client *c, clave_async_watch *watch,
                                        const clave_event *ev, void *arg)
{
    (void)c, (void)watch;
    if (ev->type != CLAVE_EVENT_LOST)
        leader_watch_read_from(arg, STAGE_VALUE);
}

static void leader_watch_on_state(struct listener *listener, clave_state state, clave_err why)
{
    clave_async_leader_watch *w = LIST_ENTRY(listener, struct clave_async_leader_watch, listener);
    (void)why;
    /* A new session has no watches; reconnecting within a session keeps them. */
    bool watched =
        clave_async_watch_is_armed(w->path_watch) || clave_async_watch_is_armed(w->node_watch);
    if ((state == CLAVE_STATE_CONNECTED || state == CLAVE_STATE_RECONNECTED) && !watched)
        leader_watch_read_from(w, STAGE_LIST);
    else if (state == CLAVE_STATE_CLOSED && w->stage == STAGE_NONE)
        leader_watch_conclude(w, CLAVE_ECLOSED);
}

/* ---- the public calls ------------------------------------------------------------------------ */

static clave_err leader_watch_new_watches(clave_async_leader_watch *w)
{
    clave_err err = clave_async_watch_new(&w->path_watch, w->client, leader_watch_on_path_event, w);
    if (err == CLAVE_OK)
        err = clave_async_watch_new(&w->node_watch, w->client, leader_watch_on_node_event, w);
    if (err == CLAVE_OK)
        err = clave_async_watch_new(&w->value_watch, w->client, leader_watch_on_value_event, w);
    return err;
}

static clave_err leader_watch_begin(clave_async_leader_watch **out, clave_async_client *c,
                                    const char *path, const clave_async_leader_watch *model)
{
    const struct clave_mem *mem = clave__client_mem(c);
    const char *fault = clave__path_fault(path, strlen(path), false);
    *out = NULL;
    if (fault) {
        clave__client_fault(c, "the election's path \"%s\" %s", path, fault);
        return CLAVE_EPATH;
    }
    if (clave_async_client_state(c) == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    clave_async_leader_watch *w = clave__mem_alloc(mem, sizeof *w);
    if (!w)
        return CLAVE_ENOMEM;
    *w = *model;
    w->client = c;
    w->mem = mem;
    w->refs = 1;
    w->again = STAGE_NONE;
    clave__client_ref(c);
    list_init(&w->listener.link);
    w->listener.on_state = leader_watch_on_state;
    clave__timer_init(&w->retry, leader_watch_on_retry);
    w->path = clave__mem_strdup(mem, path);
    w->value_path = clave__value_path(mem, path);
    clave_err err = w->path && w->value_path ? leader_watch_new_watches(w) : CLAVE_ENOMEM;
    if (err == CLAVE_OK)
        err = clave_async_children(c, path, NULL, leader_watch_on_names, w);
    if (err != CLAVE_OK) {
        clave_async_leader_watch_free(w);
        return err;
    }
    w->refs++;
    w->stage = STAGE_LIST;
    clave__client_listen(c, &w->listener);
    *out = w;
    return CLAVE_OK;
}

clave_err clave_async_leader_watch_new(clave_async_leader_watch **out, clave_async_client *c,
                                       const char *path, clave_async_leader_watch_cb *cb, void *arg)
{
    *out = NULL;
    if (!cb)
        return CLAVE_EINVAL;
    return leader_watch_begin(out, c, path, &(clave_async_leader_watch){.cb = cb, .arg = arg});
}

clave_err clave_async_latch_leader(clave_async_client *c, const char *path,
                                   clave_async_participants_cb *cb, void *arg)
{
    clave_async_leader_watch *w;
    return leader_watch_begin(&w, c, path, &(clave_async_leader_watch){.first = cb, .arg = arg});
}

clave_err clave_async_latch_participants(clave_async_client *c, const char *path,
                                         clave_async_participants_cb *cb, void *arg)
{
    return clave__participant_list(c, path, &clave__queue_order_latch, true, cb, arg);
}
