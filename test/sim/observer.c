#include "observer.h"

#include <stdio.h>

/* Lanes, from above: a client's session and each of its actors, one client after the other;
 * then the servers. */
static unsigned lane_of(const struct observer *o, size_t host)
{
    const struct workload *l = o->hosts[0].user;
    return (unsigned)host * (1 + l->o->actors);
}

static enum recording_kind kind_of_client(const struct host *h)
{
    if (!h->client)
        return RECORDING_DOWN;
    if (h->paused)
        return RECORDING_PAUSED;
    switch (h->state) {
    case CLAVE_STATE_CONNECTED:
    case CLAVE_STATE_RECONNECTED:
    case CLAVE_STATE_READ_ONLY:
        return RECORDING_CONNECTED;
    case CLAVE_STATE_SUSPENDED:
        return RECORDING_SUSPENDED;
    case CLAVE_STATE_LATENT:
    case CLAVE_STATE_LOST:
    case CLAVE_STATE_CLOSED:
        break;
    }
    return RECORDING_NO_SESSION;
}

static void look_at_actor(struct observer *o, unsigned lane, const struct actor *a)
{
    char label[RECORDING_LABEL] = "";
    enum recording_kind kind = RECORDING_NOTHING;
    for (unsigned i = 0; i < a->nholds && kind == RECORDING_NOTHING; i++) {
        if (!a->holds[i].believed)
            continue;
        kind = actor_is_valid(a, i) ? RECORDING_VALID : RECORDING_BELIEVED;
        snprintf(label, sizeof label, "token %lld", (long long)a->holds[i].token);
    }
    recording_is(o->record, lane, o->w->now, kind, label);
}

static void look_at_host(struct observer *o, size_t i)
{
    const struct host *h = &o->hosts[i];
    const struct workload *l = h->user;
    unsigned lane = lane_of(o, i);
    char label[RECORDING_LABEL] = "";
    enum recording_kind kind = kind_of_client(h);
    if (kind == RECORDING_CONNECTED)
        snprintf(label, sizeof label, "%s%u", o->ensemble ? "member" : "server", h->server);
    recording_is(o->record, lane, o->w->now, kind, label);
    recording_lost(o->record, lane, o->w->now, o->lost[i]);
    for (unsigned k = 0; k < l->o->actors; k++)
        look_at_actor(o, lane + 1 + k, &l->actors[k]);
}

static enum recording_kind kind_of_member(const struct ensemble *e, const struct ensemble_member *m)
{
    if (m->frozen_to > m->w->now)
        return RECORDING_PAUSED;
    switch (m->mode) {
    case MEMBER_FOLLOWS:
        return m->index == e->leading ? RECORDING_LEADS : RECORDING_SERVES;
    case MEMBER_CUT:
        return RECORDING_CUT;
    case MEMBER_DEPOSED:
        return RECORDING_DEPOSED;
    case MEMBER_DOWN:
        break;
    }
    return RECORDING_DOWN;
}

static void look_at_servers(struct observer *o)
{
    unsigned lane = lane_of(o, o->nhosts);
    const struct server_host *h = o->server;
    if (!o->ensemble) {
        recording_is(o->record, lane, o->w->now,
                     !h->server  ? RECORDING_DOWN
                     : h->paused ? RECORDING_PAUSED
                                 : RECORDING_SERVES,
                     "");
        return;
    }
    for (unsigned i = 0; i < o->ensemble->n; i++)
        recording_is(o->record, lane + i, o->w->now,
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
    recording_listen(o->record, o->w);
    for (size_t i = 0; i < o->nhosts; i++) {
        const struct workload *l = o->hosts[i].user;
        o->hosts[i].route.lost = &o->lost[i];
        recording_add_lane(o->record, o->hosts[i].name);
        for (unsigned k = 0; k < l->o->actors; k++)
            recording_add_lane(o->record, l->actors[k].name);
    }
    for (unsigned i = 0; o->ensemble && i < o->ensemble->n; i++)
        recording_add_lane(o->record, o->ensemble->members[i].name);
    if (!o->ensemble)
        recording_add_lane(o->record, "server");
}

void observer_end(struct observer *o, const struct nemesis *n)
{
    struct recording *r = o->record;
    r->planned = world_alloc((n->nplanned + 1) * sizeof *r->planned);
    for (size_t i = 0; i < n->nplanned; i++) {
        const struct planned_fault *s = &n->planned[i];
        r->planned[r->nplanned++] =
            (struct recording_fault){s->at, s->number, fault_name(s->kind), s->happened};
    }
    recording_end(r, o->w);
    o->w->listener = NULL; /* what comes now is only being put away */
}
