#include "leader_watcher.h"

#include <stdio.h>
#include <stdlib.h>

struct leader_watcher {
    struct workload *load;
    clave_async_leader_watch *watch;
    int64_t term; /* the newest */
    bool vacant;
};

/* A leader publishes its own term, here. */
static void check_value(const struct leader_watcher *f, const clave_leader_news *news)
{
    char text[32];
    snprintf(text, sizeof text, "%.*s", (int)news->len, (const char *)news->value);
    if (atoll(text) != news->leader->stat.czxid)
        world_break(f->load->host->w, "a value is its leader's", "%s reads %s of term %lld",
                    f->load->host->name, text, (long long)news->leader->stat.czxid);
}

static void on_news(clave_async_leader_watch *w, const clave_leader_news *news, void *arg)
{
    struct leader_watcher *f = arg;
    struct host *h = f->load->host;
    (void)w;
    f->vacant = news->err == CLAVE_OK && !news->leader;
    if (news->err != CLAVE_OK) {
        world_log(h->w, h->name, "cannot find the leader: %s", clave_err_name(news->err));
        return;
    }
    if (!news->leader) {
        world_log(h->w, h->name, "sees no leader");
        return;
    }
    world_log(h->w, h->name, "sees the leader of term %lld", (long long)news->leader->stat.czxid);
    if (news->leader->stat.czxid < f->term)
        world_break(h->w, "leader watches see terms grow", "%s sees term %lld after %lld", h->name,
                    (long long)news->leader->stat.czxid, (long long)f->term);
    f->term = news->leader->stat.czxid;
    if (news->value)
        check_value(f, news);
}

void leader_watcher_begin(struct workload *l, unsigned lock)
{
    if (l->leader_watchers[lock])
        return;
    struct leader_watcher *f = world_alloc(sizeof *f);
    f->load = l;
    if (clave_async_leader_watch_new(&f->watch, l->host->client, workload_layout(l, lock)->path,
                                     on_news, f) == CLAVE_OK)
        l->leader_watchers[lock] = f;
    else
        free(f);
}

void leader_watcher_end(struct workload *l, unsigned lock)
{
    struct leader_watcher *f = l->leader_watchers[lock];
    if (!f)
        return;
    clave_async_leader_watch_free(f->watch);
    l->leader_watchers[lock] = NULL;
    free(f);
}

bool leader_watcher_sees(const struct workload *l, unsigned lock, int64_t term)
{
    return !l->leader_watchers[lock] || l->leader_watchers[lock]->term >= term;
}

bool leader_watcher_sees_nobody(const struct workload *l, unsigned lock)
{
    return !l->leader_watchers[lock] || l->leader_watchers[lock]->vacant;
}
