/* registrant.h - what a process does with a service: it registers an instance, changes it, makes it
 * unreadable, leaves and comes back, deletes those of others; and it follows the service, as a
 * client of it does. */
#ifndef CLAVE_SIM_REGISTRANT_H
#define CLAVE_SIM_REGISTRANT_H

#include "workload.h"

struct checker;

enum { REGISTRANTS = 8 };

/* Of one instance: what may have happened to its node. */
struct registration_past {
    int64_t czxid;       /* of the node, at the latest look; 0: there was none */
    int64_t owner;       /* its session */
    int64_t missed;      /* the newest zxid as of which it may have been missing */
    int64_t shaky_until; /* true time: until then a delete may be under way */
    /* The session in which a registration was freed without a close: nobody hears when its node is
     * deleted, which the next one of that session may have taken for its own. 0: there is none; -1:
     * the next session. */
    int64_t freed_in;
    int64_t was_freed_in; /* before the node was gone, which a crash may undo */
    /* A write was given up, and may still be done: a server compares the version, which a later
     * node may have as well. */
    bool late_write;
};

struct registration_world {
    struct registration_past of[REGISTRANTS]; /* by the index of the process */
    int64_t zxid;                             /* of the server, at the latest look */
    bool away;                                /* it did not run then */
};

/* Nothing of them happens in a workload without registrants. */
void registrant_begin(struct workload *l);
void registrant_act(struct workload *l);
/* Frees the node and the instances. */
void registrant_put_away(struct workload *l);
/* The client has been freed. */
void registrant_ended(struct workload *l);
/* After every step. */
void registration_world_look(struct checker *c);
/* In the end the process has the instance that it registered, and sees all that there are: why that
 * is not so; "" when it is. */
void registrant_tell(const struct workload *l, char *out, size_t cap);

#endif
