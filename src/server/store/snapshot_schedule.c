/* snapshot_schedule.c - when a snapshot is taken: after so many transactions. snapshot_save.c
 * begins the count anew with each; the driver asks _wants_snapshot whenever it has time. */
#include "server/server_internal.h"

enum { DEFAULT_SNAP_COUNT = 100000 };

/* A large tree is saved only after as many transactions as it has nodes. Then saving costs no more
 * than logging does, and replaying the log no more than loading the snapshot. */
static int64_t longest_log(const struct server *s)
{
    int64_t nodes = (int64_t)s->tree.nodes.count;
    if (s->snap_count > 0)
        return s->snap_count;
    return nodes > DEFAULT_SNAP_COUNT ? nodes : DEFAULT_SNAP_COUNT;
}

/* Between half of it and all of it, as in Apache. */
void clave__snapshot_schedule(struct server *s)
{
    int64_t half = longest_log(s) / 2;
    s->txns_since_snapshot = 0;
    s->snapshot_after = half + (int64_t)clave__rand_below(&s->rand, (uint64_t)half + 1);
}

bool clave__server_wants_snapshot(const struct server *s)
{
    return s->save.phase == SAVE_IDLE && s->txns_since_snapshot > s->snapshot_after;
}
