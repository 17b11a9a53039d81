/* counter.c - a number in a node, changed exactly once by each call; see clave/async/counter.h.
 *
 *     READ ──▶ WRITE ──▶ (done)
 *      ▲ ▲      │ │ ▲
 *      │ └──────┘ │ └──── lost answer: the same transaction again
 *      │ overtaken│ └──── PARENTS, of the counter or of the marker
 *      │          └─────▶ VERDICT (the marker shows that it was done before)
 *
 * A write is multi{marker, counter}. Its operation on the marker names the marker's version (or
 * creates the marker), and no two writes that were done have named the same version. So of all the
 * transactions sent for one change at most one is done, however late it arrives and whatever others
 * do to the counter meanwhile; and if one was done, the next one fails at the marker, whose data
 * are the values of the change. What must stay true: a change in doubt is repeated only with the
 * same version of the same marker, in the same session; no request of a counter waits in the client
 * for a connection, because freeing the counter could not call it off there. */
#include "clave/async/counter.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err_class.h"
#include "base/path.h"
#include "client/client_for_recipes.h"

enum { NUMBER = 8, NOTE = 2 * NUMBER, PAUSE_MS = 100, PAUSE_MAX_MS = 5000 };

enum counter_act { COUNTER_GET, COUNTER_ADD, COUNTER_SET, COUNTER_COMPARE };
enum counter_step { STEP_READ, STEP_WRITE, STEP_MARKER_PARENT, STEP_PARENTS, STEP_VERDICT };

struct counter_op {
    struct list link;
    enum counter_act act;
    int64_t value; /* delta, or the new value */
    int64_t expected;
    clave_async_counter_cb *cb;
    void *arg;
};

struct clave_async_counter {
    clave_async_client *client;
    const struct clave_mem *mem;
    char *path;
    char *markers; /* the container */
    char *marker;
    struct list ops; /* the first one is under way */
    enum counter_step step;
    bool asking;
    bool freed;
    int32_t failures; /* in a row */
    struct timer pause;
    struct listener listener;
    unsigned refs; /* the user, a request under way, and running calls */

    int64_t session; /* the session that the marker belongs to; 0: there is no marker yet */
    bool has_marker; /* it was created */
    int32_t marker_version;
    clave_err doubt; /* the error of a write that may have been done; CLAVE_OK: there is none */
    bool exists;     /* the counter's node, as it was read: */
    int32_t version;
    int64_t before, after;
};

static void counter_go(clave_async_counter *n);

static void counter_drop(clave_async_counter *n)
{
    assert(n->refs > 0);
    if (--n->refs > 0)
        return;
    for (struct list *e; (e = list_pop_front(&n->ops));)
        clave__mem_free(n->mem, LIST_ENTRY(e, struct counter_op, link));
    clave__mem_free(n->mem, n->path);
    clave__mem_free(n->mem, n->markers);
    clave__mem_free(n->mem, n->marker);
    clave__mem_free(n->mem, n);
}

/* The operation under way; there is one. */
static struct counter_op *counter_first(clave_async_counter *n)
{
    assert(!list_empty(&n->ops));
    return LIST_ENTRY(n->ops.next, struct counter_op, link);
}

