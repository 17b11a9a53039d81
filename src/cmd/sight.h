/* sight.h - an election as a verb sees it: every change of its leader, and what became of a
 * transfer, brought from the loop's thread to the verb's own. */
#ifndef CLAVE_CMD_SIGHT_H
#define CLAVE_CMD_SIGHT_H

#include <pthread.h>

#include "clave/leader.h"
#include "clave/session.h"
#include "cmd/options.h"

struct sighting {
    struct sighting *next;
    clave_err err;
    bool vacant;
    char *node; /* name */
    char *id;   /* NULL: not in words */
    clave_stat stat;
    char *value; /* NULL: none published; NUL behind it */
    size_t len;
};

struct sight {
    clave_session *session;
    const char *path;
    int wakeup;
    clave_leader_watch *watch; /* the loop's thread only */
    const char *target;        /* likewise, of the transfer */
    pthread_mutex_t mutex;
    struct sighting *first, **last; /* under the mutex, as all that follows */
    bool lacks_memory;
    bool answered; /* the transfer was, with: */
    clave_err answer;
};

/* EXIT_OK, or the exit code, having told why. Not to be moved afterwards. */
int sight_open(struct sight *s, clave_session *session, const char *path, const struct options *o);
/* The next sighting, to be freed. NULL: `until` (clave_now()) has come, CLAVE_OK in *why; a signal
 * has come on `signals` (-1: none), its number in *sig; the transfer was answered or memory is
 * short, *why. */
struct sighting *sight_next(struct sight *s, int signals, int64_t until, int *sig, clave_err *why);
void sight_free(struct sighting *it); /* NULL is ignored */
/* Asks; sight_next() ends with the answer when that is an error. */
void sight_transfer(struct sight *s, const char *node);
/* And its session. */
void sight_close(struct sight *s);

#endif
