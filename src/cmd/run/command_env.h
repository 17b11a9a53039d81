/* command_env.h - the environment variables that a command under a hold gets, and a hook. */
#ifndef CLAVE_CMD_RUN_COMMAND_ENV_H
#define CLAVE_CMD_RUN_COMMAND_ENV_H

#include "cmd/run/guardian/guardian.h"
#include "cmd/run/run_flags.h"

/* Sets the command's in our own environment, which it inherits: CLAVE_PATH, CLAVE_NODE,
 * CLAVE_TOKEN, CLAVE_SESSION, CLAVE_DEADLINE, CLAVE_OWNER, CLAVE_CONNECT, and the files of TLS.
 * false: no memory. */
bool command_env_set(const struct guardian_plan *plan, const struct guardian_task *task,
                     int deadline_page_fd);

enum { COMMAND_ENV_ADDED = 4 };

struct command_env {
    char *added[COMMAND_ENV_ADDED]; /* NULL: none */
    char **all;                     /* for exec: these, and what is in our own environment */
};

/* Ours plus CLAVE_EVENT, CLAVE_PATH, CLAVE_CONNECT and, unless it is 0, CLAVE_TOKEN; without the
 * variables of the service manager. false: no memory. _fini in either case. */
bool command_env_init_hook(struct command_env *e, const struct run_plan *p, const char *event,
                           int64_t token);
void command_env_fini(struct command_env *e);

#endif
