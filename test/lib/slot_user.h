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

size_t slot_user_owned(struct memnet *p); /* slots at the server */

#endif
