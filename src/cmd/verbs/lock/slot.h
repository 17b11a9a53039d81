/* slot.h - `clave slot`: what its parts share.
 *
 *   slot          the verb: flags, and which part is meant
 *   slot_take     take; slot_run: run; slot_give: give, break; slot_list: list, limit
 *   slot_session  the session of each, and its slots; slot_machine_id: the machine's id */
#ifndef CLAVE_CMD_VERBS_LOCK_SLOT_H
#define CLAVE_CMD_VERBS_LOCK_SLOT_H

#include <stdatomic.h>

#include "clave/slots.h"
#include "cmd/cli/acl_text.h"
#include "cmd/run/stages/run_slot.h"

enum { SLOT_ID_TEXT = 37, SLOT_HOST_CAP = 256 };

struct slot_command {
    struct options *o;
    struct run_slot_plan plan; /* path, id, wait, and what is to be kept */
    const char *limit;         /* the argument N; NULL: none */
    char *const *argv;         /* of run: the command; NULL: none */
    int64_t token;             /* 0: any */
    bool waiters, quiet;
    struct acl_list acl;
    struct run_slot_room room; /* the loop's thread writes it while a take waits */
    clave_slots *slots;        /* from slot_session_open to slot_session_close */
    atomic_int signal;         /* the one that ends a take; 0: none */
    char machine_id[SLOT_ID_TEXT];
    char host[SLOT_HOST_CAP];
};

/* Each returns the exit code. The path and the id are valid. */
int slot_limit(struct slot_command *s);
int slot_take(struct slot_command *s);
int slot_run(struct slot_command *s);
int slot_give(struct slot_command *s);
int slot_break(struct slot_command *s);
int slot_list(struct slot_command *s);

/* Opens a session and makes the slots. EXIT_OK, or the exit code after a message; then nothing is
 * left to close. (slot_session.c) */
int slot_session_open(struct slot_command *s, clave_client **c);
void slot_session_close(struct slot_command *s, clave_client *c);

/* An id of this machine and of slots only: derived from the machine id, which is confidential, so
 * that nobody can tell that from it. false after a message: this machine has none.
 * (slot_machine_id.c) */
bool slot_id_of_machine(const struct options *o, char out[SLOT_ID_TEXT]);

#endif
