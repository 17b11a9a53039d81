/* voice.h - what a command says of itself to its service manager: that it is ready, that it lives,
 * that it stops. One that keeps its word does so in time; one that breaks it falls silent, or goes
 * on talking without a word that counts, or gives itself up. When it is given up is decided by the
 * shipped supervise/notify_policy. */
#ifndef CLAVE_SIM_VOICE_H
#define CLAVE_SIM_VOICE_H

#include "host.h"
#include "supervise/notify_policy.h"

enum { VOICE_UNHEARD_CAP = 16 };

struct voice {
    const struct host *host; /* NULL: it promises nothing */
    struct rand_state *rng;
    struct alarm next; /* it speaks */
    bool running, stopping;
    bool broken, chatty;
    bool was_broken, was_late; /* some time, so that it may be given up */
    int64_t promised_until;    /* by the clock of its machine; CLAVE_NEVER */

    struct notify_policy policy;
    struct notify_said unheard[VOICE_UNHEARD_CAP];
    unsigned nunheard;
    void (*changed)(void *owner); /* it has spoken */
    void *owner;
};

/* The command is being started. */
void voice_begin(struct voice *v, const struct host *host, struct rand_state *rng,
                 int64_t session_ms);
void voice_fini(struct voice *v);
/* Hears what was said, and looks what is due. */
void voice_look(struct voice *v);
/* It has broken its word for so long that it should be over. Words of before `from`, by the clock
 * of its machine, may have been heard only then. */
bool voice_is_neglected(const struct voice *v, int64_t from, int64_t kill_ms);

#endif
