/* participant_identity.h - how this process describes itself to other participants. */
#ifndef CLAVE_CMD_RUN_PARTICIPANT_IDENTITY_H
#define CLAVE_CMD_RUN_PARTICIPANT_IDENTITY_H

#include "cmd/run/run_flags.h"

enum { PROCESS_IDENTITY_COMMAND_CAP = 1024 };

struct participant_identity {
    char host[256];
    char command[PROCESS_IDENTITY_COMMAND_CAP]; /* its arguments, as far as they fit */
    clave_identity identity;                    /* points into this struct and into the plan */
};

void participant_identity_describe(struct participant_identity *s, const struct run_plan *plan);

#endif
