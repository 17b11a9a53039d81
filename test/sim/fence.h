/* fence.h - the part of a runner before its command starts: the mark of whoever held before, the
 * fence that is owed for it, and the own mark. The recipe of the mark and the rules of the fence
 * are the shipped ones; the fence itself is modelled here, as a machine that is switched off. */
#ifndef CLAVE_SIM_FENCE_H
#define CLAVE_SIM_FENCE_H

#include "recipe/lock/held_mark.h"
#include "supervise/fence_policy.h"
#include "world.h"

struct actor;
struct runner;
struct lock_layout;

struct fence {
    clave_async_delay *delay; /* NULL: this runner has no fence */
    struct fence_policy policy;
    struct alarm alarm; /* the fence ends, or the pause after it */
    int64_t target;     /* the token that it is for */
    bool preparing;     /* the command has to wait */
    bool failed;        /* the mark could not be written */
    bool has_event;
    enum fence_event event; /* that the supervisor has not seen yet */
};

/* The runner is to fence: it asks for the mark. false: that is impossible, and it has to give up.
 */
bool fence_begin(struct runner *w);
/* At the end of each pass of its process, while it prepares. false: it gives up. */
bool fence_look(struct runner *w);
/* Its machine sleeps, or wakes. */
void fence_sleep(struct runner *w);
void fence_wake(struct runner *w);
/* The command is certainly gone, and its mark goes. */
void fence_end(struct runner *w);
void fence_fini(struct runner *w);

#endif
