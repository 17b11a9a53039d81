/* all_locks.c - see all_locks.h; verbs/lock/locks.c calls it. What a lock is and who holds it is
 * the model's, as in `clave top` (top_feed.h). */
#include "cmd/top/all_locks.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clave/uv.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/format.h"
#include "cmd/cli/participant_text.h"
#include "cmd/top/top_feed.h"
#include "runtime/clock.h"

enum { TOP_LIST_COLUMN = 1024 };

/* The id of a slot stands where a lock has its command. */
static const char *all_locks_command(const struct top_lock *l)
{
    const struct top_place *p = &l->holder;
    if (l->kind != LOCK_KIND_SLOT && p->task && *p->task)
        return p->task;
    return l->kind == LOCK_KIND_SLOT || (!p->host && p->pid == 0) ? p->whose : NULL;
}

/* Slots have their queue below the path. */
static void all_locks_left_over(const struct options *o, const struct top_lock *l)
{
    char hint[HINT_CAP], *queue;
    if (asprintf(&queue, "%s%s", l->path, l->kind == LOCK_KIND_SLOT ? "/queue" : "") < 0)
        return;
    printf(" (left over: no session owns %zu of its nodes; to see %s: %s)", l->nleft_over,
           l->nleft_over > 1 ? "them" : "it",
           hint_command(o, (const char *const[]){"locks", queue, NULL}, hint));
    free(queue);
}

/* What keeps others from it, and the commands that end that. */
static void all_locks_faults(const struct options *o, const struct top_lock *l)
{
    char hint[HINT_CAP];
    if (l->bad_limit) {
        fputs(" (the limit is no number, so nobody takes a slot; to set it: ", stdout);
        format_text(
            stdout,
            hint_command(o, (const char *const[]){"slot", "limit", l->path, "N", NULL}, hint));
        putchar(')');
    }
    if (!l->stranger)
        return;
    fputs(" (", stdout);
    format_text(stdout, l->stranger);
    printf(": %s; to remove it: ", l->stranger_what);
    format_text(stdout,
                hint_command(o, (const char *const[]){"rm", "-r", l->stranger, NULL}, hint));
    if (l->nstrangers > 1)
        printf("; %zu more", l->nstrangers - 1);
    putchar(')');
}

static void all_locks_line(const struct options *o, const struct top_lock *l, int64_t now)
{
    const struct top_place *p = &l->holder;
    char host[TOP_LIST_COLUMN], command[TOP_LIST_COLUMN], age[AGE_CAP] = "-", pid[24] = "-";
    if (p->since >= 0)
        age_format(now - p->since, age);
    if (p->pid != 0)
        snprintf(pid, sizeof pid, "%" PRId64, p->pid);
    format_text(stdout, l->path);
    printf(" %s %zu %zu %s%s %s %s %s", clave__lock_kind_name(l->kind), l->nholders, l->nwaiters,
           p->since >= 0 && p->at_most ? "<" : "", age,
           participant_text_column(p->host, false, host, sizeof host), pid,
           participant_text_column(all_locks_command(l), true, command, sizeof command));
    if (l->nleft_over > 0)
        all_locks_left_over(o, l);
    all_locks_faults(o, l);
    putchar('\n');
}

/* Until all that there is has been told. */
static clave_err all_locks_await(struct top_feed *f, int wakeup, int64_t until,
                                 struct top_view *view)
{
    for (;;) {
        eventfd_t count;
        struct pollfd fd = {.fd = wakeup, .events = POLLIN};
        clave_err err = top_feed_read(f, NULL, false, view);
        int64_t left = until - clave_now();
        if (err == CLAVE_OK && view->err != CLAVE_OK)
            err = view->err;
        if (err != CLAVE_OK || view->loaded)
            return err;
        if (left <= 0)
            return CLAVE_ETIMEDOUT;
        top_view_fini(view);
        if (poll(&fd, 1, (int)left) > 0)
            eventfd_read(wakeup, &count);
    }
}

static clave_err all_locks_print(const struct options *o, struct top_feed *f,
                                 const struct top_view *view)
{
    if (view->hidden || view->partial)
        diag(o, view->hidden ? "there may be more locks, below nodes that may not be read (--auth)"
                             : "there are more locks than there is memory for");
    if (o->json)
        return top_feed_json(f);
    for (size_t i = 0; i < view->nlocks; i++)
        all_locks_line(o, &view->locks[i], clave__clock_wall());
    if (view->nlocks == 0)
        diag_note(o, "no locks");
    return CLAVE_OK;
}

int top_list_show(struct options *o)
{
    clave_client *c;
    struct top_feed *f = NULL;
    struct top_view view = {.loaded = false};
    int code = connect_open(o, NULL, &c);
    if (code != EXIT_OK)
        return code;
    int wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    clave_err err = top_feed_new(&f, c, "/", wakeup);
    if (err == CLAVE_OK)
        err = all_locks_await(f, wakeup, clave_now() + o->timeout_ms, &view);
    if (err == CLAVE_OK)
        err = all_locks_print(o, f, &view);
    code = err == CLAVE_OK ? EXIT_OK : diag_err(o, "/", err, c);
    top_view_fini(&view);
    top_feed_free(f);
    connect_close(c);
    close(wakeup);
    return code;
}
