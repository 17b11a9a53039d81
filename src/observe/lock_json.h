/* lock_json.h - a lock, and a place in it, as JSON: Lock and Place of openapi.json. */
#ifndef CLAVE_OBSERVE_LOCK_JSON_H
#define CLAVE_OBSERVE_LOCK_JSON_H

#include "base/json_writer.h"
#include "observe/lock_model.h"

/* The role of a place, in the words of `clave locks` and `clave top`: "holder", "waiting", "lease",
 * "slot", "leader", "candidate"; in a read-write lock "reader" and "writer", or "to-read" and
 * "to-write" while waiting; "outside" (see clave__lock_is_outside); "left-over". */
const char *clave__lock_role_of_side(const struct lock_node *p);
/* Which software made the node, judged by its name and data: "clave", "curator", "kazoo" or
 * "other"; NULL: it may not be read. */
const char *clave__lock_client(const struct lock_node *p);

void clave__lock_place_json(struct json *j, const char *key, const struct lock_node *p);
/* Writes null if the token is 0, because the node may not be read. */
void clave__lock_token_json(struct json *j, const char *key, int64_t token);
/* Writes null if `ms` is negative. */
void clave__lock_time_json(struct json *j, const char *key, int64_t ms);

/* What a stranger's node is not: "this is not a slot, but counts as one". */
const char *clave__lock_stranger_what(const struct lock_stranger *s);
/* The same with the command that removes it: "this is not a slot, but counts as one; to remove it:
 * clave rm -r /x/owners/foo"; without the command if it does not fit. The other function writes the
 * fault of a limit that is not a number. Both return `out`. */
enum { LOCK_FAULT_CAP = 2048 };
const char *clave__lock_stranger_text(const struct lock_stranger *s, char out[LOCK_FAULT_CAP]);
const char *clave__lock_bad_limit_text(const char *path, char out[LOCK_FAULT_CAP]);

/* Writes the whole lock, with at most `most` holders, waiters and left-over places each;
 * `nholders`, `nwaiters` and `nleft_over` tell how many there are. `now` is wall clock. */
void clave__lock_json(struct json *j, const char *key, const struct lock_queue *q, int64_t now,
                      size_t most);

/* Writes a lock that is gone. */
void clave__lock_json_vanished(struct json *j, const char *path, enum lock_queue_kind kind);

/* The same for a lock of any size, piece by piece, while it may be changing. */
enum lock_walk_phase {
    LOCK_WALK_HEAD,
    LOCK_WALK_HOLDERS,
    LOCK_WALK_WAITERS,
    LOCK_WALK_LEFT_OVER,
    LOCK_WALK_DONE
};
struct lock_walk {
    const struct clave_mem *mem;
    void (*members)(struct json *j, const void *arg); /* writes additional members; may be NULL */
    const void *arg;
    char *path; /* owned */
    bool leases;
    enum lock_walk_phase phase;
    struct buf number, name; /* the key of the place written last, NUL-terminated */
};
/* ENOMEM. */
clave_err clave__lock_walk_init(struct lock_walk *w, const struct clave_mem *mem,
                                const struct lock_queue *q);
void clave__lock_walk_fini(struct lock_walk *w);
/* Writes about `budget` more places. ENOMEM, or the error of j. */
clave_err clave__lock_walk_piece(struct lock_walk *w, struct json *j, const struct lock_model *m,
                                 int64_t now, size_t budget);

/* A number that covers everything that is shown of a lock and may change: every gate that sees the
 * same tree computes the same one, and it is different after each change. */
uint64_t clave__lock_etag(const struct lock_queue *q);

#endif
