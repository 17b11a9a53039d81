/* watch.c - `clave watch`: prints what happens to a node until it is interrupted.
 *
 * A watch fires once and says only that something has happened. So what is printed comes from
 * comparing the previous reading with the present one. No final state is missed that way, neither
 * between two watches nor while the connection or the session was lost. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/err_class.h"
#include "base/path.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/verbs/tree/watch_recursive.h"
#include "cmd/znodes/tree_walk.h"

enum { WATCH_CHILDREN = FLAG_LONG, WATCH_ONCE, WATCH_RECURSIVE };

/* The node as it was read at one time. */
struct view {
    clave_err err; /* OK; ENONODE: there is no node; others: why it cannot be watched */
    clave_stat stat;
    char **names; /* with --children: sorted names */
    size_t nnames;
};

struct watching {
    struct options *o;
    const char *path;
    bool children;
    bool once;
    bool recursive; /* done by watch_recursive.c */

    /* Used on the loop's thread only. */
    clave_async_watch *node_watch;
    clave_async_watch *child_watch;
    struct view *next; /* the reading that is under way */
    unsigned pending;  /* its requests without an answer */
    bool again;        /* a watch has fired during the reading */
    bool ended;

    /* Shared by both threads, under the mutex. Only the newest reading counts. */
    pthread_mutex_t mutex;
    struct view *latest;
    int wakeup; /* an eventfd */
};

/* ---- on the loop's thread ------------------------------------------------------------------- */

static void watch_view_free(struct view *v)
{
    if (!v)
        return;
    for (size_t i = 0; i < v->nnames; i++)
        free(v->names[i]);
    free(v->names);
    free(v);
}

static void verb_watch_hand_over(struct watching *w)
{
    pthread_mutex_lock(&w->mutex);
    watch_view_free(w->latest);
    w->latest = w->next;
    w->next = NULL;
    eventfd_write(w->wakeup, 1);
    pthread_mutex_unlock(&w->mutex);
}

static void watch_read_node(clave_async_client *c, struct watching *w);

static void watch_reading_done(clave_async_client *c, struct watching *w)
{
    assert(w->pending > 0);
    if (--w->pending > 0)
        return;
    /* After a temporary error nothing is shown; the next request waits for a new connection or
     * session, or for room. */
    if (w->ended || clave__err_passes(w->next->err)) {
        watch_view_free(w->next);
        w->next = NULL;
        w->again = true;
    } else {
        verb_watch_hand_over(w);
    }
    if (w->again && !w->ended)
        watch_read_node(c, w);
}

static void verb_watch_fail(struct view *v, clave_err err)
{
    if (v->err == CLAVE_OK || v->err == CLAVE_ENONODE)
        v->err = err;
}

static void verb_watch_got_stat(clave_async_client *c, const clave_result *res, void *arg)
{
    struct watching *w = arg;
    if (res->err == CLAVE_OK)
        w->next->stat = *res->stat;
    else
        verb_watch_fail(w->next, res->err);
    watch_reading_done(c, w);
}

static void watch_got_names(clave_async_client *c, const clave_result *res, void *arg)
{
    struct watching *w = arg;
    struct view *v = w->next;
    if (res->err == CLAVE_OK) {
        v->names = calloc(res->nnames + 1, sizeof *v->names);
        for (size_t i = 0; v->names && i < res->nnames; i++)
            if ((v->names[v->nnames] = strdup(res->names[i])))
                v->nnames++;
        if (!v->names || v->nnames < res->nnames)
            verb_watch_fail(v, CLAVE_ENOMEM);
        tree_walk_sort_names(v->names, v->nnames);
    } else if (res->err !=
               CLAVE_ENONODE) { /* clave_async_exists reports that, and watches for it */
        verb_watch_fail(v, res->err);
    }
    watch_reading_done(c, w);
}

typedef clave_err read_fn(clave_async_client *c, const char *path, clave_async_watch *watch,
                          clave_result_cb *cb, void *arg);

/* Reads with the watch if it is not armed. An armed watch would be refused, so it is left alone and
 * the read is done without one. (Deleting the node fires both watches one after the other; the
 * second brings us here again.) */
static clave_err watch_read_with(read_fn *read, clave_async_client *c, struct watching *w,
                                 clave_async_watch *watch, clave_result_cb *cb)
{
    clave_err err = CLAVE_EINVAL;
    if (!clave_async_watch_is_armed(watch))
        err = read(c, w->path, watch, cb, w);
    return err == CLAVE_EINVAL ? read(c, w->path, NULL, cb, w) : err;
}

