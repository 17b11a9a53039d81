/* snapshot_schedule.c - when a snapshot is taken: after so many transactions, or so many bytes of
 * them. snapshot_save.c begins the counts anew with each; the driver asks _wants_snapshot whenever
 * it has time. */
#include "server/server_internal.h"

enum { DEFAULT_SNAP_COUNT = 100000, LONG_LOG = 256 << 20, NODE_BYTES = 80, ALL = 1024 };
/* A million takes some half a second to replay. */
enum { MANY = 10 };

/* Between half of all that the limits allow and all of it, as in Apache. */
void clave__snapshot_schedule(struct server *s)
{
    s->snapshot.txns_since = 0;
    s->snapshot.bytes_since = 0;
    s->snapshot.share = ALL / 2 + (int64_t)clave__rand_below(&s->rand, ALL / 2 + 1);
}

void clave__snapshot_count(struct server *s, size_t bytes)
{
    s->snapshot.txns_since++;
    s->snapshot.bytes_since += (int64_t)bytes;
}

/* About what a snapshot would have. */
static int64_t schedule_tree_bytes(const struct server *s)
{
    return (int64_t)(s->tree.data_bytes + s->tree.nodes.count * NODE_BYTES);
}

static bool schedule_is_over(const struct server *s, int64_t value, int64_t most)
{
    return value > most * s->snapshot.share / ALL;
}

/* A large tree is saved only after as many transactions as it has nodes, and as many bytes of them
 * as it has: then saving costs no more than logging does. But a log of many short transactions
 * takes long to replay, however large the tree is. Who has set a number gets it. */
static bool schedule_has_enough(const struct server *s)
{
    int64_t nodes = (int64_t)s->tree.nodes.count;
    int64_t most = nodes > DEFAULT_SNAP_COUNT ? nodes : DEFAULT_SNAP_COUNT;
    if (s->limits.snap_count > 0)
        return schedule_is_over(s, s->snapshot.txns_since, s->limits.snap_count);
    return schedule_is_over(s, s->snapshot.txns_since, MANY * most) ||
           (schedule_is_over(s, s->snapshot.txns_since, most) &&
            schedule_is_over(s, s->snapshot.bytes_since, schedule_tree_bytes(s)));
}

/* Of nodes of a megabyte, 100000 transactions would fill any disk. */
static bool schedule_is_long(const struct server *s)
{
    int64_t most = schedule_tree_bytes(s);
    return schedule_is_over(s, s->snapshot.bytes_since, most > LONG_LOG ? most : LONG_LOG);
}

bool clave__server_wants_snapshot(const struct server *s)
{
    return s->snapshot.save.phase == SAVE_IDLE && (schedule_has_enough(s) || schedule_is_long(s));
}
