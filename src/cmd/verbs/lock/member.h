/* member.h - a command and a node that is there while it runs and, with --health, while it is
 * healthy: what `clave member` and `clave register` share. */
#ifndef CLAVE_CMD_VERBS_LOCK_MEMBER_H
#define CLAVE_CMD_VERBS_LOCK_MEMBER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "clave/persistent_node.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/run/run_flags.h"

/* How an unhealthy command is treated. */
enum on_unhealthy {
    ON_UNHEALTHY_REMOVE,
    ON_UNHEALTHY_END,     /* it is removed, and the command is ended */
    ON_UNHEALTHY_DISABLE, /* it says `disabled`; for instances only */
};

struct member {
    struct options *o; /* the arguments after the first one are the command */
    const char *path;  /* of its node */
    const char *data;
    const char *disabled; /* ON_UNHEALTHY_DISABLE: what it says instead of `data` */
    const char *what;     /* in messages: "a member" */
    clave_persistent_node_kind kind;
    bool replace;
    bool stays; /* a persistent node outlives the command */
    struct health_plan health;
    enum on_unhealthy on_unhealthy;

    /* Of member.c alone. */
    clave_client *session;
    clave_persistent_node *node; /* NULL: it is not to be there now */
    int signals;                 /* a signalfd, of SIGCHLD too */
    pid_t pid;                   /* of the command; 0: none */
    int status;                  /* of waitpid, once it has ended */
    atomic_bool started;         /* once it has been: a refusal before that ends this process */
    uv_loop_t loop;              /* while the command runs */
    uv_poll_t signalled;
    uv_timer_t kill;
    struct health_check check;
    enum health_phase told;
    int64_t grace_until; /* the command is not ended before that */
    bool ending;
};
#define MEMBER_INIT                                                                                \
    {                                                                                              \
        .health = HEALTH_PLAN_INIT                                                                 \
    }

/* Parses a flag of run_flags.h. false, after a message: it is invalid. */
bool member_take_flag(struct member *m, int id);
/* Keeps the node and runs the command. Returns the exit code of the command, or another one after a
 * message. */
int member_run(struct member *m);

/* HOST-PID. Returns out. */
enum { MEMBER_ID_CAP = 280 };
const char *member_default_id(char out[MEMBER_ID_CAP]);

#endif
