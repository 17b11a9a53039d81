/* leader_watch.c - an election followed from outside. One reading at a time, in stages; an event
 * while it runs has it begin again at the stage the event concerns.
 *
 *     LIST ──> NODE ──> VALUE ──> told
 *       └── vacant ────────────────^                                                     */
#include "clave/async/leader.h"

#include <string.h>

#include "base/path.h"
#include "client/client_internal.h"
#include "recipe/contender/identity.h"
#include "recipe/contender/participant_list.h"
#include "recipe/contender/queue_order.h"
#include "recipe/election/latch_internal.h"

enum { RETRY_MS = 1000 };
enum stage { STAGE_LIST, STAGE_NODE, STAGE_VALUE, STAGE_NONE };

/* What one reading has found. */
struct view {
    clave_err err;
    char *node;  /* name; NULL: vacant */
    char *data;  /* of the node, NUL behind it; NULL: not ours to read */
    char *value; /* NULL: none */
    size_t len, nvalue;
    clave_stat stat;
};

struct clave_async_leader_watch {
    clave_async_client *client;
    const struct clave_mem *mem;
    char *path;
    char *value_path;
    clave_async_leader_watch_cb *cb;    /* NULL: freed */
    clave_async_participants_cb *first; /* asked for once: in the place of cb */
    void *arg;
    clave_async_watch *path_watch; /* in a vacancy */
    clave_async_watch *node_watch;
    clave_async_watch *value_watch;
    struct listener listener;
    struct timer retry;
    bool reading;
    enum stage stage; /* of the reading */
    enum stage again; /* begin there when the reading ends; STAGE_NONE */
    bool told;        /* `shown` was */
    struct view now, shown;
    unsigned refs; /* the user, a request under way, calls that run */
};

static void read_from(clave_async_leader_watch *w, enum stage stage);

/* ---- life ------------------------------------------------------------------------------ */

static void view_fini(clave_async_leader_watch *w, struct view *v)
{
    clave__mem_free(w->mem, v->node);
    clave__mem_free(w->mem, v->data);
    clave__mem_free(w->mem, v->value);
    *v = (struct view){0};
}

