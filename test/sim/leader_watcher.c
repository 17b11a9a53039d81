#include "leader_watcher.h"

#include <stdio.h>
#include <stdlib.h>

struct follower {
    struct workload *load;
    clave_async_leader_watch *watch;
    int64_t term; /* the newest */
    bool vacant;
};

/* A leader publishes its own term, here. */
static void check_value(const struct follower *f, const clave_leader_news *news)
{
    char text[32];
    snprintf(text, sizeof text, "%.*s", (int)news->len, (const char *)news->value);
    if (atoll(text) != news->leader->stat.czxid)
        world_break(f->load->host->w, "a value is its leader's", "%s reads %s of term %lld",
                    f->load->host->name, text, (long long)news->leader->stat.czxid);
}

static void on_news(clave_async_leader_watch *w, const clave_leader_news *news, void *arg)
{
    struct follower *f = arg;
    struct host *h = f->load->host;
    (void)w;
    f->vacant = news->err == CLAVE_OK && !news->leader;
    if (news->err != CLAVE_OK) {
        world_tell(h->w, h->name, "cannot see who leads: %s", clave_err_name(news->err));
        return;
    }
    if (!news->leader) {
        world_tell(h->w, h->name, "sees nobody lead");
        return;
    }
    world_tell(h->w, h->name, "sees term %lld lead", (long long)news->leader->stat.czxid);
    if (news->leader->stat.czxid < f->term)
        world_break(h->w, "followers see terms grow", "%s sees term %lld behind %lld", h->name,
                    (long long)news->leader->stat.czxid, (long long)f->term);
    f->term = news->leader->stat.czxid;
    if (news->value)
        check_value(f, news);
}

void follower_begin(struct workload *l, unsigned site)
{
    if (l->followers[site])
        return;
    struct follower *f = world_alloc(sizeof *f);
    f->load = l;
    if (clave_async_leader_watch_new(&f->watch, l->host->client, workload_site(l, site)->path,
                                     on_news, f) == CLAVE_OK)
        l->followers[site] = f;
    else
        free(f);
}

void follower_end(struct workload *l, unsigned site)
{
    struct follower *f = l->followers[site];
    if (!f)
        return;
    clave_async_leader_watch_free(f->watch);
    l->followers[site] = NULL;
    free(f);
}

bool follower_sees(const struct workload *l, unsigned site, int64_t term)
{
    return !l->followers[site] || l->followers[site]->term >= term;
}

bool follower_sees_nobody(const struct workload *l, unsigned site)
{
    return !l->followers[site] || l->followers[site]->vacant;
}
