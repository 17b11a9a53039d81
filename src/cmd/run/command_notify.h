/* command_notify.h - the command reports on itself (--notify command, --ready, --watchdog-sec). It
 * gets a NOTIFY_SOCKET of clave's own. Messages that it sends there with sd_notify(3) are judged by
 * supervise/notify_policy.h and shown, and those meant for the service manager are passed on.
 * child.c learns of changes through struct runner_events and decides what they mean for the hold.
 *
 *   READY=1, STATUS=, STOPPING=1     noted, shown, and passed on (sd_status.h)
 *   WATCHDOG=1, WATCHDOG=trigger     noted; sd_status.c feeds the service manager's watchdog
 *   EXTEND_TIMEOUT_USEC=             noted, and passed on
 *   BARRIER=1                        its descriptor is closed once earlier messages have been read
 *   MAINPID=, MAINPIDFD..=,          not passed on: clave is the main process, and the descriptors,
 *   NOTIFYACCESS=, FD..=             which nobody could use, are closed
 *   anything else                    passed on unchanged */
#ifndef CLAVE_CMD_RUN_COMMAND_NOTIFY_H
#define CLAVE_CMD_RUN_COMMAND_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
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
    bool runs;   /* the command is running */
    bool judged; /* the command runs and is not being ended, so its silence counts */
    int socket;  /* -1: none */
    uv_poll_t poll;
    uv_timer_t due;   /* when the policy has to be asked again */
    uv_timer_t pause; /* runs for a while after a status was shown, to limit how often one is */
    /* Messages with descriptors are taken off the queue by threads. */
    struct command_takers *takers; /* NULL: there is no socket */
    uv_poll_t reports;
    uv_timer_t late;
    bool taking;                 /* such a message is being taken, or every taker is stuck */
    struct command_taker *taker; /* takes it off; NULL: none, or `late` is to start one */
    struct timespec taken;       /* when that message was sent */
    char status[COMMAND_NOTIFY_STATUS_CAP]; /* the newest status; "": none */
    char shown[COMMAND_NOTIFY_STATUS_CAP];  /* the status that is shown */
    bool told_stopping, told_stranger;
};

/* Opens the socket and its libuv handles. Call it after the guardian has been forked, because the
 * guardian must not inherit the socket. Returns 0, or an error of libuv. */
int command_notify_open(struct runner *r);
/* The command is being started. */
void command_notify_run(struct runner *r);
/* The command is being ended: from now on it may be silent. */
void command_notify_excuse(struct runner *r);
/* The command has ended: later messages are ignored. */
void command_notify_end(struct runner *r);
void command_notify_close(struct runner *r); /* closes the libuv handles */

/* The part of it that passes to a program that replaces this one in place. */
struct command_notify_passed {
    struct notify_policy policy;
    bool runs, judged, told_stopping, told_stranger;
    int socket;
    char status[COMMAND_NOTIFY_STATUS_CAP], shown[COMMAND_NOTIFY_STATUS_CAP];
};
/* True while a thread takes a message off the queue, which an exec would have to wait for. */
bool command_notify_is_taking(const struct command_notify *n);
/* This program goes on after all, so it takes what was left to the new one. */
void command_notify_stay(struct runner *r);
void command_notify_pass_on(const struct command_notify *n, struct command_notify_passed *out);
/* After command_notify_open, and before the loop runs. */
void command_notify_go_on_with(struct runner *r, const struct command_notify_passed *from);

/* Writes the reason for which the command was given up. */
void command_notify_why(const struct runner *r, char out[COMMAND_NOTIFY_CAP]);
/* Writes the text for the lock's node: the status, or the reason. "" if there is none. */
void command_notify_text(const struct runner *r, char out[COMMAND_NOTIFY_CAP]);

#endif
