/* persistent_watcher.c - keeps a persistent watch armed; see clave/async/persistent_watcher.h.
 * Implements the public API, which the cache is built on. The client itself registers an armed
 * watch again on each connection before anything is read. A new session needs a new addWatch, which
 * this file sends, and repeats with pauses if it fails.
 *
 *     ASKED ──▶ ARMED ◀──▶ SUSPENDED        each ──▶ ENDED
 *      │ ▲________│____________│   the session ended
 *      ▼ │
 *     PAUSED */
#include "clave/async/persistent_watcher.h"

#include <assert.h>
#include <string.h>

#include "base/err_class.h"
#include "client/client_for_recipes.h"

enum { PAUSE_MS = 100, PAUSE_MAX_MS = 5000 };

enum watcher_phase {
    WATCHER_ASKED,
    WATCHER_PAUSED,
    WATCHER_ARMED,
    WATCHER_SUSPENDED,
    WATCHER_ENDED,
};

struct clave_async_persistent_watcher {
    clave_async_client *client;
    const struct clave_mem *mem;
    char *path;
    clave_async_persistent_watcher_cb *cb; /* NULL: freed */
    void *arg;
    clave_watch_mode mode;
    clave_async_watch *watch;
    struct listener listener;
    struct timer pause;
    int32_t failures; /* failures in a row */
    enum watcher_phase phase;
    unsigned refs; /* the user, a request under way, and running calls */
};

static void watcher_drop(clave_async_persistent_watcher *w)
{
    assert(w->refs > 0);
    if (--w->refs > 0)
        return;
    clave__mem_free(w->mem, w->path);
    clave__mem_free(w->mem, w);
}

void clave_async_persistent_watcher_free(clave_async_persistent_watcher *w)
{
    if (!w)
        return;
    w->cb = NULL;
    clave__client_unlisten(&w->listener);
    clave__client_timer_clear(w->client, &w->pause);
    clave_async_watch_free(w->watch);
    clave_async_client *c = w->client;
    watcher_drop(w);
    clave__client_unref(c);
}

bool clave_async_persistent_watcher_is_armed(const clave_async_persistent_watcher *w)
{
    return w->phase == WATCHER_ARMED;
}

static void watcher_tell(clave_async_persistent_watcher *w,
                         clave_persistent_watcher_event_type type, const char *path, clave_err err)
{
    clave_persistent_watcher_event ev = {.type = type, .path = path, .err = err};
    if (!w->cb)
        return;
    w->refs++;
    w->cb(w, &ev, w->arg);
    watcher_drop(w);
}

/* Changes the phase, and reports what that means to the user; nothing else changes it. */
static void watcher_enter(clave_async_persistent_watcher *w, enum watcher_phase phase,
                          clave_err why)
{
    w->phase = phase;
    if (phase == WATCHER_ARMED)
        w->failures = 0;
    if (phase == WATCHER_ARMED)
        watcher_tell(w, CLAVE_PERSISTENT_WATCHER_ARMED, w->path, CLAVE_OK);
    else if (phase == WATCHER_SUSPENDED)
        watcher_tell(w, CLAVE_PERSISTENT_WATCHER_SUSPENDED, w->path, CLAVE_OK);
    else if (phase == WATCHER_ENDED)
        watcher_tell(w, CLAVE_PERSISTENT_WATCHER_ENDED, w->path, why);
}

/* ---- requesting ------------------------------------------------------------------------------ */

/* Pauses double, so that a server that refuses is not asked over and over. */
static void watcher_pause(clave_async_persistent_watcher *w)
{
    int64_t ms = PAUSE_MS;
    for (int32_t i = 0; i < w->failures && ms < PAUSE_MAX_MS; i++)
        ms *= 2;
    w->failures++;
    clave__client_timer_set(w->client, &w->pause,
                            clave__client_now(w->client) + (ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS));
    watcher_enter(w, WATCHER_PAUSED, CLAVE_OK);
}

static void watcher_failed(clave_async_persistent_watcher *w, clave_err err)
{
    if (clave__err_passes(err))
        watcher_pause(w);
    else
        watcher_enter(w, WATCHER_ENDED, err);
}

static void watcher_on_answer(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_persistent_watcher *w = arg;
    (void)c;
    if (w->cb && res->err == CLAVE_OK)
        watcher_enter(w, WATCHER_ARMED, CLAVE_OK);
    else if (w->cb)
        watcher_failed(w, res->err);
    watcher_drop(w);
}

