/* verb.h - a verb of the program: its name, its flags, and how it runs. One file per verb;
 * each defines its `struct verb`, and verbs.c lists them.
 *
 * Map of src/cmd/cli, what every verb stands on:
 *   main, verbs      find the verb and run it; usage: the texts of help and --help;
 *                    suggestion: "did you mean"
 *   cmd_options      parse flags; environment and configuration files
 *   inherited_fds    what the process that started clave has left it: signals, descriptors, umask
 *   connect          opens the session; unreachable: "no server has answered yet";
 *                    local_warning: "local:"
 *   diag             exit codes and messages; standard_error: where they are written
 *   format, json     what several verbs print; time_text: times and ages
 *   participant_text a participant of a queue, as text; participant_json: as JSON
 *   acl_text         --acl
 *   shell_command    commands of clave in messages */
#ifndef CLAVE_CMD_CLI_VERB_H
#define CLAVE_CMD_CLI_VERB_H

#include <stdbool.h>
#include <stddef.h>

struct options;

/* A flag: the only source of what is parsed and of what --help prints. */
struct flag {
    int id;           /* the letter of the short form; FLAG_LONG + n: long form only */
    const char *name; /* the long form, without dashes */
    /* the name of its value ("DURATION"); NULL: it takes none; in brackets ("[=PATH]"): the value
     * is optional */
    const char *arg;
    const char *help; /* one line */
};
enum { FLAG_LONG = 256 }; /* ids of a verb's own flags: 256 to 511 */

struct verb {
    const char *name;
    const char *args;    /* "PATH [DATA|-]" */
    const char *summary; /* one line for the list of verbs */
    const char *text;    /* paragraphs below the usage line; may be NULL */
    /* Its own flags, ended by id 0; NULL: none. A flag with the name of a global one replaces it;
     * the letters c, h and v are taken. */
    const struct flag *flags;
    /* Further ones, from a table that several verbs share: number i of this verb's; NULL after the
     * last. NULL: none. verb_flag (usage.h) has all of them. */
    const struct flag *(*more_flags)(const struct verb *v, size_t i);
    unsigned shares; /* which rows of that table, in its own terms */
    /* flags and arguments may be mixed up to this many arguments; what follows them is left alone,
     * for verbs that run a command. -1: mixed up to a "--" */
    int max_args;
    bool waits_forever; /* --timeout is no flag of it */
    /* it is about elections: errors of locks are reported in terms of elections */
    bool elects;
    bool runs_command; /* and hooks: it waits for its children itself */
    bool offline; /* talks to no server: reads no configuration, refuses the flags of clients */
    bool ignores_client_flags; /* offline, but allows them: an alias of the program may add them */
    /* argv[0] is the verb; returns the exit code */
    int (*run)(struct options *o, int argc, char **argv);
};

/* In the order in which the help lists them; NULL after the last one. */
extern const struct verb *const all_verbs[];

extern const struct verb verb_acl;
extern const struct verb verb_candidates;
extern const struct verb verb_check;
extern const struct verb verb_completion;
extern const struct verb verb_create;
extern const struct verb verb_ctdb_lock;
extern const struct verb verb_data;
extern const struct verb verb_elect;
extern const struct verb verb_gate;
extern const struct verb verb_get;
extern const struct verb verb_getacl;
extern const struct verb verb_grow;
extern const struct verb verb_help;
extern const struct verb verb_history;
extern const struct verb verb_leader;
extern const struct verb verb_lock;
extern const struct verb verb_locks;
extern const struct verb verb_ls;
extern const struct verb verb_ping;
extern const struct verb verb_resign;
extern const struct verb verb_rm;
extern const struct verb verb_rwlock;
extern const struct verb verb_semaphore;
extern const struct verb verb_serve;
extern const struct verb verb_sessions;
extern const struct verb verb_set;
extern const struct verb verb_setacl;
extern const struct verb verb_slot;
extern const struct verb verb_stat;
extern const struct verb verb_sync;
extern const struct verb verb_top;
extern const struct verb verb_transfer;
extern const struct verb verb_tree;
extern const struct verb verb_version;
extern const struct verb verb_watch;

#endif
