/* leader_follow.h - an election as a verb sees it: every change of its leader, and what became of a
 * transfer, brought from the loop's thread to the verb's own. */
#ifndef CLAVE_CMD_QUEUE_LEADER_FOLLOW_H
#define CLAVE_CMD_QUEUE_LEADER_FOLLOW_H

#include <pthread.h>

#include "clave/async/leader.h"
#include "clave/client.h"
#include "cmd/cli/options.h"

struct leader_state {
    struct leader_state *next;
    clave_err err;
    bool vacant;
    char *node; /* name */
    char *id;   /* NULL: not in words */
    clave_stat stat;
    char *value; /* NULL: none published; NUL behind it */
    size_t len;
};

struct leader_follow {
    clave_client *session;
    const char *path;
    int wakeup;
    clave_async_leader_watch *watch; /* the loop's thread only */
    const char *target;              /* likewise, of the transfer */
    pthread_mutex_t mutex;
    struct leader_state *first, **last; /* under the mutex, as all that follows */
    bool lacks_memory;
    bool answered; /* the transfer was, with: */
    clave_err answer;
};

/* EXIT_OK, or the exit code, having told why. Not to be moved afterwards. */
int leader_follow_open(struct leader_follow *s, clave_client *session, const char *path,
                       const struct options *o);
/* The next sighting, to be freed. NULL: `until` (clave_now()) has come, CLAVE_OK in *why; a signal
 * has come on `signals` (-1: none), its number in *sig; the transfer was answered or memory is
 * short, *why. */
struct leader_state *leader_follow_next(struct leader_follow *s, int signals, int64_t until,
                                        int *sig, clave_err *why);
void leader_follow_free(struct leader_state *it); /* NULL is ignored */
/* Asks; sight_next() ends with the answer when that is an error. */
void leader_follow_transfer(struct leader_follow *s, const char *node);
/* And its session. */
void leader_follow_close(struct leader_follow *s);

#endif
