/* granted_field.h - since when a lock is held, as far as its node can tell.
 *
 * The ctime of a node is the time when its owner queued, which is also the time of the grant if the
 * owner did not have to wait. Only the holder knows whether it had to. So `clave lock`, after a
 * wait, writes to its node once when the lock is granted, and from then on the node's mtime is the
 * time of the grant, unless a field added later gives the time in digits. Other clients do not
 * record it. */
#ifndef CLAVE_CMD_RUN_GRANTED_FIELD_H
#define CLAVE_CMD_RUN_GRANTED_FIELD_H

#include "cmd/run/run_flags.h"

/* Appends the field that says "may have to wait" to a participant's data (`n` bytes of a buffer of
 * `cap`) or, in a program that has replaced the holder in place, when that was granted the lock.
 * Returns the new length. */
size_t held_since_promise(const struct run_plan *plan, char *data, size_t n, size_t cap);
/* The lock was granted after a wait: records the time of the grant in the node at path `node`.
 * Keeps requests that others have written to the node meanwhile. Nobody waits for this write, and
 * its failure is not reported. */
void held_since_record(clave_async_client *c, const struct run_plan *plan, const char *node);

/* What the holder's node says to others about the holder, besides its identity: the field `text`,
 * and "unhealthy=1" while its work is unhealthy, which a gate counts. The text may change at any
 * rate: at most one write is under way, and if several texts are set meanwhile, the newest is
 * written. Nobody waits for these writes, and their failure is not reported. The node still tells
 * the time of the grant afterwards. */
enum { HELD_TEXT_CAP = 384 };
struct held_text {
    clave_async_client *client;
    char *node;               /* its path; NULL: this node has no room for a text */
    char text[HELD_TEXT_CAP]; /* as it should be; "": none */
    bool unhealthy;           /* whether "unhealthy=1" should be there */
    bool busy, changed;       /* a request is under way; the text was set since it began */
    int attempts;             /* how many are left */
};
/* Begins with no text, without a request. `t` must outlive the client. */
void held_text_init(struct held_text *t, clave_async_client *c, const struct run_plan *plan,
                    const char *node);
/* A text that does not fit is cut off. If `unhealthy`, there must be a text. */
void held_text_set(struct held_text *t, const char *text, bool unhealthy);
void held_text_fini(struct held_text *t);

#endif
