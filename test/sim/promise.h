/* promise.h - holds that depend on their work: actors that promise signs of life, give them, and
 * hang. What must hold: a hold whose work was silent longer than it promised is over; its node
 * stays for the reserve, and no longer. All of it by the clock of the process that holds. */
#ifndef CLAVE_SIM_PROMISE_H
#define CLAVE_SIM_PROMISE_H

#include "hold.h"

struct actor;
struct checker;
struct workload;

enum { SILENCES = 16 };

/* The node of a hold that a silence has ended. */
struct silence {
    char node[PATH_SIZE]; /* "": none */
    int64_t session;
    unsigned life;  /* of its process */
    int64_t due_ms; /* its process deletes the node then */
    /* True time since which nothing hinders that, on this connection; 0: something does. */
    int64_t free_since;
    uint64_t connection;
};

struct silences {
    struct silence of[SILENCES]; /* the newest, in a ring buffer */
    size_t n;
};

/* It has just been granted what it holds: it may promise signs of life. */
void promise_begin(struct actor *a);
/* A sign of life, another promise, or nothing for so long that it breaks its promise: true. */
bool promise_keep(struct actor *a);
/* The nth hold was lost by a silence. */
void promise_broken(struct actor *a, unsigned nth);

/* A valid hold. */
void promise_look(struct checker *c, const struct actor *a, const struct hold *h);
void promise_look_at_silences(struct checker *c, struct workload *l);

#endif
