/* recipe.h - the locks of clave as an actor uses them: one way to ask, to hold, to give back. */
#ifndef CLAVE_SIM_RECIPE_H
#define CLAVE_SIM_RECIPE_H

#include "clave/async/leader.h"
#include "clave/async/multilock.h"
#include "clave/async/rwlock.h"
#include "clave/async/semaphore.h"
#include "lock_layout.h"
#include "recipe/grant_held.h"

struct actor;
struct workload;

enum { HOLDS = 3 }; /* at most, of one actor */

struct recipe {
    const char *name;
    bool in_order;    /* first come, first served */
    bool is_personal; /* each actor has an object of its own */
    /* All may be refused at once; what they start is told by actor_acquired, by actor_left. Each
     * callback that will come is announced with actor_owe. */
    clave_err (*acquire)(struct actor *a);
    /* The actor is a thread, whose time has come while it waits: true, it had been told something.
     * NULL: it is not. */
    bool (*awaken)(struct actor *a);
    clave_err (*cancel)(struct actor *a);
    /* Everything it has. `sure`: and wants to know when the nodes are gone. */
    clave_err (*release)(struct actor *a, bool sure);
    /* Of the nth hold, from memory. */
    bool (*held)(const struct actor *a, unsigned nth, struct grant_facts *out);
    /* More than its deadline; NULL: there is nothing more. */
    bool (*is_valid)(const struct actor *a, bool lasts);
    clave_err (*grant)(const struct actor *a, unsigned nth, clave_async_grant **out);
    /* More than that, now and then, while it holds; false: there is nothing more. */
    bool (*dally)(struct actor *a);
    /* What the actor asked is freed, with whatever others of the process have of it. */
    void (*discard)(struct actor *a);
    clave_err (*list)(struct actor *a, clave_async_participants_cb *cb, void *arg);
};

extern const struct recipe recipe_mutex, recipe_rwlock, recipe_semaphore, recipe_multilock,
    recipe_latch, recipe_selector;

/* The objects of one process at one site, made when they are first needed. */
struct recipe_objects {
    clave_async_mutex *mutex;
    clave_async_rwlock *rwlock;
    clave_async_semaphore *semaphore;
};

#endif
