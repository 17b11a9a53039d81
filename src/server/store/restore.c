/* restore.c - makes the state of a backup the initial state of another server; see restore.h. To
 * grant nothing while earlier holders may still believe that they hold something, the engine uses a
 * session that belongs to nobody: SESSION_OF_RESTORE in request/session_tracker.h. */
#include "server/store/restore.h"

#include <assert.h>

#include "server/request/request.h"
#include "server/server_internal.h"

/* 2020-01-01 as ms since 1970, and ten minutes in ms. There are fewer than 2^32 zxid steps in ten
 * minutes. */
#define CLOCK_BEGIN ((int64_t)1577836800 * 1000)
enum { CLOCK_UNIT_MS = 600000, CLOCK_STEPS_A_MS = 4096, EPOCH_SHIFT = 32 };

bool clave__restore_knows_time(int64_t wall)
{
    return wall >= CLOCK_BEGIN + CLOCK_UNIT_MS;
}

int64_t clave__restore_zxid(int64_t last_zxid, int64_t epoch, int64_t wall)
{
    int64_t since = clave__restore_knows_time(wall) ? wall - CLOCK_BEGIN : 0;
    int64_t steps = since % CLOCK_UNIT_MS * CLOCK_STEPS_A_MS;
    int64_t zxid = (since / CLOCK_UNIT_MS) << EPOCH_SHIFT | steps;
    int64_t newest = last_zxid >> EPOCH_SHIFT;
    newest = epoch > newest ? epoch : newest;
    assert(newest < INT32_MAX); /* epochs have 31 bits */
    if (zxid > last_zxid && zxid >> EPOCH_SHIFT > epoch)
        return zxid;
    return (newest + 1) << EPOCH_SHIFT | steps;
}

static void restore_end_sessions(struct server *s)
{
    struct map_node *at;
    while ((at = clave__map_next(&s->sessions.table, NULL)))
        clave__sessions_remove(&s->sessions, MAP_ENTRY(at, struct session, in_table));
}

/* Removes the ephemeral nodes as if each session had been closed, so that the Stats of their
 * parents come out right. */
static clave_err restore_remove_ephemerals(struct server *s)
{
    clave_err err = CLAVE_OK;
    struct map_node *at;
    while (err == CLAVE_OK && (at = clave__map_next(&s->tree.owners, NULL)))
        err = clave__session_expire(s, MAP_ENTRY(at, struct owner, in_tree)->id);
    return err;
}

clave_err clave__server_restore(struct server *s, const struct restore *r, struct restored *out)
{
    assert(!s->serving && r->quiet_ms > 0);
    struct session *quiet;
    *out = (struct restored){s->sessions.table.count, s->tree.ephemerals};
    restore_end_sessions(s);
    clave__sessions_note_id(&s->sessions, clave__session_id_at(r->wall));
    clave__quota_recount(s);
    s->last_zxid = r->zxid;
    clave_err err = restore_remove_ephemerals(s);
    clave__server_log_taken(s); /* the snapshot that follows has it all */
    s->txn_log.durable_zxid = s->last_zxid;
    return err == CLAVE_OK
               ? clave__sessions_add(&s->sessions, SESSION_OF_RESTORE, r->quiet_ms, &quiet)
               : err;
}

int32_t clave__restore_longest_session(const struct server *s)
{
    int32_t longest_ms = s->limits.max_session_ms;
    struct map_node *at = NULL;
    while ((at = clave__map_next(&s->sessions.table, at))) {
        const struct session *session = MAP_ENTRY(at, struct session, in_table);
        longest_ms = session->timeout_ms > longest_ms ? session->timeout_ms : longest_ms;
    }
    return longest_ms;
}

/* The restore may have been done without knowing this server's limits. */
void clave__restore_start(struct server *s)
{
    struct session *quiet = s->sessions.of_restore;
    if (!quiet)
        return;
    if (quiet->timeout_ms < s->limits.max_session_ms)
        quiet->timeout_ms = s->limits.max_session_ms;
    clave__log(&s->log, CLAVE_LOG_WARN,
               "this directory was restored: for %d ms no ephemeral node is created, so no lock is "
               "granted, because clients from before may still believe that they hold one",
               (int)quiet->timeout_ms);
}
