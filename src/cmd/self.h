/* self.h - how this process is called where others see it. */
#ifndef CLAVE_CMD_SELF_H
#define CLAVE_CMD_SELF_H

#include "cmd/lock.h"

enum { SELF_COMMAND_CAP = 1024 };

struct self {
    char host[256];
    char command[SELF_COMMAND_CAP]; /* its words, as far as they fit */
    clave_identity identity;        /* points into this struct and into the plan */
};

void self_describe(struct self *s, const struct lock_plan *plan);

#endif
