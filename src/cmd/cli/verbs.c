/* verbs.c - the list of all verbs, in the order of `clave help`. A new verb must be added here and
 * nowhere else. */
#include <stddef.h>

#include "cmd/cli/verb.h"

const struct verb *const all_verbs[] = {
    &verb_lock,      &verb_rwlock,  &verb_semaphore, &verb_slot,       &verb_locks,
    &verb_top,       &verb_elect,   &verb_leader,    &verb_candidates, &verb_resign,
    &verb_transfer,  &verb_check,   &verb_ctdb_lock, &verb_get,        &verb_set,
    &verb_create,    &verb_rm,      &verb_ls,        &verb_tree,       &verb_stat,
    &verb_getacl,    &verb_setacl,  &verb_acl,       &verb_watch,      &verb_register,
    &verb_instances, &verb_mirror,  &verb_counter,   &verb_member,     &verb_members,
    &verb_sync,      &verb_ping,    &verb_serve,     &verb_gate,       &verb_sessions,
    &verb_data,      &verb_history, &verb_grow,      &verb_version,    &verb_completion,
    &verb_help,      NULL,
};
