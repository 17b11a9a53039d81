#include "ensemble.h"

#include <stdlib.h>
#include <string.h>

#include "inspector.h"
#include "operator.h"
#include "server/server_internal.h"
#include "server/store/txn_log.h"

struct server_options ensemble_options(struct server_options o)
{
    o.min_session_ms = ENGINE_TIMEOUT_MS;
    o.max_session_ms = ENGINE_TIMEOUT_MS;
    o.work_a_turn = 0; /* a member's requests are answered in the call that passes them on */
    return o;
}

int32_t ensemble_negotiate(const struct ensemble *e, int32_t asked_ms)
{
    int32_t least = 2 * e->tick_ms, most = 20 * e->tick_ms;
    return asked_ms < least ? least : asked_ms > most ? most : asked_ms;
}

int64_t ensemble_ping_interval(struct ensemble *e)
{
    int64_t half = e->tick_ms * MS / 2;
    half -= half * e->leader->clock.ppm / 1000000;
    return half + world_between(e->w, 0, half / 50);
}

/* ---- the leader's sessions ----------------------------------------------------------- */

static struct tracked_session *find(struct ensemble *e, int64_t id)
{
    for (size_t i = 0; i < TRACKED_SESSIONS; i++)
        if (e->sessions[i].id == id)
            return &e->sessions[i];
    return NULL;
}

static void arm(struct ensemble *e)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < TRACKED_SESSIONS; i++)
        if (e->sessions[i].id != 0 && e->sessions[i].expires < next)
            next = e->sessions[i].expires;
    if (next == INT64_MAX)
        world_clear(e->w, &e->expiry);
    else
        world_set(e->w, &e->expiry, clock_when(&e->leader->clock, next));
}

/* Apache: the end of the tick in which the time is over. */
static int64_t expires_at(const struct ensemble *e, int64_t local_ms, int32_t timeout_ms)
{
    int64_t at = local_ms + timeout_ms;
    return e->rounds ? (at / e->tick_ms + 1) * e->tick_ms : at;
}

void ensemble_touch(struct ensemble *e, int64_t session, int32_t timeout_ms, int64_t at)
{
    struct tracked_session *s = find(e, session);
    if (session == 0 || !e->leader->server || (!s && timeout_ms == 0))
        return; /* it has expired, or is to be made */
    s = s ? s : find(e, 0);
    world_must(s != NULL);
    if (!s)
        return;
    s->id = session;
    s->timeout_ms = timeout_ms ? timeout_ms : s->timeout_ms;
    int64_t expires = expires_at(e, clock_ms(&e->leader->clock, at), s->timeout_ms);
    s->expires = expires > s->expires ? expires : s->expires;
    arm(e);
}

static void on_expiry(struct alarm *a)
{
    struct ensemble *e = LIST_ENTRY(a, struct ensemble, expiry);
    int64_t now = clock_ms(&e->leader->clock, e->w->now);
    for (size_t i = 0; i < TRACKED_SESSIONS; i++) {
        struct tracked_session *s = &e->sessions[i];
        if (s->id == 0 || s->expires > now)
            continue;
        if (inspector_has_session(e->leader, s->id)) {
            world_log(e->w, "leader", "session 0x%llx has expired", (unsigned long long)s->id);
            operator_end_session(e->leader, s->id);
        }
        *s = (struct tracked_session){0};
    }
    arm(e);
}

/* Made for a client that was gone before the answer: the leader counts all the same. */
static void on_survey(struct alarm *a)
{
    struct ensemble *e = LIST_ENTRY(a, struct ensemble, survey);
    const struct map *table = &e->leader->server->sessions.table;
    for (struct map_node *n = NULL; (n = clave__map_next(table, n));) {
        int64_t id = MAP_ENTRY(n, struct session, in_table)->id;
        if (!find(e, id))
            ensemble_touch(e, id, e->timeout_ms, e->w->now);
    }
    world_set(e->w, a, e->w->now + e->tick_ms * MS);
}

