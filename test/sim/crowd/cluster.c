/* cluster.c - the members and observers, the leader and the disks.
 *
 * Each member is one CPU that deals with one message after another. A write goes on to the
 * leader's, which sends it to all others, and its answer waits until a batch of the log is on the
 * disks of a quorum; then every member applies it. An observer is a member without a vote: it is
 * never the leader, and no quorum waits for it. The state is that of one engine of the server:
 * members do not lag. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "crowd.h"
#include "server/request/request.h"
#include "server/server_internal.h"

enum { WALL = 1700000000 };

static int64_t cluster_wall(const struct crowd *w)
{
    return (int64_t)WALL * 1000 + crowd_ms(w);
}

/* ---- CPUs -------------------------------------------------------------------------------------
 */

int64_t member_work(struct member *m, int64_t at, int64_t us)
{
    m->busy_until = (m->busy_until > at ? m->busy_until : at) + us;
    return m->busy_until;
}

static int64_t cluster_write_us(const struct crowd *w)
{
    int64_t us = w->o.costs.write;
    for (size_t i = 0; i < w->cluster.size; i++)
        if (i != w->cluster.leader && !w->cluster.members[i].dead)
            us += w->o.costs.send;
    return us;
}

int64_t cluster_lead(struct crowd *w, bool write)
{
    struct cluster *k = &w->cluster;
    int64_t us = write ? cluster_write_us(w) : w->o.costs.attach;
    int64_t bin = w->now / BIN_US;
    crowd_require(bin < CROWD_BINS);
    k->at_leader[bin]++;
    int64_t done = member_work(&k->members[k->leader], w->now, us);
    if (done - us - w->now > k->longest_wait)
        k->longest_wait = done - us - w->now;
    return done;
}

int64_t cluster_reached_at(const struct crowd *w, int64_t again)
{
    int64_t at = w->now;
    for (; at < w->cluster.silent_until; again *= 2)
        at += again;
    return at + w->o.costs.net;
}

void cluster_apply(struct crowd *w)
{
    for (size_t i = 0; i < w->cluster.size; i++)
        if (!w->cluster.members[i].dead)
            member_work(&w->cluster.members[i], w->now, w->o.costs.apply);
}

/* ---- the engine -------------------------------------------------------------------------------
 */

/* With more than one member a ping proves nothing to a client: it asks the leader now and then. */
static void cluster_pose_as_ensemble(struct server *s)
{
    struct jbytes members = clave__jbytes("server.1=a:2888:3888:participant;2181");
    struct node *n = clave__tree_find(&s->tree, clave__jbytes("/zookeeper/config"));
    uint8_t *data;
    int32_t len = members.n;
    crowd_require(n && clave__tree_copy_data(&s->tree, members, &data) == CLAVE_OK);
    clave__tree_swap_data(&s->tree, n, &data, &len);
    clave__tree_free_data(&s->tree, n, data);
}

static struct server *cluster_new_engine(void)
{
    struct server *s;
    struct server_options o = {.seed = 1, .max_session_ms = 600000};
    crowd_require(clave__server_new(&s, &o) == CLAVE_OK);
    return s;
}

void cluster_begin(struct crowd *w)
{
    struct cluster *k = &w->cluster;
    k->size = w->o.members + w->o.observers;
    k->engine = cluster_new_engine();
    clave__server_start(k->engine, crowd_ms(w), cluster_wall(w));
    if (k->size > 1)
        cluster_pose_as_ensemble(k->engine);
    k->serving = true;
    k->tick_at = INT64_MAX;
    cluster_settle(w);
}

void cluster_free(struct crowd *w)
{
    clave__server_free(w->cluster.engine);
}

static void cluster_commit(struct crowd *w)
{
    struct cluster *k = &w->cluster;
    struct log_batch batch = clave__server_log_pending(k->engine);
    if (k->committing || batch.n == 0)
        return;
    k->committing = true;
    k->committing_zxid = batch.last_zxid;
    clave__server_log_taken(k->engine);
    crowd_put(w, w->now + w->o.costs.commit, EVENT_COMMITTED, NULL, k->term);
}

void cluster_settle(struct crowd *w)
{
    struct cluster *k = &w->cluster;
    cluster_commit(w);
    struct server_conn *conn;
    while ((conn = clave__server_next_ready(k->engine)))
        connection_collect(w, conn);
    int64_t at = clave__server_deadline(k->engine);
    at = at == INT64_MAX ? at : at * 1000;
    at = at > w->now ? at : w->now;
    if (k->serving && at < k->tick_at) {
        k->tick_at = at;
        crowd_put(w, at, EVENT_SERVER_TICK, NULL, 0);
    }
}

