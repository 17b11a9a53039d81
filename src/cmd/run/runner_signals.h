/* runner_signals.h - the signals of `clave lock`, see runner_signals.c. */
#ifndef CLAVE_CMD_RUN_RUNNER_SIGNALS_H
#define CLAVE_CMD_RUN_RUNNER_SIGNALS_H

#include "cmd/run/runner.h"

/* 0, or an error of libuv. */
int runner_catch_signals(struct runner *r);
/* The runner is stopped: the signals have the effect that they had before. */
void runner_release_signals(struct runner *r);
/* The process of --with-parent has ended. */
void runner_on_parent_end(void *arg);

#endif