/* A new leader gives every session that it knows its whole time. */
static void track_anew(struct ensemble *e)
{
    int64_t now = clock_ms(&e->leader->clock, e->w->now);
    for (size_t i = 0; i < TRACKED_SESSIONS; i++) {
        struct tracked_session *s = &e->sessions[i];
        if (s->id == 0)
            continue;
        if (inspector_has_session(e->leader, s->id))
            s->expires = expires_at(e, now, s->timeout_ms);
        else
            *s = (struct tracked_session){0};
    }
    arm(e);
}

/* ---- the log ------------------------------------------------------------------------- */

static void add_entry(struct ensemble *e, const struct log_entry *entry)
{
    if (e->nentries == e->entries_cap) {
        e->entries_cap = e->entries_cap ? 2 * e->entries_cap : 256;
        e->entries = world_grow(e->entries, e->entries_cap * sizeof *e->entries);
    }
    e->entries[e->nentries++] = *entry;
}

static void on_proposed(void *arg, const struct disk_batch *b)
{
    struct ensemble *e = arg;
    const uint8_t *p = b->p;
    struct record rec;
    for (size_t at = 0; at < b->n;) {
        world_must(clave__txn_log_look_at(p + at, b->n - at, &rec) == FOUND_RECORD);
        struct log_entry entry = {rec.zxid, clave__buf_len(&e->log), LOG_RECORD_HEAD + rec.n + 1};
        world_must(clave__buf_append(&e->log, p + at, entry.n) == CLAVE_OK);
        add_entry(e, &entry);
        at += entry.n;
    }
}

static void commit_to(struct ensemble *e, int64_t zxid)
{
    while (e->committed < e->nentries && e->entries[e->committed].zxid <= zxid)
        e->committed++;
    for (unsigned i = 0; i < e->n; i++)
        member_commit(&e->members[i], e->committed);
}

static void on_committed(void *arg, int64_t zxid)
{
    commit_to(arg, zxid);
}

/* What the new leader has of the proposals that no quorum had acknowledged is committed with
 * its first word; the rest never was. */
static void settle_log(struct ensemble *e)
{
    int64_t newest = e->leader->server->last_zxid;
    while (e->nentries > 0 && e->entries[e->nentries - 1].zxid > newest) {
        e->nentries--;
        e->log.tail = e->log.head + e->entries[e->nentries].at;
    }
    world_must(e->committed <= e->nentries); /* an acknowledged one is never lost */
    e->committed = e->nentries;
}

/* ---- leaders ------------------------------------------------------------------------- */

bool ensemble_can_spare(const struct ensemble *e, unsigned members)
{
    unsigned follow = 0;
    for (unsigned i = 0; i < e->n; i++)
        follow += e->members[i].mode == MEMBER_FOLLOWS;
    return e->leader->server && follow >= members + e->n / 2 + 1;
}

/* Its clock is its own; one that is behind would hand out session ids again, which in Apache
 * carry the number of the server. */
static void set_clock(struct ensemble *e, const struct ensemble_member *m)
{
    struct clock *c = &e->leader->clock;
    int64_t least = clock_ms(c, e->w->now) + 1;
    c->ppm = m->clock.ppm;
    c->offset_us += (least + 1 - clock_ms(c, e->w->now)) * MS;
    c->offset_us += world_between(e->w, 0, 10 * SECOND);
}

static void begin_epoch(struct ensemble *e, unsigned index)
{
    struct server_host *h = e->leader;
    e->leading = index;
    set_clock(e, &e->members[index]);
    server_host_start(h);
    settle_log(e);
    int64_t seen = h->server->last_zxid >> 32;
    e->epoch = (e->epoch > seen ? e->epoch : seen) + 1;
    h->server->last_zxid = e->epoch << 32;
    clave__server_durable(h->server, h->server->last_zxid);
    track_anew(e);
    world_set(e->w, &e->survey, e->w->now + e->tick_ms * MS);
}

