/* command.h - what a runner runs: a process, and those that it starts. Of what they do it only
 * matters that they could do it: each process that is alive may write. */
#ifndef CLAVE_SIM_COMMAND_H
#define CLAVE_SIM_COMMAND_H

#include "world.h"

struct command {
    struct world *w;
    struct rand_state *rng;
    struct alarm next;            /* it does what it wants next: ends, or obeys SIGTERM */
    bool runs;                    /* the process itself */
    bool ignores_sigterm;         /* SIGTERM does nothing */
    bool stuck;                   /* it sleeps in the kernel: no signal ends it before it wakes */
    bool escaped;                 /* one process was being born while all were killed */
    unsigned descendants;         /* processes besides */
    bool asleep;                  /* with its machine */
    void (*changed)(void *owner); /* somebody of it has died */
    void *owner;
};

void command_init(struct command *c, struct world *w, struct rand_state *rng);
/* It ends by itself after so long, about. */
void command_start(struct command *c, int64_t lasts_us);
/* From now on it sleeps in the kernel, for a long while. */
void command_stick(struct command *c, int64_t lasts_us);
void command_fini(struct command *c);

bool command_is_alive(const struct command *c);
/* It could write now. */
static inline bool command_is_awake(const struct command *c)
{
    return (c->runs || c->descendants > 0) && !c->asleep;
}

/* A process that handles it ends within so long, or never. */
void command_terminate(struct command *c, int64_t within_us);
void command_kill(struct command *c);
/* Its machine is switched off. */
void command_switch_off(struct command *c);
/* Its parent has died: so does the process itself, and not what it has started. */
void command_parent_died(struct command *c);
void command_sleep(struct command *c);
void command_wake(struct command *c);

#endif
