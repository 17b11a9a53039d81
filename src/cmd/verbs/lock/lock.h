/* lock.h - three verbs of one implementation: `clave lock`, `clave rwlock`, `clave semaphore`. */
#ifndef CLAVE_CMD_VERBS_LOCK_LOCK_H
#define CLAVE_CMD_VERBS_LOCK_LOCK_H

#include "cmd/run/run_flags.h"

enum { LOCK_LIMIT_NODE = RUN_FLAG_OWN }; /* the id of --limit-node */

/* Parses the flags of this kind, and runs the command under it. Returns the exit code. */
int lock_run(struct options *o, int argc, char **argv, enum lock_kind kind);

/* The flags of all three, and the end of their tables. */
#define LOCK_FLAGS_OF_ALL                                                                          \
    {'w', "wait", "DURATION", "give up after this long [wait forever]"},                           \
        {'E', "conflict-code", "N", "the exit code when not acquired in time [75]"},               \
        {RUN_FLAG_GRACE, "grace", "DURATION",                                                      \
         "from SIGTERM to SIGKILL [an eighth of the session timeout]"},                            \
        {RUN_FLAG_ON_LOST, "on-lost", "WHAT", "to the command: term, kill or ignore [term]"},      \
        {RUN_FLAG_MAX_HOLD, "max-hold", "DURATION",                                                \
         "end the command after this long: SIGTERM, then SIGKILL"},                                \
        {RUN_FLAG_SAME_USER, "require-killable", NULL,                                             \
         "sudo and its like gain no other user: clave could not end them"},                        \
        {RUN_FLAG_WITH_PARENT, "with-parent", "[=PID]",                                            \
         "end when PID ends [the process that started this one]"},                                 \
        {RUN_FLAG_REVOCABLE, "revocable", NULL,                                                    \
         "end the command when another participant asks for the lock"},                            \
        {RUN_FLAG_MIN_HOLD, "min-hold", "DURATION", "keep the lock for at least this long"},       \
        {RUN_FLAG_NAME, "name", "TEXT", "what 'clave locks' shows for this participant"},          \
        {RUN_FLAG_ACL, "acl", "ACL", "of the lock's node: see 'clave create' [open]"},             \
        {RUN_FLAG_DETECT, "detect-deadlock", "[=ROOT]",                                            \
         "give up to end a deadlock of locks below ROOT [PATH's parent]"},                         \
        {RUN_FLAG_NOTIFY, "notify", "WHEN",                                                        \
         "systemd: ready when held, waiting, command, or off [held]"},                             \
        {'q', "quiet", NULL, "do not report waiting, or not having acquired it"},                  \
    {                                                                                              \
        0, NULL, NULL, NULL                                                                        \
    }

/* Those of lock and rwlock alone. */
#define LOCK_FLAGS_OF_EXCLUSIVE                                                                    \
    {RUN_FLAG_ONCE, "once", "KEY", "only if no run of this KEY has succeeded yet"},                \
        {RUN_FLAG_FOR, "for", "DURATION",                                                          \
         "--once: how long a run counts, from its start [forever]"},                               \
        {RUN_FLAG_AT_MOST_ONCE, "at-most-once", NULL,                                              \
         "--once: a run that failed or died counts too"},                                          \
        {RUN_FLAG_DONE_CODE, "done-code", "N", "--once: the exit code when already done [0]"},     \
    {                                                                                              \
        RUN_FLAG_LOCK_DELAY, "lock-delay", "DURATION",                                             \
            "wait this long if the previous holder was lost"                                       \
    }

#endif
