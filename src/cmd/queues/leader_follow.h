/* leader_follow.h - an election as a verb sees it: every change of its leader, and the result of a
 * transfer, brought from the loop's thread to the verb's own. */
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
    bool left_over; /* and the first candidate is: `node`, `id` and `stat` are its own */
    char *node;     /* name */
    char *id;       /* NULL: not text */
    clave_stat stat;
    char *value; /* NULL: none published; followed by a NUL */
    size_t len;
};

struct leader_follow {
    clave_client *session;
    const char *path;
    int wakeup;
    clave_async_leader_watch *watch; /* the loop's thread only */
    const char *target;              /* likewise; the target of the transfer */
    pthread_mutex_t mutex;
    struct leader_state *first, **last; /* under the mutex, as is everything below */
    bool out_of_memory;
    bool answered; /* the transfer was answered, with `answer` */
    clave_err answer;
};

/* EXIT_OK, or the exit code after a message. The struct must not move afterwards. */
int leader_follow_open(struct leader_follow *f, clave_client *session, const char *path,
                       const struct options *o);
/* The next state, to be freed. NULL: `until` (clave_now()) has passed, with CLAVE_OK in *why; or a
 * signal came on `signals` (-1: none), its number in *sig; or the transfer was answered or memory
 * ran out, with the error in *why. */
struct leader_state *leader_follow_next(struct leader_follow *f, int signals, int64_t until,
                                        int *sig, clave_err *why);
void leader_follow_free(struct leader_state *it); /* NULL is ignored */
/* Asks the leader to resign for `node` (NULL: for any other). leader_follow_next() returns the
 * answer if it is an error. */
void leader_follow_transfer(struct leader_follow *f, const char *node);
/* Closes the session too. */
void leader_follow_close(struct leader_follow *f);

#endif
