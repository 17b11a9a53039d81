/* leader_follow.h - an election as a verb sees it: every change of its leader, and the result of a
 * transfer, passed from the loop's thread to the verb's thread. */
#ifndef CLAVE_CMD_QUEUES_LEADER_FOLLOW_H
#define CLAVE_CMD_QUEUES_LEADER_FOLLOW_H

#include <pthread.h>

#include "clave/async/leader.h"
#include "clave/client.h"
#include "cmd/cli/cmd_options.h"

struct leader_state {
    struct leader_state *next;
    clave_err err;
    bool vacant;
    /* with `vacant`: no session owns the first candidate's node, which `node`, `id` and `stat`
     * describe */
    bool left_over;
    char *node; /* name of the leader's node */
    char *id;   /* NULL: the node's data is not text */
    clave_stat stat;
    char *value; /* NULL: nothing published; ends with a NUL */
    size_t len;
};

struct leader_follow {
    clave_client *session;
    const char *path;
    int wakeup;
    clave_async_leader_watch *watch; /* used on the loop's thread only */
    const char *target; /* target of the transfer; also used on the loop's thread only */
    pthread_mutex_t mutex;
    struct leader_state *first, **last; /* guarded by the mutex, as is everything below */
    bool out_of_memory;
    bool answered; /* the server has answered the transfer with `answer` */
    clave_err answer;
};

/* Begins to follow the election at `path`. The struct must not be moved or copied afterwards. Takes
 * over the session, which leader_follow_close closes. Returns EXIT_OK, or an exit code after a
 * message. */
int leader_follow_open(struct leader_follow *f, clave_client *session, const char *path,
                       const struct options *o);
/* Waits for the next state, which the caller frees. Returns NULL in three cases: the time `until`
 * (clave_now()) has passed, and *why is CLAVE_OK; a signal has arrived on `signals` (-1: none), and
 * *sig is its number; or the transfer was answered, or memory ran out, and *why is that error. */
struct leader_state *leader_follow_next(struct leader_follow *f, int signals, int64_t until,
                                        int *sig, clave_err *why);
void leader_follow_free(struct leader_state *it); /* NULL is ignored */
/* Asks the leader to resign in favour of `node` (NULL: of anybody). If the answer is an error,
 * leader_follow_next returns it. */
void leader_follow_transfer(struct leader_follow *f, const char *node);
/* Stops following, and closes the session. */
void leader_follow_close(struct leader_follow *f);

#endif
