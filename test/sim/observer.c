#include "observer.h"

#include <stdio.h>

/* Lanes, from above: a client's session and each of its actors, one client behind the other;
 * then the servers. */
static unsigned lane_of(const struct observer *o, size_t host)
{
    const struct workload *l = o->hosts[0].user;
    return (unsigned)host * (1 + l->o->actors);
}

static enum record_kind kind_of_client(const struct host *h)
{
    if (!h->client)
        return RECORD_DOWN;
    if (h->paused)
        return RECORD_PAUSED;
    switch (h->state) {
    case CLAVE_STATE_CONNECTED:
    case CLAVE_STATE_RECONNECTED:
    case CLAVE_STATE_READ_ONLY:
        return RECORD_CONNECTED;
    case CLAVE_STATE_SUSPENDED:
        return RECORD_SUSPENDED;
    case CLAVE_STATE_LATENT:
    case CLAVE_STATE_LOST:
    case CLAVE_STATE_CLOSED:
        break;
    }
    return RECORD_NO_SESSION;
}

static void look_at_actor(struct observer *o, unsigned lane, const struct actor *a)
{
    char label[RECORD_LABEL] = "";
    enum record_kind kind = RECORD_NOTHING;
    for (unsigned i = 0; i < a->nholds && kind == RECORD_NOTHING; i++) {
        if (!a->holds[i].believed)
            continue;
        kind = actor_is_valid(a, i) ? RECORD_VALID : RECORD_BELIEVED;
        snprintf(label, sizeof label, "token %lld", (long long)a->holds[i].token);
    }
    record_is(o->record, lane, o->w->now, kind, label);
}

static void look_at_host(struct observer *o, size_t i)
{
    const struct host *h = &o->hosts[i];
    const struct workload *l = h->user;
    unsigned lane = lane_of(o, i);
    char label[RECORD_LABEL] = "";
    enum record_kind kind = kind_of_client(h);
    if (kind == RECORD_CONNECTED)
        snprintf(label, sizeof label, "%s%u", o->ensemble ? "member" : "server", h->server);
    record_is(o->record, lane, o->w->now, kind, label);
    record_lost(o->record, lane, o->w->now, o->lost[i]);
    for (unsigned k = 0; k < l->o->actors; k++)
        look_at_actor(o, lane + 1 + k, &l->actors[k]);
}

static enum record_kind kind_of_member(const struct ensemble *e, const struct member *m)
{
    if (m->frozen_to > m->w->now)
        return RECORD_PAUSED;
    switch (m->mode) {
    case MEMBER_FOLLOWS:
        return m->index == e->leading ? RECORD_LEADS : RECORD_SERVES;
    case MEMBER_CUT:
        return RECORD_CUT;
    case MEMBER_DEPOSED:
        return RECORD_DEPOSED;
    case MEMBER_DOWN:
        break;
    }
    return RECORD_DOWN;
}

static void look_at_servers(struct observer *o)
{
    unsigned lane = lane_of(o, o->nhosts);
    const struct server_host *h = o->server;
    if (!o->ensemble) {
        record_is(o->record, lane, o->w->now,
                  !h->server  ? RECORD_DOWN
                  : h->paused ? RECORD_PAUSED
                              : RECORD_SERVES,
                  "");
        return;
    }
    for (unsigned i = 0; i < o->ensemble->n; i++)
        record_is(o->record, lane + i, o->w->now,
                  kind_of_member(o->ensemble, &o->ensemble->members[i]), "");
}

void observer_look(struct observer *o)
{
    for (size_t i = 0; i < o->nhosts; i++)
        look_at_host(o, i);
    look_at_servers(o);
}

void observer_begin(struct observer *o)
{
    record_listen(o->record, o->w);
    for (size_t i = 0; i < o->nhosts; i++) {
        const struct workload *l = o->hosts[i].user;
        o->hosts[i].road.lost = &o->lost[i];
        record_add_lane(o->record, o->hosts[i].name);
        for (unsigned k = 0; k < l->o->actors; k++)
            record_add_lane(o->record, l->actors[k].name);
    }
    for (unsigned i = 0; o->ensemble && i < o->ensemble->n; i++)
        record_add_lane(o->record, o->ensemble->members[i].name);
    if (!o->ensemble)
        record_add_lane(o->record, "server");
}

void observer_end(struct observer *o, const struct nemesis *n)
{
    struct record *r = o->record;
    r->strikes = world_alloc((n->nstrikes + 1) * sizeof *r->strikes);
    for (size_t i = 0; i < n->nstrikes; i++) {
        const struct strike *s = &n->strikes[i];
        r->strikes[r->nstrikes++] =
            (struct record_strike){s->at, s->number, fault_name(s->kind), s->struck};
    }
    record_end(r, o->w);
    o->w->listener = NULL; /* what comes now is only being put away */
}
