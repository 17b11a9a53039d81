/* guardian_process.h - the guardian itself, and what it is told. */
#ifndef CLAVE_CMD_RUN_GUARDIAN_GUARDIAN_PROCESS_H
#define CLAVE_CMD_RUN_GUARDIAN_GUARDIAN_PROCESS_H

#include "cmd/run/guardian/guardian.h"

/* From the runner to the guardian. */
struct order {
    enum { ORDER_SESSION, ORDER_RUN, ORDER_FORWARD, ORDER_STOP } kind;
    int sig;
    struct session_key session;
    struct guardian_task task;
};

struct guardian_process {
    const struct guardian_plan *plan;
    struct deadline_page *page;
    int deadline_page_fd, socket, signals, timer;
    struct kill_policy kill_policy;
    struct session_key session;
    struct guardian_task task;
    pid_t command; /* and its group */
    struct cgroup cgroup;
    struct holdout told;         /* the newest one that was reported, */
    enum guardian_event told_of; /* and as what */
    int64_t look_at, look_ms;
    bool told_to_stop;
    bool reaped;
    bool childless;
    bool runner_dead;
    bool parent_ended;
    int status;
};

/* In the forked process. */
_Noreturn void guardian_process_run(struct guardian_process *g);

#endif
