/* in_place.h - a `clave lock` or `clave elect` whose command runs is replaced by a newer program
 * (--in-place): the same process executes it, so that the guardian and the command stay as they
 * are, and nobody else is granted the lock.
 *
 *   STAYING ──SIGUSR2──▶ ASKED ──the command runs──▶ TRYING ──the new program agrees──▶ HANDING
 *      ▲                                               │ refused                          │
 *      ├───────────────────────────────────────────────┴── the servers do not answer ─────┤
 *      │                                                                                   ▼
 *   GOING_ON ◀──────────────── the new program ◀──────────────────────────────────── EXECUTING
 *
 *   TRYING     the new program is run once, with the same arguments, and says whether it could
 *              take over. So a program that does not start, or does not know a flag, is refused
 *              while nothing has happened
 *   HANDING    the session is handed over as to another process (clave_async_client_hand_over)
 *   EXECUTING  the loop ends, and the state is written to a memfd that the new program inherits
 *   GOING_ON   the new program has its guardian and its command, and takes the lock up. Until it
 *              has, the guardian acts by the last deadline, as if no server answered
 *
 * What must stay true: a fault before EXECUTING leaves everything as it was; from then on the
 * command is ended in time whatever becomes of the new program; and no signal is lost or has its
 * default action in between. */
#ifndef CLAVE_CMD_RUN_IN_PLACE_H
#define CLAVE_CMD_RUN_IN_PLACE_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "clave/err.h"

struct in_place_state;
struct run_plan;
struct runner;

struct in_place {
    enum {
        IN_PLACE_STAYING,
        IN_PLACE_ASKED,
        IN_PLACE_TRYING,
        IN_PLACE_HANDING,
        IN_PLACE_EXECUTING,
        IN_PLACE_GOING_ON
    } phase;
    bool again;       /* GOING_ON: SIGUSR2 has arrived */
    bool leaves;      /* GOING_ON: the command has ended, and so will this process, with r->code */
    uv_timer_t limit; /* TRYING; ASKED: when to look again, which was done so many times: */
    int pauses;
    pid_t trial;  /* TRYING: the new program; 0: it has ended */
    int answer;   /* TRYING: its standard output; -1: none */
    char **words; /* TRYING to EXECUTING: what is executed, and its arguments */
    char program[4096];
    char *session; /* EXECUTING */
};

/* The session is being handed over, or was. */
static inline bool in_place_is_handing(const struct in_place *p)
{
    return p->phase == IN_PLACE_HANDING || p->phase == IN_PLACE_EXECUTING;
}

/* In the program that was started to say whether it could take over: says so. Returns the exit
 * code. */
int in_place_agree(void);
/* Reads the state that the program before this one has left, and completes the plan with it.
 * Returns EXIT_OK, or an exit code after a message. */
int in_place_take(struct run_plan *p);
void in_place_free(struct run_plan *p);

void in_place_open(struct runner *r); /* opens its libuv handle */
void in_place_close(struct runner *r);
/* Has the runner go on with the guardian of plan->in_place. Returns EXIT_OK, or an exit code after
 * a message. Called in place of guardian_start. */
int in_place_adopt_guardian(struct runner *r);
/* Has the runner go on with everything else, once its handles are open and its signals caught. */
void in_place_go_on(struct runner *r);

/* SIGUSR2 has arrived. */
void in_place_ask(struct runner *r);
/* The command has been started, or the lock has been taken up: begins if that was asked for. Ends
 * in `agreed`, unless it is refused. */
void in_place_look(struct runner *r);
/* A child of this process has ended. */
void in_place_on_reaped(struct runner *r, pid_t pid, int status);
/* The session could not be handed over: this program goes on. */
void in_place_refuse(struct runner *r, const char *why);
/* The loop has been stopped. Executes the new program, or this one if that fails; returns only if
 * both fail, or the command is being ended by now. */
void in_place_execute(struct runner *r);

#endif