/* Answers the first operation, and begins the next one. */
static void counter_finish(clave_async_counter *n, clave_err err)
{
    struct counter_op *op = counter_first(n);
    list_remove(&op->link);
    clave_async_counter_cb *cb = op->cb;
    void *arg = op->arg;
    clave__mem_free(n->mem, op);
    n->step = STEP_READ;
    n->doubt = CLAVE_OK;
    n->failures = 0;
    if (cb && !n->freed)
        cb(n, err, n->before, n->after, arg);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void counter_put(uint8_t out[NUMBER], int64_t value)
{
    for (int i = 0; i < NUMBER; i++)
        out[i] = (uint8_t)((uint64_t)value >> (8 * (NUMBER - 1 - i)));
}

static int64_t counter_take(const uint8_t *p)
{
    uint64_t value = 0;
    for (int i = 0; i < NUMBER; i++)
        value = value << 8 | p[i];
    return (int64_t)value;
}

/* What the first operation makes of the value that was read. */
static clave_err counter_compute(clave_async_counter *n)
{
    const struct counter_op *op = counter_first(n);
    n->after = op->act == COUNTER_GET ? n->before : op->value;
    if (op->act == COUNTER_ADD && __builtin_add_overflow(n->before, op->value, &n->after)) {
        clave__client_fault_of(n->client, CLAVE_EINVAL, "",
                               "%s is %" PRId64 ", and the sum has more than 64 bits", n->path,
                               n->before);
        return CLAVE_EINVAL;
    }
    if (op->act == COUNTER_COMPARE && !n->exists)
        return CLAVE_ENONODE;
    return op->act == COUNTER_COMPARE && n->before != op->expected ? CLAVE_EBADVERSION : CLAVE_OK;
}

/* ---- the marker ------------------------------------------------------------------------------ */

/* Before a write that is not in doubt: chooses a marker for the current session, with a name of its
 * own. */
static void counter_prepare_marker(clave_async_counter *n)
{
    int64_t id = clave_async_client_session_id(n->client);
    char prefix[CLAVE_PROTECTED_PREFIX + 1];
    if (n->doubt != CLAVE_OK || (n->session == id && n->session != 0))
        return;
    n->session = id;
    n->has_marker = false;
    clave__client_protect(n->client, prefix); /* "_c_<uuid>-" */
    memcpy(n->marker + strlen(n->markers) + 1, prefix + 3, CLAVE_UUID_TEXT);
}

/* The marker was deleted or written to by somebody else: the next write creates another one. */
static void counter_forget_marker(clave_async_counter *n)
{
    n->session = 0;
    n->step = STEP_WRITE;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* An error that does not tell whether the change was done. A doubt lasts until its session ends. */
static void counter_trouble(clave_async_counter *n, clave_err err)
{
    bool lost = err == CLAVE_ENOTSENT || err == CLAVE_EEXPIRED || err == CLAVE_ECLOSED ||
                clave_async_client_session_id(n->client) != n->session;
    if (n->doubt != CLAVE_OK && lost) {
        counter_finish(n, n->doubt);
        return;
    }
    if (!clave__err_passes(err)) {
        counter_finish(n, n->doubt != CLAVE_OK ? n->doubt : err);
        return;
    }
    int64_t ms = n->failures > 0 ? PAUSE_MS : 0;
    for (int32_t i = 1; i < n->failures && ms < PAUSE_MAX_MS; i++)
        ms *= 2;
    n->failures++;
    if (n->doubt == CLAVE_OK)
        n->step = STEP_READ;
    clave__client_timer_set(n->client, &n->pause, clave__client_now(n->client) + ms);
}

static void counter_read(clave_async_counter *n, const clave_result *res)
{
    bool missing = res->err == CLAVE_ENONODE;
    if (res->err != CLAVE_OK && !missing) {
        counter_trouble(n, res->err);
        return;
    }
    clave_err err = CLAVE_OK;
    n->exists = !missing;
    n->before = 0;
    n->version = missing ? 0 : res->stat->version;
    if (!missing && res->len == NUMBER)
        n->before = counter_take(res->data);
    else if (!missing && res->len != 0) {
        err = CLAVE_EINVAL;
        clave__client_fault_of(n->client, CLAVE_EINVAL, "",
                               "%s has %zu bytes of data, and a counter has %d", n->path, res->len,
                               NUMBER);
    }
    if (err == CLAVE_OK)
        err = counter_compute(n);
    n->step = STEP_WRITE;
    if (n->doubt != CLAVE_OK && err != CLAVE_OK)
        counter_finish(n, n->doubt); /* no write can be made that would show if it was done */
    else if (err != CLAVE_OK || counter_first(n)->act == COUNTER_GET)
        counter_finish(n, err);
}

/* The transaction was refused at the marker. */
static void counter_refused_by_marker(clave_async_counter *n, clave_err err)
{
    bool done = err == (n->has_marker ? CLAVE_EBADVERSION : CLAVE_ENODEEXISTS);
    if (!n->has_marker && err == CLAVE_ENONODE)
        n->step = STEP_MARKER_PARENT;
    else if (n->doubt != CLAVE_OK && done)
        n->step = STEP_VERDICT;
    else if (n->doubt != CLAVE_OK)
        counter_finish(n, n->doubt); /* the marker is gone, and nothing else would tell */
    else if (done || err == CLAVE_ENONODE)
        counter_forget_marker(n);
    else
        counter_trouble(n, err);
}

/* The transaction was refused at the counter: others were faster, or the counter does not exist, or
 * not even its parent. */
static void counter_refused_by_counter(clave_async_counter *n, clave_err err)
{
    if (!n->exists && err == CLAVE_ENONODE)
        n->step = STEP_PARENTS;
    else if (err == CLAVE_EBADVERSION || err == CLAVE_ENONODE || err == CLAVE_ENODEEXISTS)
        n->step = STEP_READ;
    else
        counter_trouble(n, err);
}

static void counter_written(clave_async_counter *n, const clave_result *res)
{
    if (res->err == CLAVE_OK) {
        n->session = clave_async_client_session_id(n->client);
        n->marker_version = n->has_marker ? n->marker_version + 1 : 0;
        n->has_marker = true;
        counter_finish(n, CLAVE_OK);
    } else if (res->nops == 2 && res->ops[0].err != CLAVE_OK && !clave__err_passes(res->err)) {
        counter_refused_by_marker(n, res->ops[0].err);
    } else if (res->nops == 2 && !clave__err_passes(res->err)) {
        counter_refused_by_counter(n, res->ops[1].err);
    } else {
        if (clave_err_classify(res->err) == CLAVE_CLASS_UNKNOWN)
            n->doubt = res->err;
        counter_trouble(n, res->err);
    }
}

/* The marker's data are the values of the write that was done. */
static void counter_judge(clave_async_counter *n, const clave_result *res)
{
    int32_t version = n->has_marker ? n->marker_version + 1 : 0;
    if (res->err != CLAVE_OK && res->err != CLAVE_ENONODE) {
        counter_trouble(n, res->err);
    } else if (res->err == CLAVE_OK && res->stat->version == version && res->len == NOTE) {
        n->before = counter_take(res->data);
        n->after = counter_take((const uint8_t *)res->data + NUMBER);
        n->marker_version = version;
        n->has_marker = true;
        counter_finish(n, CLAVE_OK);
    } else {
        counter_finish(n, n->doubt);
        counter_forget_marker(n);
        n->step = STEP_READ;
    }
}

static void counter_on_answer(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_counter *n = arg;
    (void)c;
    n->asking = false;
    bool made = res->err == CLAVE_OK || res->err == CLAVE_ENODEEXISTS;
    if (n->freed)
        n->step = STEP_READ;
    else if (n->step == STEP_READ)
        counter_read(n, res);
    else if (n->step == STEP_WRITE)
        counter_written(n, res);
    else if (n->step == STEP_VERDICT)
        counter_judge(n, res);
    else if (made)
        n->step = STEP_WRITE;
    else
        counter_trouble(n, res->err);
    counter_go(n);
    counter_drop(n);
}

/* ---- requests -------------------------------------------------------------------------------- */

static clave_err counter_ask_value(clave_async_counter *n)
{
    const struct counter_op *op = counter_first(n);
    /* without a sync, the server might answer with an old value */
    if (op->act == COUNTER_GET || op->act == COUNTER_COMPARE) {
        clave_err err = clave_async_sync(n->client, n->path, NULL, NULL);
        if (err != CLAVE_OK)
            return err;
    }
    return clave_async_get(n->client, n->path, NULL, counter_on_answer, n);
}

static clave_err counter_write(clave_async_counter *n)
{
    uint8_t note[NOTE];
    counter_prepare_marker(n);
    counter_put(note, n->before);
    counter_put(note + NUMBER, n->after);
    const clave_op ops[] = {{.kind = n->has_marker ? CLAVE_OP_SET : CLAVE_OP_CREATE,
                             .path = n->marker,
                             .data = note,
                             .len = NOTE,
                             .mode = CLAVE_EPHEMERAL,
                             .version = n->marker_version},
                            {.kind = n->exists ? CLAVE_OP_SET : CLAVE_OP_CREATE,
                             .path = n->path,
                             .data = note + NUMBER,
                             .len = NUMBER,
                             .mode = CLAVE_PERSISTENT,
                             .version = n->version}};
    return clave_async_multi(n->client, ops, 2, counter_on_answer, n);
}

static clave_err counter_make_parents(clave_async_counter *n)
{
    clave_create_options o = {
        .size = sizeof o, .mode = CLAVE_CONTAINER, .flags = CLAVE_CREATE_PARENTS};
    if (n->step == STEP_MARKER_PARENT)
        return clave_async_create(n->client, n->markers, "", 0, &o, counter_on_answer, n);
    char *parent =
        clave__mem_strndup(n->mem, n->path, clave__path_parent_len(n->path, strlen(n->path)));
    if (!parent)
        return CLAVE_ENOMEM;
    clave_err err = clave_async_create(n->client, parent, "", 0, &o, counter_on_answer, n);
    clave__mem_free(n->mem, parent);
    return err;
}

static clave_err counter_ask(clave_async_counter *n)
{
    switch (n->step) {
    case STEP_READ:
        return counter_ask_value(n);
    case STEP_WRITE:
        return counter_write(n);
    case STEP_VERDICT:
        return clave_async_get(n->client, n->marker, NULL, counter_on_answer, n);
    case STEP_MARKER_PARENT:
    case STEP_PARENTS:
        break;
    }
    return counter_make_parents(n);
}

/* On a closed client the request fails at once, which ends the operation. */
static bool counter_may_ask(const clave_async_counter *n)
{
    return clave_async_client_is_connected(n->client) ||
           clave_async_client_state(n->client) == CLAVE_STATE_CLOSED;
}

/* The only place that asks the server, one request at a time. */
static void counter_go(clave_async_counter *n)
{
    n->refs++;
    while (!n->asking && !n->freed && !n->pause.armed && !list_empty(&n->ops)) {
        if (!counter_may_ask(n))
            break; /* until the state changes */
        clave_err err = counter_ask(n);
        n->asking = err == CLAVE_OK;
        if (n->asking)
            n->refs++;
        else
            counter_trouble(n, err); /* ends the operation, or sets the timer */
    }
    counter_drop(n);
}

/* A change in doubt ends with its session, even while it pauses between two attempts. A change that
 * is certainly not done goes on in the next session. */
static void counter_on_state(struct listener *l, clave_state state, clave_err why)
{
    clave_async_counter *n = LIST_ENTRY(l, struct clave_async_counter, listener);
    (void)why;
    if (state == CLAVE_STATE_SUSPENDED)
        return;
    n->refs++;
    clave__client_timer_clear(n->client, &n->pause);
    if (state == CLAVE_STATE_LOST && n->doubt != CLAVE_OK && !n->asking)
        counter_finish(n, n->doubt);
    counter_go(n);
    counter_drop(n);
}

static void counter_on_pause(struct timer *t, int64_t now)
{
    (void)now;
    counter_go(LIST_ENTRY(t, struct clave_async_counter, pause));
}

/* ---- the calls ------------------------------------------------------------------------------- */

clave_err clave_async_counter_new(clave_async_counter **out, clave_async_client *c,
                                  const char *path)
{
    const struct clave_mem *mem = clave__client_mem(c);
    size_t len = strlen(path);
    *out = NULL;
    const char *fault = clave__path_fault(path, len, false);
    if (fault || len == 1) {
        clave__client_fault(c, "the counter's path \"%s\" %s", path, fault ? fault : "is the root");
        return CLAVE_EPATH;
    }
    clave_async_counter *n = clave__mem_zalloc(mem, sizeof *n);
    if (!n)
        return CLAVE_ENOMEM;
    *n = (clave_async_counter){.client = c, .mem = mem, .refs = 1};
    list_init(&n->ops);
    list_init(&n->listener.link);
    n->listener.on_state = counter_on_state;
    clave__timer_init(&n->pause, counter_on_pause);
    clave__client_ref(c);
    size_t cap = len + sizeof "-markers/" + CLAVE_UUID_TEXT;
    n->path = clave__mem_strdup(mem, path);
    n->markers = clave__mem_zalloc(mem, cap);
    n->marker = clave__mem_zalloc(mem, cap);
    if (!n->path || !n->markers || !n->marker) {
        clave_async_counter_free(n);
        return CLAVE_ENOMEM;
    }
    snprintf(n->markers, cap, "%s-markers", path);
    snprintf(n->marker, cap, "%s-markers/", path);
    clave__client_listen(c, &n->listener);
    *out = n;
    return CLAVE_OK;
}

void clave_async_counter_free(clave_async_counter *n)
{
    if (!n)
        return;
    clave_async_client *c = n->client;
    bool may_stand = n->has_marker || n->doubt != CLAVE_OK || (n->asking && n->step == STEP_WRITE);
    n->freed = true;
    clave__client_unlisten(&n->listener);
    clave__client_timer_clear(c, &n->pause);
    if (may_stand && n->session != 0 && clave_async_client_session_id(c) == n->session)
        (void)clave_async_delete_guaranteed(c, n->marker, NULL, NULL);
    counter_drop(n);
    clave__client_unref(c);
}

static clave_err counter_begin(clave_async_counter *n, const struct counter_op *spec)
{
    if (clave_async_client_state(n->client) == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    struct counter_op *op = clave__mem_zalloc(n->mem, sizeof *op);
    if (!op)
        return CLAVE_ENOMEM;
    *op = *spec;
    bool idle = list_empty(&n->ops);
    list_push_back(&n->ops, &op->link);
    if (!idle || !counter_may_ask(n))
        return CLAVE_OK;
    clave_err err = counter_ask(n);
    n->asking = err == CLAVE_OK;
    if (n->asking) {
        n->refs++;
    } else {
        list_remove(&op->link);
        clave__mem_free(n->mem, op);
    }
    return err;
}

clave_err clave_async_counter_get(clave_async_counter *n, clave_async_counter_cb *cb, void *arg)
{
    return counter_begin(n, &(struct counter_op){.act = COUNTER_GET, .cb = cb, .arg = arg});
}

clave_err clave_async_counter_add(clave_async_counter *n, int64_t delta, clave_async_counter_cb *cb,
                                  void *arg)
{
    return counter_begin(
        n, &(struct counter_op){.act = COUNTER_ADD, .value = delta, .cb = cb, .arg = arg});
}

clave_err clave_async_counter_set(clave_async_counter *n, int64_t value, clave_async_counter_cb *cb,
                                  void *arg)
{
    return counter_begin(
        n, &(struct counter_op){.act = COUNTER_SET, .value = value, .cb = cb, .arg = arg});
}

clave_err clave_async_counter_compare_and_set(clave_async_counter *n, int64_t expected,
                                              int64_t value, clave_async_counter_cb *cb, void *arg)
{
    return counter_begin(
        n, &(struct counter_op){
               .act = COUNTER_COMPARE, .value = value, .expected = expected, .cb = cb, .arg = arg});
}