/* One of those that are not on the side of the one before, and run. */
static unsigned any_candidate(struct ensemble *e)
{
    unsigned first = (unsigned)world_between(e->w, 0, e->n - 1);
    for (unsigned i = 0; i < e->n; i++) {
        const struct ensemble_member *m = &e->members[(first + i) % e->n];
        if (m->mode != MEMBER_DEPOSED && m->replica.server)
            return m->index;
    }
    return first;
}

static void on_elected(struct alarm *a)
{
    struct ensemble *e = LIST_ENTRY(a, struct ensemble, election);
    begin_epoch(e, any_candidate(e));
    for (unsigned i = 0; i < e->n; i++)
        if (e->members[i].mode != MEMBER_DEPOSED && e->members[i].replica.server)
            member_join(&e->members[i]);
}

static void end_leader(struct ensemble *e, enum leader_fault how, int64_t us)
{
    struct ensemble_member *m = &e->members[e->leading];
    switch (how) {
    case LEADER_CUT:
        member_depose(m, us);
        break;
    case LEADER_PAUSED:
        member_depose(m, us + world_between(e->w, 1 * MS, e->tick_ms * MS));
        member_freeze(m, us);
        break;
    case LEADER_KILLED:
        member_kill(m, us);
        break;
    }
}

void ensemble_depose(struct ensemble *e, enum leader_fault how, int64_t us,
                     struct ensemble_member *with, int64_t notice_us)
{
    int64_t last = 0;
    end_leader(e, how, us);
    if (with && with->index != e->leading)
        member_depose(with, us);
    server_host_end(e->leader, SERVER_DEPOSED);
    world_clear(e->w, &e->expiry);
    world_clear(e->w, &e->survey);
    for (unsigned i = 0; i < e->n; i++) {
        struct ensemble_member *m = &e->members[i];
        if (m->mode != MEMBER_FOLLOWS && m->mode != MEMBER_CUT)
            continue;
        int64_t notices = world_between(e->w, 0, notice_us);
        member_cut(m, notices, false);
        last = notices > last ? notices : last;
    }
    world_set(e->w, &e->election, e->w->now + last + world_between(e->w, 1 * MS, e->tick_ms * MS));
}

/* ---- life ---------------------------------------------------------------------------- */

size_t ensemble_watches(const struct ensemble *e)
{
    size_t n = 0;
    for (unsigned i = 0; i < e->n; i++)
        n += e->members[i].replica.server ? e->members[i].replica.server->watches.count : 0;
    return n;
}

void ensemble_start(struct ensemble *e)
{
    begin_epoch(e, (unsigned)world_between(e->w, 0, e->n - 1));
    for (unsigned i = 0; i < e->n; i++)
        member_join(&e->members[i]);
}

void ensemble_heal(struct ensemble *e)
{
    world_clear(e->w, &e->election);
    if (!e->leader->server)
        begin_epoch(e, any_candidate(e));
    for (unsigned i = 0; i < e->n; i++)
        member_heal(&e->members[i]);
}

void ensemble_init(struct ensemble *e, struct server_host *leader)
{
    memset(e, 0, sizeof *e);
    e->w = leader->w;
    e->net = leader->net;
    e->leader = leader;
    leader->config = ENSEMBLE_CONFIG;
    leader->proposed = on_proposed;
    leader->committed = on_committed;
    leader->log_arg = e;
    e->tick_ms = leader->options.tick_ms;
    e->rounds = world_chance(e->w, 500);
    e->n = world_chance(e->w, 600) ? 3 : MEMBERS;
    clave__buf_init(&e->log, &e->net->mem, SIZE_MAX / 4);
    e->expiry.fire = on_expiry;
    e->survey.fire = on_survey;
    e->election.fire = on_elected;
    for (unsigned i = 0; i < e->n; i++)
        member_init(&e->members[i], e, i);
}

void ensemble_fini(struct ensemble *e)
{
    world_clear(e->w, &e->expiry);
    world_clear(e->w, &e->survey);
    world_clear(e->w, &e->election);
    for (unsigned i = 0; i < e->n; i++)
        member_fini(&e->members[i]);
    clave__buf_fini(&e->log);
    free(e->entries);
}
