/* member.h - one server of an ensemble, as its clients see it: it passes requests on to the
 * leader and answers back. Cut off from the leader it goes on answering pings and reads from
 * the state it had, and writes and sync not at all, until it gives up and closes every
 * connection. */
#ifndef CLAVE_SIM_MEMBER_H
#define CLAVE_SIM_MEMBER_H

#include "server_host.h"

enum { MEMBER_TOUCHED = 64 };

struct ensemble;

struct member {
    struct ensemble *of;
    struct world *w;
    unsigned index;
    char name[STORY_WHO];
    struct net_listener listener;
    struct net_road road; /* to the leader */
    struct list relays;   /* its clients' connections */
    bool cut;
    struct server *stale; /* what it answers from while it is cut off */
    struct purse purse;
    struct alarm run;
    struct alarm report; /* to the leader: who was active */
    struct alarm next;   /* gives up; or finds the leader again */
    int64_t touched[MEMBER_TOUCHED];
    size_t ntouched;
};

void member_init(struct member *m, struct ensemble *e, unsigned index);
void member_fini(struct member *m);
/* It has found the leader: clients may come. */
void member_join(struct member *m);
/* Cut off; it gives up after `us`, and finds the leader again after as long once more. */
void member_cut(struct member *m, int64_t us);

#endif
