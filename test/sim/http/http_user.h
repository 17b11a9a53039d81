/* http_user.h - a program that holds locks over HTTP, as its author would write it from the
 * documents: it counts every deadline from when it sent the request, by its own clock; asks again
 * what was not answered, at another gate too; renews; and stops before its deadline. It may be
 * stopped at any time, and its answers read late. Its work may hang, and it renews all the same. */
#ifndef CLAVE_SIM_HTTP_USER_H
#define CLAVE_SIM_HTTP_USER_H

#include "http/gate_host.h"
#include "lock_layout.h"

enum { HTTP_GATES = 2 };

enum http_user_state {
    USER_OUT,     /* without a session */
    USER_RESTING, /* with one */
    USER_ASKING,  /* for a claim, or waits for it */
    USER_HOLDING,
    USER_LEAVING,   /* gives it back */
    USER_STREAMING, /* holds as long as a connection lives */
    USER_GONE,      /* says nothing any more */
};

struct http_user {
    struct world *w;
    struct http_world *of;
    struct http_sender sender;
    char name[LOG_WHO];
    struct rand_state rng;
    struct clock clock;
    struct gate *gates[HTTP_GATES];
    size_t ngates, gate;
    enum http_user_state state;
    int64_t timeout_ms, hold_us, rest_us;

    struct http_call *call; /* that it waits for; NULL: none */
    char unread[2048];      /* of a stream */
    enum http_user_state asked_in;
    bool renews, signs;    /* `call` renews; is a sign of life */
    bool has_answer;       /* it came, and is not read yet */
    int64_t paused_to;     /* true time */
    struct alarm alarm;    /* something to do, or the call takes too long */
    int64_t call_limit_ms; /* by its clock */

    char session[32], secret[96];
    unsigned site;
    char key[48];  /* of the claim: its id, too */
    bool unsure;   /* whether this gate knows of the claim */
    int64_t token; /* 0: it never held this claim */
    char node[128];
    int64_t deadline;        /* by its clock; valid while token is not 0 */
    int64_t renew_at, until; /* by its clock: the next renewal; the end of the hold or the rest */
    int64_t sign_at; /* likewise: the next sign of life; INT64_MAX: none, its work hangs perhaps */
    unsigned signs_left; /* then its work hangs */
    bool leaves;         /* the day is over */
    int64_t seen_zxid;
    uint64_t seen_start;
    uint64_t grants, lost;
};

void http_user_init(struct http_user *u, struct http_world *of, unsigned number);
void http_user_start(struct http_user *u);
void http_user_pause(struct http_user *u, int64_t us);
/* Its day is over: it finishes, or vanishes where it stands. */
void http_user_finish(struct http_user *u, bool vanish);
void http_user_fini(struct http_user *u);
/* By its clock it holds rightly. */
bool http_user_believes(const struct http_user *u);

#endif