static void watch_read_node(clave_async_client *c, struct watching *w)
{
    w->again = false;
    w->next = calloc(1, sizeof *w->next);
    if (!w->next) {
        verb_watch_hand_over(w); /* no view: no memory */
        return;
    }
    w->pending = 1; /* so that the reading ends at the end of this function, not earlier */
    clave_err err = watch_read_with(clave_async_exists, c, w, w->node_watch, verb_watch_got_stat);
    if (err == CLAVE_OK)
        w->pending++;
    else
        verb_watch_fail(w->next, err);
    if (w->children && err == CLAVE_OK) {
        err = watch_read_with(clave_async_children, c, w, w->child_watch, watch_got_names);
        if (err == CLAVE_OK)
            w->pending++;
        else
            verb_watch_fail(w->next, err);
    }
    watch_reading_done(c, w);
}

static void verb_watch_on_event(clave_async_client *c, clave_async_watch *watch,
                                const clave_event *ev, void *arg)
{
    struct watching *w = arg;
    (void)watch, (void)ev;
    if (w->next)
        w->again = true;
    else
        watch_read_node(c, w);
}

static void verb_watch_begin(clave_async_client *c, void *arg)
{
    struct watching *w = arg;
    if (clave_async_watch_new(&w->node_watch, c, verb_watch_on_event, w) != CLAVE_OK ||
        clave_async_watch_new(&w->child_watch, c, verb_watch_on_event, w) != CLAVE_OK)
        verb_watch_hand_over(w);
    else
        watch_read_node(c, w);
}

static void verb_watch_end(clave_async_client *c, void *arg)
{
    struct watching *w = arg;
    (void)c;
    w->ended = true;
    clave_async_watch_free(w->node_watch);
    clave_async_watch_free(w->child_watch);
}

/* ---- output --------------------------------------------------------------------------------- */

static void watch_show_event(const struct watching *w, const char *event, const char *path,
                             const clave_stat *st)
{
    tree_watch_show(w->o, event, path, st);
    fflush(stdout);
}

static void verb_watch_show_child(const struct watching *w, const char *event, const char *name)
{
    char *path = clave__path_child(NULL, w->path, name);
    if (path)
        watch_show_event(w, event, path, NULL);
    free(path);
}

/* Where two sorted lists differ: below 0, the next name is only in `old`; above 0, only in `new`.
 */
static int watch_compare_next(const struct view *old, size_t i, const struct view *new, size_t j)
{
    if (i == old->nnames)
        return 1;
    return j == new->nnames ? -1 : strcmp(old->names[i], new->names[j]);
}

/* Compares two sorted lists. A name that is in only one of them was created or deleted. */
static unsigned watch_compare_children(const struct watching *w, const struct view *old,
                                       const struct view *new)
{
    unsigned printed = 0;
    size_t i = 0, j = 0;
    while (i < old->nnames || j < new->nnames) {
        int cmp = watch_compare_next(old, i, new, j);
        if (cmp < 0)
            verb_watch_show_child(w, "child-deleted", old->names[i]);
        else if (cmp > 0)
            verb_watch_show_child(w, "child-created", new->names[j]);
        printed += cmp != 0;
        i += cmp <= 0;
        j += cmp >= 0;
    }
    return printed;
}

/* Prints the differences. Returns how many events were printed. */
static unsigned watch_compare(const struct watching *w, const struct view *old,
                              const struct view *new)
{
    bool was = old->err == CLAVE_OK, is = new->err == CLAVE_OK;
    bool other = was && is && old->stat.czxid != new->stat.czxid;
    unsigned printed = 0;
    if (was && (!is || other)) {
        watch_show_event(w, "deleted", w->path, NULL);
        printed++;
    }
    if (is && (!was || other)) {
        watch_show_event(w, "created", w->path, &new->stat);
        printed++;
    } else if (is && old->stat.mzxid != new->stat.mzxid) {
        watch_show_event(w, "changed", w->path, &new->stat);
        printed++;
    }
    return printed + watch_compare_children(w, old, new);
}

static void watch_show_first(const struct watching *w, const struct view *v)
{
    watch_show_event(w, v->err == CLAVE_OK ? "watching" : "watching-missing", w->path,
                     v->err == CLAVE_OK ? &v->stat : NULL);
    for (size_t i = 0; i < v->nnames; i++)
        verb_watch_show_child(w, "child", v->names[i]);
}

