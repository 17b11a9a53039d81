/* runner_acquire.h - takes the place in the queue, see runner_acquire.c. */
#ifndef CLAVE_CMD_RUN_RUNNER_ACQUIRE_H
#define CLAVE_CMD_RUN_RUNNER_ACQUIRE_H

#include "cmd/run/runner.h"

/* CONNECTING: there is a session, or one again. What follows is told through runner_events. */
void runner_acquire(struct runner *r);

#endif
