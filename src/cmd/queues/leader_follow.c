/* leader_follow.c - passes changes of the leader from the loop's thread to a verb (see
 * leader_follow.h). leader.c and leader_resign.c call it.
 *
 * What must stay true: the list of states is accessed only under the mutex, and the watch only on
 * the loop's thread. */
#include "cmd/queues/leader_follow.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clave/uv.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"

void leader_follow_free(struct leader_state *it)
{
    if (!it)
        return;
    free(it->node);
    free(it->id);
    free(it->value);
    free(it);
}

/* ---- on the loop's thread ------------------------------------------------------------------- */

static bool leader_follow_copy_text(char **out, const char *text, size_t n)
{
    *out = text ? strndup(text, n) : NULL;
    return *out || !text;
}

static bool leader_follow_copy_value(struct leader_state *it, const clave_leader_news *news)
{
    if (!news->value)
        return true;
    it->len = news->len;
    it->value = calloc(1, news->len + 1);
    if (it->value)
        memcpy(it->value, news->value, news->len);
    return it->value;
}

static struct leader_state *leader_state_new(const clave_leader_news *news)
{
    const clave_participant *p = news->leader ? news->leader : news->left_over;
    struct leader_state *it = calloc(1, sizeof *it);
    if (!it)
        return NULL;
    it->err = news->err;
    it->vacant = !news->leader;
    it->left_over = news->left_over != NULL;
    if (p)
        it->stat = p->stat;
    if (p && (!leader_follow_copy_text(&it->node, p->node, strlen(p->node)) ||
              !leader_follow_copy_text(&it->id, p->identity.text,
                                       p->identity.text ? strlen(p->identity.text) : 0) ||
              !leader_follow_copy_value(it, news))) {
        leader_follow_free(it);
        return NULL;
    }
    return it;
}

static void leader_follow_on_news(clave_async_leader_watch *w, const clave_leader_news *news,
                                  void *arg)
{
    struct leader_follow *f = arg;
    struct leader_state *it = leader_state_new(news);
    (void)w;
    pthread_mutex_lock(&f->mutex);
    if (it) {
        assert(!*f->last);
        *f->last = it;
        f->last = &it->next;
    } else {
        f->out_of_memory = true;
    }
    pthread_mutex_unlock(&f->mutex);
    eventfd_write(f->wakeup, 1);
}

static void leader_follow_on_transferred(clave_async_client *c, clave_err err, void *arg)
{
    struct leader_follow *f = arg;
    (void)c;
    pthread_mutex_lock(&f->mutex);
    assert(!f->answered);
    f->answered = true;
    f->answer = err;
    pthread_mutex_unlock(&f->mutex);
    eventfd_write(f->wakeup, 1);
}

static void leader_follow_begin(clave_async_client *c, void *arg)
{
    struct leader_follow *f = arg;
    f->answer = clave_async_leader_watch_new(&f->watch, c, f->path, leader_follow_on_news, f);
}

static void leader_follow_send_transfer(clave_async_client *c, void *arg)
{
    struct leader_follow *f = arg;
    clave_err err =
        clave_async_leader_transfer(c, f->path, f->target, leader_follow_on_transferred, f);
    if (err != CLAVE_OK)
        leader_follow_on_transferred(c, err, f);
}

static void leader_follow_end(clave_async_client *c, void *arg)
{
    struct leader_follow *f = arg;
    (void)c;
    clave_async_leader_watch_free(f->watch);
    f->watch = NULL;
}

/* ---- on the verb's thread ------------------------------------------------------------------- */

int leader_follow_open(struct leader_follow *f, clave_client *session, const char *path,
                       const struct options *o)
{
    *f = (struct leader_follow){.session = session, .path = path};
    f->last = &f->first;
    pthread_mutex_init(&f->mutex, NULL);
    f->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (f->wakeup < 0)
        return diag_end(o, NULL, EXIT_INTERNAL, "%s", strerror(errno));
    clave_client_run(session, leader_follow_begin, f);
    return f->answer == CLAVE_OK ? EXIT_OK : diag_err(o, path, f->answer, session);
}

static struct leader_state *leader_follow_take(struct leader_follow *f, clave_err *why)
{
    eventfd_t count;
    pthread_mutex_lock(&f->mutex);
    eventfd_read(f->wakeup, &count);
    struct leader_state *it = f->first;
    if (it) {
        f->first = it->next;
        if (!f->first)
            f->last = &f->first;
    }
    *why = f->answered ? f->answer : CLAVE_OK;
    if (f->out_of_memory)
        *why = CLAVE_ENOMEM;
    pthread_mutex_unlock(&f->mutex);
    return it;
}

/* poll(2) takes an int: waits for a day at most. */
static int leader_follow_poll_ms(int64_t until)
{
    enum { DAY_MS = 86400000 };
    int64_t left = until - clave_now();
    if (left < 0)
        return 0;
    return left > DAY_MS ? DAY_MS : (int)left;
}

struct leader_state *leader_follow_next(struct leader_follow *f, int signals, int64_t until,
                                        int *sig, clave_err *why)
{
    struct signalfd_siginfo info;
    *sig = 0;
    for (;;) {
        struct leader_state *it = leader_follow_take(f, why);
        if (it || *why != CLAVE_OK)
            return it;
        struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
                               {.fd = f->wakeup, .events = POLLIN}};
        int n = poll(fds, 2, leader_follow_poll_ms(until));
        if (n > 0 && fds[0].revents && read(signals, &info, sizeof info) == (ssize_t)sizeof info) {
            *sig = (int)info.ssi_signo;
            return NULL;
        }
        if (n == 0 && clave_now() >= until)
            return NULL;
    }
}

void leader_follow_transfer(struct leader_follow *f, const char *node)
{
    assert(f->watch);
    f->target = node;
    clave_client_run(f->session, leader_follow_send_transfer, f);
}

void leader_follow_close(struct leader_follow *f)
{
    if (f->watch)
        clave_client_run(f->session, leader_follow_end, f);
    connect_close(f->session); /* this ends every request of ours */
    for (struct leader_state *it = f->first, *next; it; it = next) {
        next = it->next;
        leader_follow_free(it);
    }
    pthread_mutex_destroy(&f->mutex);
    close(f->wakeup);
}
