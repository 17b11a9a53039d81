/* figures.c - the values that the four-letter words, the admin commands and the metrics share; see
 * figures.h. */
#include "server/figures/figures.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- values ---------------------------------------------------------------------------------- */

const char *clave__latency_average(const struct latency *l, char out[32])
{
    int64_t count = l->count ? (int64_t)l->count : 1;
    int64_t whole = l->sum / count, rest = l->sum % count * 10000 / count;
    int n = snprintf(out, 32, "%" PRId64 ".%04" PRId64, whole, rest);
    while (n > 3 && out[n - 1] == '0' && out[n - 2] != '.')
        out[--n] = '\0';
    return out;
}

size_t clave__count_nodes(const struct server *s)
{
    return s->tree.nodes.count + 2;
}

bool clave__data_sizes(const struct server *s, uint64_t *snapshots, uint64_t *logs)
{
    *snapshots = *logs = 0;
    if (s->place.sizes)
        s->place.sizes(s->place.arg, snapshots, logs);
    return s->place.sizes != NULL;
}

/* ---- resets ---------------------------------------------------------------------------------- */

void clave__stats_reset(struct server *s)
{
    s->latency = (struct latency){0};
    s->packets_received = s->packets_sent = 0;
}

void clave__conn_stats_reset(struct server *s)
{
    for (struct list *e = s->conns.next; e != &s->conns; e = e->next) {
        struct server_conn *c = LIST_ENTRY(e, struct server_conn, in_conns);
        c->latency = (struct latency){0};
        c->received = c->sent = 0;
    }
}
