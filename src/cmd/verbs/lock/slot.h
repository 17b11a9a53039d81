/* slot.h - `clave slot`: what slot.c, the verb, has in common with slot_list.c, its parts list and
 * limit. */
#ifndef CLAVE_CMD_VERBS_LOCK_SLOT_H
#define CLAVE_CMD_VERBS_LOCK_SLOT_H

#include <stdatomic.h>

#include "clave/slots.h"
#include "cmd/cli/acl_text.h"
#include "cmd/run/stages/run_slot.h"

enum { SLOT_ID_TEXT = 37, SLOT_HOST_CAP = 256 };

struct slot_command {
    struct options *o;
    struct run_slot_plan plan; /* path, id, waiting time, and whether to keep the slot */
    const char *limit;         /* the argument N; NULL: not given */
    char *const *argv;         /* command of `run`; NULL: none */
    int64_t token;             /* 0: any token */
    bool waiters, quiet;
    struct acl_list acl;
    struct run_slot_room room; /* written on the loop's thread while a take waits */
    clave_slots *slots;        /* set from slot_session_open to slot_session_close */
    atomic_int signal;         /* signal that ended a take; 0: none */
    char machine_id[SLOT_ID_TEXT];
    char host[SLOT_HOST_CAP];
};

/* Each function returns the exit code. The path and the id have been validated. */
int slot_limit(struct slot_command *s);
int slot_list(struct slot_command *s);

/* Opens a session and a struct clave_slots on it. Returns EXIT_OK, or an exit code after a message,
 * in which case there is nothing to close. */
int slot_session_open(struct slot_command *s, clave_client **c);
void slot_session_close(struct slot_command *s, clave_client *c);

#endif