static void leader_watch_drop(clave_async_leader_watch *w)
{
    if (--w->refs > 0)
        return;
    view_fini(w, &w->now);
    view_fini(w, &w->shown);
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

static bool is_freed(const clave_async_leader_watch *w)
{
    return !w->cb && !w->first;
}

/* ---- telling --------------------------------------------------------------------------- */

static bool leader_watch_same_text(const char *a, size_t na, const char *b, size_t nb)
{
    return a && b ? na == nb && memcmp(a, b, na) == 0 : a == b;
}

static bool is_news(const clave_async_leader_watch *w)
{
    const struct view *a = &w->shown, *b = &w->now;
    if (!w->told || a->err != b->err || !a->node != !b->node)
        return true;
    return b->node && (a->stat.czxid != b->stat.czxid || strcmp(a->node, b->node) != 0 ||
                       !leader_watch_same_text(a->data, a->len, b->data, b->len) ||
                       !leader_watch_same_text(a->value, a->nvalue, b->value, b->nvalue));
}

/* The parse writes into the text, and what was shown is compared with: a copy. */
static clave_err leader_watch_describe(clave_async_leader_watch *w, clave_participant *p,
                                       char **text)
{
    const struct view *v = &w->now;
    *p = (clave_participant){.node = v->node, .stat = v->stat};
    *text = v->data ? clave__mem_strndup(w->mem, v->data, v->len) : NULL;
    if (v->data && !*text)
        return CLAVE_ENOMEM;
    if (*text)
        clave__identity_parse(*text, v->len, &p->identity);
    return CLAVE_OK;
}

static void retry_later(clave_async_leader_watch *w)
{
    clave__client_timer_set(w->client, &w->retry, clave__client_now(w->client) + RETRY_MS);
}

static void leader_watch_tell(clave_async_leader_watch *w)
{
    char *text = NULL;
    clave_participant leader;
    clave_leader_news news = {.err = w->now.err, .value = w->now.value, .len = w->now.nvalue};
    if (news.err == CLAVE_OK && w->now.node) {
        news.err = leader_watch_describe(w, &leader, &text);
        news.leader = news.err == CLAVE_OK ? &leader : NULL;
    }
    if (news.err == CLAVE_ENOMEM && w->now.err == CLAVE_OK) {
        w->now.err = CLAVE_ENOMEM;
        retry_later(w);
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
    struct view old = w->shown;
    w->shown = w->now;
    w->now = (struct view){0};
    w->told = true;
    w->refs++;
    w->cb(w, &news, w->arg);
    view_fini(w, &old);
    clave__mem_free(w->mem, text);
    leader_watch_drop(w);
}

/* ---- reading --------------------------------------------------------------------------- */

static void leader_watch_on_retry(struct timer *t, int64_t now)
{
    (void)now;
    read_from(LIST_ENTRY(t, struct clave_async_leader_watch, retry), STAGE_LIST);
}

static bool passes(clave_err err)
{
    clave_err_class class_ = clave_err_classify(err);
    return class_ == CLAVE_CLASS_RETRY || class_ == CLAVE_CLASS_UNKNOWN;
}

/* The reading is complete, or impossible. What it has found may be news though it has to begin
 * again: were only an undisturbed one told, a leader who is written to all the time would stay
 * unknown. But for who leads, which is read again because of somebody's end. */
static void leader_watch_conclude(clave_async_leader_watch *w, clave_err err)
{
    enum stage again = err == CLAVE_OK ? w->again : STAGE_NONE;
    w->reading = false;
    w->again = STAGE_NONE;
    if (err != CLAVE_OK) {
        view_fini(w, &w->now);
        w->now.err = err;
    }
    if (err != CLAVE_OK && err != CLAVE_ECLOSED)
        retry_later(w);
    /* What passes is not news to a follower, who waits anyway. */
    bool quiet = err != CLAVE_OK && passes(err) && w->cb;
    w->refs++;
    if (!quiet && again != STAGE_LIST && is_news(w))
        leader_watch_tell(w);
    if (again != STAGE_NONE && !is_freed(w))
        read_from(w, again);
    leader_watch_drop(w);
}

/* Every request of a reading is one of these; its reply goes on with the reading. */
static void leader_watch_submitted(clave_async_leader_watch *w, clave_err err)
{
    if (err == CLAVE_OK)
        w->refs++;
    else
        leader_watch_conclude(w, err);
}

/* One that is armed must not be given again. */
static clave_async_watch *if_idle(clave_async_watch *watch)
{
    return clave_async_watch_is_armed(watch) ? NULL : watch;
}

static void next_stage(clave_async_leader_watch *w, enum stage stage);

/* The start of every reply; false: there is nothing to go on with. */
static bool replied(clave_async_leader_watch *w)
{
    if (is_freed(w))
        return false;
    if (w->again == STAGE_LIST) {
        w->again = STAGE_NONE;
        next_stage(w, STAGE_LIST);
        return false;
    }
    return true;
}

static void on_vacant(clave_async_leader_watch *w)
{
    view_fini(w, &w->now);
    clave_async_watch_disarm(w->node_watch);
    clave_async_watch_disarm(w->value_watch);
    leader_watch_conclude(w, CLAVE_OK);
}

/* The queue's path itself is missing: it was watched for. */
static void on_path(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_leader_watch *w = arg;
    (void)c;
    if (res->err == CLAVE_OK && !is_freed(w))
        clave_async_watch_disarm(w->path_watch); /* of the path itself, not of its children */
    if (replied(w)) {
        if (res->err == CLAVE_OK)
            next_stage(w, STAGE_LIST);
        else if (res->err == CLAVE_ENONODE)
            on_vacant(w);
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

static clave_err set_node(clave_async_leader_watch *w, const char *name)
{
    if (w->now.node && strcmp(w->now.node, name) == 0)
        return CLAVE_OK;
    view_fini(w, &w->now);
    clave_async_watch_disarm(w->node_watch);
    w->now.node = clave__mem_strdup(w->mem, name);
    return w->now.node ? CLAVE_OK : CLAVE_ENOMEM;
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
    if (replied(w)) {
        const char *first = res->err == CLAVE_OK ? leader_watch_first_of(res) : NULL;
        if (res->err == CLAVE_ENONODE && !clave_async_watch_is_armed(w->path_watch))
            leader_watch_submitted(w, clave_async_exists(c, w->path, w->path_watch, on_path, w));
        else if (res->err != CLAVE_OK && res->err != CLAVE_ENONODE)
            leader_watch_conclude(w, res->err);
        else if (!first && !clave_async_watch_is_armed(w->path_watch))
            leader_watch_list(w, w->path_watch); /* seldom: only a vacancy is watched for */
        else if (!first)
            on_vacant(w);
        else if (set_node(w, first) != CLAVE_OK)
            leader_watch_conclude(w, CLAVE_ENOMEM);
        else
            next_stage(w, STAGE_NODE);
    }
    leader_watch_drop(w);
}

static clave_err take_node(clave_async_leader_watch *w, const clave_result *res)
{
    clave__mem_free(w->mem, w->now.data);
    w->now.data = NULL;
    w->now.len = res->len;
    if (res->stat)
        w->now.stat = *res->stat;
    if (res->err != CLAVE_OK)
        return CLAVE_OK; /* not ours to read, but it stands there */
    w->now.data = clave__mem_strndup(w->mem, res->len ? res->data : "", res->len);
    return w->now.data ? CLAVE_OK : CLAVE_ENOMEM;
}

static void on_node(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_leader_watch *w = arg;
    (void)c;
    if (replied(w)) {
        if (res->err == CLAVE_ENONODE)
            next_stage(w, STAGE_LIST);
        else if (res->err != CLAVE_OK && res->err != CLAVE_ENOAUTH)
            leader_watch_conclude(w, res->err);
        else if (take_node(w, res) != CLAVE_OK)
            leader_watch_conclude(w, CLAVE_ENOMEM);
        else
            next_stage(w, w->first ? STAGE_NONE : STAGE_VALUE);
    }
    leader_watch_drop(w);
}

static void get_node(clave_async_leader_watch *w)
{
    size_t ndir = strcmp(w->path, "/") == 0 ? 0 : strlen(w->path);
    size_t nname = strlen(w->now.node) + 1;
    char *path = clave__mem_alloc(w->mem, ndir + 1 + nname);
    clave_err err = CLAVE_ENOMEM;
    if (path) {
        memcpy(path, w->path, ndir);
        path[ndir] = '/';
        memcpy(path + ndir + 1, w->now.node, nname);
        err = clave_async_get(w->client, path, if_idle(w->node_watch), on_node, w);
    }
    clave__mem_free(w->mem, path);
    leader_watch_submitted(w, err);
}

/* ---- the value ------------------------------------------------------------------------- */

/* Behind the name of this leader's node. A former one's is none. */
static clave_err leader_watch_take_value(clave_async_leader_watch *w, const clave_result *res)
{
    size_t nname = strlen(w->now.node);
    const char *data = res->data;
    clave__mem_free(w->mem, w->now.value);
    w->now.value = NULL;
    w->now.nvalue = 0;
    if (res->err != CLAVE_OK || res->len <= nname || data[nname] != '\n' ||
        memcmp(data, w->now.node, nname) != 0)
        return CLAVE_OK;
    w->now.nvalue = res->len - nname - 1;
    w->now.value = clave__mem_strndup(w->mem, data + nname + 1, w->now.nvalue);
    return w->now.value ? CLAVE_OK : CLAVE_ENOMEM;
}

static void on_value(clave_async_client *c, const clave_result *res, void *arg);

/* It is missing, and that was watched for; unless it has come meanwhile. */
static void on_no_value(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_leader_watch *w = arg;
    if (replied(w)) {
        if (res->err == CLAVE_OK)
            leader_watch_submitted(w, clave_async_get(c, w->value_path, NULL, on_value, w));
        else if (res->err == CLAVE_ENONODE)
            leader_watch_conclude(w, leader_watch_take_value(w, res));
        else
            leader_watch_conclude(w, res->err);
    }
    leader_watch_drop(w);
}

static void on_value(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_leader_watch *w = arg;
    if (replied(w)) {
        if (res->err == CLAVE_ENONODE && !clave_async_watch_is_armed(w->value_watch))
            leader_watch_submitted(
                w, clave_async_exists(c, w->value_path, w->value_watch, on_no_value, w));
        else if (res->err == CLAVE_OK || res->err == CLAVE_ENOAUTH || res->err == CLAVE_ENONODE)
            leader_watch_conclude(w, leader_watch_take_value(w, res));
        else
            leader_watch_conclude(w, res->err);
    }
    leader_watch_drop(w);
}

/* ---- stages and events ----------------------------------------------------------------- */

static void next_stage(clave_async_leader_watch *w, enum stage stage)
{
    w->stage = stage;
    switch (stage) {
    case STAGE_LIST:
        leader_watch_list(w, NULL);
        break;
    case STAGE_NODE:
        clave_async_watch_disarm(w->path_watch);
        get_node(w);
        break;
    case STAGE_VALUE:
        leader_watch_submitted(
            w, clave_async_get(w->client, w->value_path, if_idle(w->value_watch), on_value, w));
        break;
    case STAGE_NONE:
        leader_watch_conclude(w, CLAVE_OK);
        break;
    }
}

/* The stages before are as they were shown. */
static clave_err begin_with_shown(clave_async_leader_watch *w)
{
    const struct view *old = &w->shown;
    view_fini(w, &w->now);
    w->now.stat = old->stat;
    w->now.len = old->len;
    w->now.node = clave__mem_strdup(w->mem, old->node);
    w->now.data = old->data ? clave__mem_strndup(w->mem, old->data, old->len) : NULL;
    return w->now.node && (w->now.data || !old->data) ? CLAVE_OK : CLAVE_ENOMEM;
}

static void read_from(clave_async_leader_watch *w, enum stage stage)
{
    /* A reading has failed and is to be tried again: who leads may have changed since. */
    if (w->retry.armed)
        stage = STAGE_LIST;
    if (w->reading) {
        /* The stages to come will show it. */
        if (stage <= w->stage && stage < w->again)
            w->again = stage;
        return;
    }
    w->reading = true;
    clave__client_timer_clear(w->client, &w->retry);
    if (stage != STAGE_LIST && !w->now.node && w->told && w->shown.node &&
        begin_with_shown(w) != CLAVE_OK)
        stage = STAGE_LIST;
    next_stage(w, w->now.node ? stage : STAGE_LIST);
}

static void on_path_event(clave_async_client *c, clave_async_watch *watch, const clave_event *ev,
                          void *arg)
{
    (void)c, (void)watch;
    if (ev->type != CLAVE_EVENT_LOST)
        read_from(arg, STAGE_LIST);
}

static void on_node_event(clave_async_client *c, clave_async_watch *watch, const clave_event *ev,
                          void *arg)
{
    (void)c, (void)watch;
    if (ev->type != CLAVE_EVENT_LOST)
        read_from(arg, ev->type == CLAVE_EVENT_DELETED ? STAGE_LIST : STAGE_NODE);
}

static void on_value_event(clave_async_client *c, clave_async_watch *watch, const clave_event *ev,
                           void *arg)
{
    (void)c, (void)watch;
    if (ev->type != CLAVE_EVENT_LOST)
        read_from(arg, STAGE_VALUE);
}

static void leader_watch_on_state(struct listener *listener, clave_state state, clave_err why)
{
    clave_async_leader_watch *w = LIST_ENTRY(listener, struct clave_async_leader_watch, listener);
    (void)why;
    /* A new session has no watches; over a mere reconnect they stay. */
    bool watched =
        clave_async_watch_is_armed(w->path_watch) || clave_async_watch_is_armed(w->node_watch);
    if ((state == CLAVE_STATE_CONNECTED || state == CLAVE_STATE_RECONNECTED) && !watched)
        read_from(w, STAGE_LIST);
    else if (state == CLAVE_STATE_CLOSED && !w->reading) {
        w->reading = true;
        leader_watch_conclude(w, CLAVE_ECLOSED);
    }
}

/* ---- the calls ------------------------------------------------------------------------- */

static clave_err open_watches(clave_async_leader_watch *w)
{
    clave_err err = clave_async_watch_new(&w->path_watch, w->client, on_path_event, w);
    if (err == CLAVE_OK)
        err = clave_async_watch_new(&w->node_watch, w->client, on_node_event, w);
    if (err == CLAVE_OK)
        err = clave_async_watch_new(&w->value_watch, w->client, on_value_event, w);
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
    clave_err err = w->path && w->value_path ? open_watches(w) : CLAVE_ENOMEM;
    if (err == CLAVE_OK)
        err = clave_async_children(c, path, NULL, leader_watch_on_names, w);
    if (err != CLAVE_OK) {
        clave_async_leader_watch_free(w);
        return err;
    }
    w->refs++;
    w->reading = true;
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
    return clave__roll_call(c, path, &clave__queue_order_latch, true, cb, arg);
}