void cluster_committed(struct crowd *w, struct participant *p, uint32_t detail)
{
    (void)p;
    struct cluster *k = &w->cluster;
    if (detail != k->term)
        return;
    k->committing = false;
    clave__server_durable(k->engine, k->committing_zxid);
    cluster_settle(w);
}

void cluster_tick(struct crowd *w, struct participant *p, uint32_t detail)
{
    (void)p;
    (void)detail;
    struct cluster *k = &w->cluster;
    if (w->now < k->tick_at)
        return;
    k->tick_at = INT64_MAX;
    if (!k->serving)
        return; /* the next leader's engine arms it again */
    clave__server_tick(k->engine, crowd_ms(w), cluster_wall(w));
    cluster_settle(w);
}

/* ---- faults -----------------------------------------------------------------------------------
 */

static void cluster_cut_all(struct crowd *w)
{
    for (size_t i = 0; i < w->o.clients; i++)
        if (!w->participants[i].dead)
            connection_cut(w, &w->participants[i]);
}

static void cluster_cut_member(struct crowd *w, size_t member)
{
    for (size_t i = 0; i < w->o.clients; i++)
        if (!w->participants[i].dead && w->participants[i].conn.member == member)
            connection_cut(w, &w->participants[i]);
}

/* Another leader begins with the state, and gives each session its whole time. */
static void cluster_succeed(struct crowd *w)
{
    struct cluster *k = &w->cluster;
    struct buf snapshot;
    int64_t zxid;
    char fault[200];
    clave__buf_init(&snapshot, &w->mem, SIZE_MAX / 4);
    crowd_require(clave__server_save_snapshot(k->engine, &snapshot, &zxid) == CLAVE_OK);
    clave__server_free(k->engine);
    k->engine = cluster_new_engine();
    crowd_require(clave__server_load_snapshot(k->engine, clave__buf_bytes(&snapshot),
                                              clave__buf_len(&snapshot), fault,
                                              sizeof fault) == CLAVE_OK);
    clave__buf_fini(&snapshot);
    clave__server_start(k->engine, crowd_ms(w), cluster_wall(w));
    k->term++;
    k->committing = false;
    k->tick_at = INT64_MAX;
    k->members[k->leader].dead = false;
    k->serving = true;
    for (size_t i = 0; i < k->size; i++) /* whom they turn away is over */
        k->members[i].busy_until = w->now;
    for (size_t i = 0; i < w->o.clients; i++)
        if (w->participants[i].conn.queued)
            connection_asked(w, &w->participants[i], 0);
    cluster_settle(w);
}

static void cluster_lose_leader(struct crowd *w)
{
    struct cluster *k = &w->cluster;
    k->serving = false;
    k->members[k->leader].dead = true;
    k->leader += w->o.members > 1;
    cluster_cut_all(w);
    for (size_t i = 0; i < k->size; i++) /* what they had to do was for them */
        k->members[i].busy_until = w->now;
    crowd_put(w, w->now + w->o.costs.election, EVENT_FAULT_OVER, NULL, 0);
}

/* A third of the clients, and one member. */
static void cluster_lose_rack(struct crowd *w)
{
    size_t lost = w->cluster.size - 1;
    for (size_t i = 0; i < w->o.clients; i += 3)
        participant_kill(&w->participants[i]);
    if (lost > 0) {
        w->cluster.members[lost].dead = true;
        cluster_cut_member(w, lost);
    }
    cluster_settle(w);
}

void cluster_fault(struct crowd *w, struct participant *p, uint32_t detail)
{
    (void)p;
    (void)detail;
    struct cluster *k = &w->cluster;
    const char *fault = w->o.fault;
    if (strcmp(fault, "leader") == 0) {
        cluster_lose_leader(w);
    } else if (strcmp(fault, "member") == 0) {
        k->members[k->size - 1].dead = true;
        cluster_cut_member(w, k->size - 1);
        cluster_settle(w);
    } else if (strcmp(fault, "rack") == 0) {
        cluster_lose_rack(w);
    } else if (strcmp(fault, "network") == 0) {
        k->silent_until = w->now + w->o.outage_ms * 1000;
    }
}

void cluster_fault_over(struct crowd *w, struct participant *p, uint32_t detail)
{
    (void)p;
    (void)detail;
    cluster_succeed(w);
}