/* ---- the verb -------------------------------------------------------------------------------- */

static struct view *watch_take_latest(struct watching *w)
{
    eventfd_t count;
    pthread_mutex_lock(&w->mutex);
    eventfd_read(w->wakeup, &count);
    struct view *v = w->latest;
    w->latest = NULL;
    pthread_mutex_unlock(&w->mutex);
    return v;
}

/* Waits for the next view. NULL: the verb is to return *code. */
static struct view *watch_wait_for_view(struct watching *w, int signals, int *code)
{
    struct pollfd fds[] = {{.fd = signals, .events = POLLIN}, {.fd = w->wakeup, .events = POLLIN}};
    struct signalfd_siginfo info;
    while (poll(fds, 2, -1) < 0)
        if (errno != EINTR)
            break;
    if (fds[0].revents && read(signals, &info, sizeof info) == (ssize_t)sizeof info) {
        *code = 128 + (int)info.ssi_signo;
        return NULL;
    }
    struct view *v = watch_take_latest(w);
    if (!v)
        *code = diag_err(w->o, w->path, CLAVE_ENOMEM, NULL);
    return v;
}

static int verb_watch_follow(struct watching *w, clave_client *c, int signals)
{
    struct view *old = NULL, *new;
    int code = EXIT_OK;
    while ((new = watch_wait_for_view(w, signals, &code))) {
        unsigned printed = 0;
        if (new->err != CLAVE_OK &&new->err != CLAVE_ENONODE)
            code = diag_err(w->o, w->path, new->err, c);
        else if (old)
            printed = watch_compare(w, old, new);
        else
            watch_show_first(w, new);
        watch_view_free(old);
        old = new;
        if (code != EXIT_OK || ferror(stdout) || (w->once && printed > 0))
            break;
    }
    watch_view_free(old);
    return code;
}

static int watch_path(struct watching *w)
{
    clave_client *c;
    int code = connect_open(w->o, NULL, &c);
    if (code != EXIT_OK)
        return code;
    int signals = inheritance_open_signals(0); /* the loop's thread blocks all signals */
    w->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (signals < 0 || w->wakeup < 0) {
        code = diag_end(w->o, NULL, EXIT_INTERNAL, "%s", strerror(errno));
    } else if (w->recursive) {
        code = tree_watch(w->o, w->path, w->once, c, signals);
    } else {
        clave_client_run(c, verb_watch_begin, w);
        code = verb_watch_follow(w, c, signals);
        clave_client_run(c, verb_watch_end, w);
    }
    connect_close(c); /* this ends every request that was pending */
    watch_view_free(w->latest);
    close(signals);
    close(w->wakeup);
    return code;
}

static int run_watch(struct options *o, int argc, char **argv)
{
    struct watching w = {.o = o, .mutex = PTHREAD_MUTEX_INITIALIZER};
    int id;
    while ((id = options_next(o, argc, argv)) > 0) {
        w.children |= id == WATCH_CHILDREN;
        w.once |= id == WATCH_ONCE;
        w.recursive |= id == WATCH_RECURSIVE;
    }
    if (id == OPTIONS_STOP)
        return o->status;
    if (w.recursive && w.children)
        return diag_end(o, NULL, EXIT_USAGE,
                        "--recursive has the children too: leave out --children");
    if (!options_args(o, 1, 1))
        return EXIT_USAGE;
    w.path = o->argv[0];
    if (!connect_path_ok(o, w.path))
        return EXIT_PATH;
    return watch_path(&w);
}

static const struct flag flags[] = {
    {WATCH_CHILDREN, "children", NULL, "watch the creation and deletion of its children too"},
    {WATCH_RECURSIVE, "recursive", NULL, "watch everything below it too"},
    {WATCH_ONCE, "once", NULL, "end after the first change"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_watch = {
    .name = "watch",
    .args = "PATH",
    .summary = "Print what happens to a node, until interrupted",
    .text = "The first line, 'watching' or 'watching-missing', means that nothing that happens\n"
            "from now on will be missed; then come created, changed, deleted, child-created and\n"
            "child-deleted. Changes in quick succession may be reported as one. With --recursive\n"
            "each node below it has created, changed and deleted under its own path.\n",
    .flags = flags,
    .max_args = -1,
    .run = run_watch,
};