static clave_err watcher_ask(clave_async_persistent_watcher *w)
{
    clave_err err =
        clave_async_add_watch(w->client, w->path, w->mode, w->watch, watcher_on_answer, w);
    if (err != CLAVE_OK)
        return err;
    w->refs++;
    watcher_enter(w, WATCHER_ASKED, CLAVE_OK);
    return CLAVE_OK;
}

static void watcher_ask_again(clave_async_persistent_watcher *w)
{
    clave_err err = watcher_ask(w);
    if (err != CLAVE_OK)
        watcher_failed(w, err);
}

static void watcher_on_pause(struct timer *t, int64_t now)
{
    (void)now;
    watcher_ask_again(LIST_ENTRY(t, struct clave_async_persistent_watcher, pause));
}

/* ---- events ---------------------------------------------------------------------------------- */

static void watcher_on_event(clave_async_client *c, clave_async_watch *watch, const clave_event *ev,
                             void *arg)
{
    static const clave_persistent_watcher_event_type types[] = {
        [CLAVE_EVENT_CREATED] = CLAVE_PERSISTENT_WATCHER_CREATED,
        [CLAVE_EVENT_DELETED] = CLAVE_PERSISTENT_WATCHER_DELETED,
        [CLAVE_EVENT_CHANGED] = CLAVE_PERSISTENT_WATCHER_CHANGED,
        [CLAVE_EVENT_CHILDREN] = CLAVE_PERSISTENT_WATCHER_CHILDREN,
    };
    clave_async_persistent_watcher *w = arg;
    (void)c;
    (void)watch;
    if (ev->type == CLAVE_EVENT_LOST)
        watcher_ask_again(w);
    else
        watcher_tell(w, types[ev->type], ev->path, CLAVE_OK);
}

static void watcher_on_state(struct listener *l, clave_state state, clave_err why)
{
    clave_async_persistent_watcher *w =
        LIST_ENTRY(l, struct clave_async_persistent_watcher, listener);
    bool up = state == CLAVE_STATE_CONNECTED || state == CLAVE_STATE_RECONNECTED ||
              state == CLAVE_STATE_READ_ONLY;
    (void)why;
    if (w->phase == WATCHER_ARMED && !up)
        watcher_enter(w, WATCHER_SUSPENDED, CLAVE_OK);
    else if (w->phase == WATCHER_SUSPENDED && up && clave_async_watch_is_armed(w->watch))
        watcher_enter(
            w, WATCHER_ARMED,
            CLAVE_OK); /* its setWatches2 goes out before anything that is requested now */
    else if (w->phase == WATCHER_PAUSED && state == CLAVE_STATE_CLOSED)
        watcher_enter(w, WATCHER_ENDED, CLAVE_ECLOSED);
}

/* ---- the calls ------------------------------------------------------------------------------- */

static clave_err watcher_make(clave_async_persistent_watcher **out, clave_async_client *c,
                              const char *path)
{
    const struct clave_mem *mem = clave__client_mem(c);
    clave_async_persistent_watcher *w = clave__mem_zalloc(mem, sizeof *w);
    *out = w;
    if (!w)
        return CLAVE_ENOMEM;
    w->client = c;
    w->mem = mem;
    w->refs = 1;
    list_init(&w->listener.link);
    w->listener.on_state = watcher_on_state;
    clave__timer_init(&w->pause, watcher_on_pause);
    clave__client_ref(c);
    w->path = clave__mem_strdup(mem, path);
    return w->path ? clave_async_watch_new(&w->watch, c, watcher_on_event, w) : CLAVE_ENOMEM;
}

clave_err clave_async_persistent_watcher_new(clave_async_persistent_watcher **out,
                                             clave_async_client *c, const char *path,
                                             const clave_persistent_watcher_options *o,
                                             clave_async_persistent_watcher_cb *cb, void *arg)
{
    clave_persistent_watcher_options options;
    clave_async_persistent_watcher *w;
    *out = NULL;
    clave_err err = clave__client_take_options(c, &options, sizeof options, o,
                                               "clave_persistent_watcher_options");
    if (err != CLAVE_OK)
        return err;
    if (!cb || !path)
        return path ? CLAVE_EINVAL : CLAVE_EPATH;
    err = watcher_make(&w, c, path);
    if (err == CLAVE_OK) {
        w->mode = options.single_node ? CLAVE_WATCH_PERSISTENT : CLAVE_WATCH_PERSISTENT_RECURSIVE;
        w->cb = cb;
        w->arg = arg;
        err = watcher_ask(w);
    }
    if (err != CLAVE_OK) {
        clave_async_persistent_watcher_free(w);
        return err;
    }
    clave__client_listen(c, &w->listener);
    *out = w;
    return CLAVE_OK;
}
