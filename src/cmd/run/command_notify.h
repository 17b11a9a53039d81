/* command_notify.h - what the command itself says (--notify command, --ready, --watchdog-sec): it
 * gets a NOTIFY_SOCKET of clave's own, and what it sends there with sd_notify(3) is heard here, has
 * supervise/notify_policy.h judge, is shown, and is passed on to our own service manager as far as
 * it is that one's business. What follows for the hold is done by child.c, which hears of it
 * through struct runner_events.
 *
 *   READY=1, STATUS=, STOPPING=1         noted, shown, and passed on (sd_status.h)
 *   WATCHDOG=1, WATCHDOG=trigger         noted; our own watchdog is fed by sd_status.c
 *   EXTEND_TIMEOUT_USEC=                 noted, and passed on
 *   BARRIER=1                            what was sent before has been heard: its descriptor is
 * closed MAINPID=, MAINPIDFD..=, NOTIFYACCESS=, FD..=   not passed on: clave is the main process,
 * and nobody could use the descriptors, which are closed anything else passed on as it is */
#ifndef CLAVE_CMD_RUN_COMMAND_NOTIFY_H
#define CLAVE_CMD_RUN_COMMAND_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "cmd/cli/cmd_options.h"
#include "supervise/notify_policy.h"

struct run_plan;
struct runner;

enum { COMMAND_NOTIFY_NAME_CAP = 40, COMMAND_NOTIFY_STATUS_CAP = 200, COMMAND_NOTIFY_CAP = 256 };

struct command_notify_plan {
    struct notify_terms terms;
    bool has_watchdog; /* --watchdog-sec was given */
    /* The value of NOTIFY_SOCKET of the command, an abstract address; "": it gets none. */
    char socket[COMMAND_NOTIFY_NAME_CAP];
};

/* Parses a flag (ids in run_flags.h). false: its value is invalid, and a message has been
 * printed. */
bool command_notify_take_flag(struct command_notify_plan *p, struct options *o, int id);
/* Completes the plan with that of the service manager and the command, and checks that the flags go
 * together. Returns EXIT_OK, or an exit code after a message. */
int command_notify_check(struct run_plan *p);

struct command_notify {
    struct notify_policy policy;
    bool runs;   /* the command does, and has not ended */
    bool judged; /* and it is not being ended yet */
    int socket;  /* -1: none */
    uv_poll_t poll;
    uv_timer_t due;   /* of the policy */
    uv_timer_t pause; /* runs for a while after a status was shown, so that not each change is */
    char status[COMMAND_NOTIFY_STATUS_CAP]; /* the newest; "": none */
    char shown[COMMAND_NOTIFY_STATUS_CAP];  /* the one that is */
    bool told_stopping, told_stranger;
};

/* Opens the socket and its libuv handles, to be called when the guardian, which must not have the
 * socket, has been forked. Returns 0, or an error of libuv. */
int command_notify_open(struct runner *r);
/* The command is being started. */
void command_notify_run(struct runner *r);
/* The command is being ended: its silence does not count any more. */
void command_notify_excuse(struct runner *r);
/* The command has ended: nothing is heard any more. */
void command_notify_end(struct runner *r);
void command_notify_close(struct runner *r); /* closes the socket and the libuv handles */

/* Why the work is over. */
void command_notify_why(const struct runner *r, char out[COMMAND_NOTIFY_CAP]);
/* What others are to be shown; "": nothing. */
void command_notify_text(const struct runner *r, char out[COMMAND_NOTIFY_CAP]);

#endif
