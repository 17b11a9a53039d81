/* unguarded.h - a counter that is written under a lock without its guard: which write made which
 * version of it, and whether its writer still held the lock when it was requested.
 *
 * A lost update is a version whose value is not one more than that of the version before. What
 * holds without a guard: a write asked for while the hold is valid by its holder's clock is done
 * before the next grant, or never, however long it is under way; since it is of the session that
 * the lock is of. So every lost update is caused by a write that was asked for too late, or whose
 * lock an operator took away. */
#ifndef CLAVE_SIM_UNGUARDED_H
#define CLAVE_SIM_UNGUARDED_H

#include "lock_layout.h"

struct unguarded_write {
    int64_t token;
    int64_t value;
    int32_t base; /* the version that was read */
    bool late;    /* asked for without a valid hold */
    char node[PATH_SIZE];
};

struct unguarded {
    struct unguarded_write *writes;
    size_t nwrites, writes_cap;
    size_t *made_by; /* version i + 1, as far as it is known: which of the writes, from 1 */
    size_t nmade;
    int64_t seen_zxid;
    int32_t version; /* the newest that was seen */
};

void unguarded_fini(struct unguarded *u);
/* Somebody is about to write. Returns its number, which the data ends with. */
size_t unguarded_add(struct unguarded *u, const struct unguarded_write *write);
/* That write made this version. */
void unguarded_made(struct unguarded *u, size_t write, int32_t version);
/* What stands at the server. */
void unguarded_look(struct unguarded *u, const struct server_host *h, const char *path);
/* An operator takes this node's lock away. */
void unguarded_taken(struct unguarded *u, const char *node);
/* How many updates were lost; breaks the world when one was not caused by a late write. */
uint64_t unguarded_count(const struct unguarded *u, struct world *w, const char *path);

#endif
