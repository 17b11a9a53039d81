/* watch_recursive.c - `clave watch --recursive`: a cache of the tree on the loop's thread, whose
 * events the main thread prints. verbs/tree/watch.c calls it.
 *
 * What must stay true: the loop's thread never waits for whoever reads the output. Events that have
 * not been printed yet are kept in `first`, at most EVENTS_MAX of them. */
#include "cmd/verbs/tree/watch_recursive.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clave/async/cache.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/format.h"
#include "cmd/cli/json.h"

enum { EVENTS_MAX = 1000000 };

struct tree_event {
    struct tree_event *next;
    const char *name;
    bool is_change; /* not part of the tree's first reading */
    bool has_stat;
    clave_stat stat;
    char path[];
};

struct tree_watch {
    const char *path;

    /* Used on the loop's thread only. */
    clave_async_cache *cache;
    bool loaded;

    /* Shared by both threads, under the mutex. */
    pthread_mutex_t mutex;
    struct tree_event *first, **last;
    size_t count;
    clave_err err; /* why there will be no more events */
    int wakeup;    /* an eventfd */
};

/* ---- on the loop's thread ------------------------------------------------------------------- */

static void watch_recursive_fail(struct tree_watch *w, clave_err err)
{
    pthread_mutex_lock(&w->mutex);
    if (w->err == CLAVE_OK)
        w->err = err;
    eventfd_write(w->wakeup, 1);
    pthread_mutex_unlock(&w->mutex);
}

static void watch_recursive_add(struct tree_watch *w, const char *name, const char *path,
                                const clave_cache_node *node)
{
    size_t n = strlen(path) + 1;
    struct tree_event *e = calloc(1, sizeof *e + n);
    pthread_mutex_lock(&w->mutex);
    if (!e || w->count == EVENTS_MAX) {
        w->err = CLAVE_ENOMEM;
        free(e);
    } else {
        e->name = name;
        e->is_change = w->loaded;
        e->has_stat = node && (!node->unreadable || node->stat.czxid != 0);
        if (node)
            e->stat = node->stat;
        memcpy(e->path, path, n);
        assert(!*w->last);
        *w->last = e;
        w->last = &e->next;
        w->count++;
    }
    eventfd_write(w->wakeup, 1);
    pthread_mutex_unlock(&w->mutex);
}

static void watch_recursive_loaded(struct tree_watch *w, const clave_async_cache *cache)
{
    assert(!w->loaded);
    clave_cache_node top;
    bool is_there = clave_async_cache_get(cache, w->path, &top) == CLAVE_OK;
    watch_recursive_add(w, is_there ? "watching" : "watching-missing", w->path,
                        is_there ? &top : NULL);
    w->loaded = true;
}

static void watch_recursive_on_event(clave_async_cache *cache, const clave_cache_event *ev,
                                     void *arg)
{
    struct tree_watch *w = arg;
    if (ev->type == CLAVE_CACHE_ENDED)
        watch_recursive_fail(w, ev->err);
    else if (ev->type == CLAVE_CACHE_INITIALIZED)
        watch_recursive_loaded(w, cache);
    else if (!w->loaded)
        return;
    else if (ev->type == CLAVE_CACHE_CREATED)
        watch_recursive_add(w, "created", ev->path, ev->now);
    else if (ev->type == CLAVE_CACHE_CHANGED)
        watch_recursive_add(w, "changed", ev->path, ev->now);
    else if (ev->type == CLAVE_CACHE_DELETED)
        watch_recursive_add(w, "deleted", ev->path, NULL);
}

static void watch_recursive_begin(clave_async_client *c, void *arg)
{
    struct tree_watch *w = arg;
    clave_cache_options o = CLAVE_CACHE_OPTIONS_INIT;
    o.without_data = true;
    clave_err err = clave_async_cache_new(&w->cache, c, w->path, &o, watch_recursive_on_event, w);
    if (err != CLAVE_OK)
        watch_recursive_fail(w, err);
}

static void watch_recursive_end(clave_async_client *c, void *arg)
{
    struct tree_watch *w = arg;
    (void)c;
    clave_async_cache_free(w->cache);
}

/* ---- output --------------------------------------------------------------------------------- */

void tree_watch_show(const struct options *o, const char *event, const char *path,
                     const clave_stat *st)
{
    struct json j;
    if (o->json) {
        json_begin(&j, stdout);
        clave__json_string(&j, "event", event);
        clave__json_string(&j, "path", path);
        if (st)
            json_stat(&j, "stat", st);
        json_end(&j);
        return;
    }
    printf("%s ", event);
    format_name(stdout, path);
    if (st)
        printf(" version %d zxid 0x%" PRIx64, (int)st->version, (uint64_t)st->mzxid);
    putchar('\n');
}

static struct tree_event *watch_recursive_take(struct tree_watch *w, clave_err *err)
{
    eventfd_t count;
    pthread_mutex_lock(&w->mutex);
    eventfd_read(w->wakeup, &count);
    struct tree_event *e = w->first;
    w->first = NULL;
    w->last = &w->first;
    w->count = 0;
    *err = w->err;
    pthread_mutex_unlock(&w->mutex);
    return e;
}

/* Prints and frees the events; with `once` only up to the first change. Returns whether there was a
 * change. */
static bool watch_recursive_print(const struct options *o, struct tree_event *e, bool once)
{
    bool changed = false;
    for (struct tree_event *next; e; e = next) {
        next = e->next;
        if (!(once && changed))
            tree_watch_show(o, e->name, e->path, e->has_stat ? &e->stat : NULL);
        changed = changed || e->is_change;
        free(e);
    }
    fflush(stdout);
    return changed;
}

/* Waits. Returns the number of a signal, or 0 when there are events. */
static int watch_recursive_wait(const struct tree_watch *w, int signals)
{
    struct pollfd fds[] = {{.fd = signals, .events = POLLIN}, {.fd = w->wakeup, .events = POLLIN}};
    struct signalfd_siginfo info;
    while (poll(fds, 2, -1) < 0)
        if (errno != EINTR)
            break;
    if (fds[0].revents && read(signals, &info, sizeof info) == (ssize_t)sizeof info)
        return (int)info.ssi_signo;
    return 0;
}

static int watch_recursive_follow(struct tree_watch *w, struct options *o, bool once,
                                  clave_client *c, int signals)
{
    for (;;) {
        clave_err err;
        int signo = watch_recursive_wait(w, signals);
        if (signo)
            return 128 + signo;
        bool changed = watch_recursive_print(o, watch_recursive_take(w, &err), once);
        if (err != CLAVE_OK)
            return diag_err(o, w->path, err, c);
        if (ferror(stdout) || (once && changed))
            return EXIT_OK;
    }
}

int tree_watch(struct options *o, const char *path, bool once, clave_client *c, int signals)
{
    struct tree_watch w = {.path = path, .mutex = PTHREAD_MUTEX_INITIALIZER};
    w.last = &w.first;
    w.wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w.wakeup < 0)
        return diag_end(o, NULL, EXIT_INTERNAL, "%s", strerror(errno));
    clave_client_run(c, watch_recursive_begin, &w);
    int code = watch_recursive_follow(&w, o, once, c, signals);
    clave_client_run(c, watch_recursive_end, &w);
    clave_err err;
    for (struct tree_event *e = watch_recursive_take(&w, &err), *next; e; e = next) {
        next = e->next;
        free(e);
    }
    close(w.wakeup);
    return code;
}
