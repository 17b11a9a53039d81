/* slot_user.h - one process at the slots of a memnet, and what its callbacks reported. */
#ifndef CLAVE_TEST_SLOT_USER_H
#define CLAVE_TEST_SLOT_USER_H

#include "clave/async/slots.h"
#include "lib/mutex_owner.h"

struct slot_user {
    struct memnet *p;
    size_t client;
    clave_async_slots *s;
    /* Takes: how many answers, and the newest. */
    unsigned answers, queued, refused;
    size_t ahead, owned;
    int64_t limit;
    char strange[64];
    clave_err err;
    bool taken;
    int64_t token, since;
    char node[256], id[CLAVE_SLOT_ID_MAX + 1], host[32], reason[32];
    /* Gives and breaks likewise. */
    unsigned gives;
    clave_err give_err;
    int64_t given; /* the token of the slot; 0: there was none */
    unsigned limits;
    clave_err limit_err;
};

/* At /s, with this seed of the limit. */
void slot_user_open(struct slot_user *a, struct memnet *p, size_t client, uint32_t limit);
void slot_user_close(struct slot_user *a);

/* `within_ms` as of owner_acquire; the request is 0. _begin_ does not settle. */
clave_err slot_user_take(struct slot_user *a, const char *id, int64_t within_ms);
clave_err slot_user_begin_take(struct slot_user *a, uint64_t request, const char *id,
                               int64_t within_ms);
clave_err slot_user_give(struct slot_user *a, const char *id, int64_t token);
/* Whatever its token, in this time. */
void slot_user_give_by(struct slot_user *a, const char *id, int64_t within_ms);
clave_err slot_user_set_limit(struct slot_user *a, uint32_t limit);

/* Of a give or a break: _give's own. `arg` is the user. */
void slot_user_on_gone(clave_async_slots *s, clave_err err, const clave_slot *slot, void *arg);
/* By "op". */
void slot_user_break(struct slot_user *a, const char *id, const char *reason);

struct slot_view {
    clave_err err;
    unsigned calls;
    int64_t limit;
    size_t n;
    int64_t newest;   /* the largest token */
    char text[256];   /* "ID HOST REASON;" of each */
    char broken[128]; /* "ID HOST BY REASON" */
    int64_t broken_token, broken_since;
};

void slot_user_on_list(clave_async_client *c, clave_err err, const clave_slots_view *view,
                       void *arg);
/* What the last client of the memnet sees. */
struct slot_view slot_user_list(struct memnet *p);
size_t slot_user_owned(struct memnet *p); /* slots at the server */

#endif
