/* verb.h - a verb of the program: its name, its flags, and how it is run. There is one file per
 * verb, which defines its `struct verb`; verbs.c lists them all.
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
 *   participant      a participant of a queue, as text and as JSON
 *   acl_text         --acl
 *   shell_command    commands of clave in messages */
#ifndef CLAVE_CMD_CLI_VERB_H
#define CLAVE_CMD_CLI_VERB_H

#include <stdbool.h>
#include <stddef.h>

struct options;

/* A flag. Both the parser and --help work from this description alone. */
struct flag {
    int id;           /* letter of the short form; FLAG_LONG + n: long form only */
    const char *name; /* long form, without dashes */
    /* Name of the value ("DURATION"); in brackets ("[=PATH]") if the value is optional. NULL: the
     * flag takes no value. */
    const char *arg;
    const char *help; /* a single line */
};
enum { FLAG_LONG = 256 }; /* ids of a verb's own flags are from 256 to 511 */

struct verb {
    const char *name;
    const char *args;    /* for example "PATH [DATA|-]" */
    const char *summary; /* one line in the list of verbs */
    const char *text;    /* paragraphs below the usage line; may be NULL */
    /* The verb's own flags, ended by id 0; may be NULL. A flag with the name of a global one
     * replaces it. The letters c, h and v are taken. */
    const struct flag *flags;
    /* Further flags, from a table that several verbs share: returns the verb's flag number `i`,
     * NULL after the last. May be NULL. verb_flag (usage.h) returns the flags from both places. */
    const struct flag *(*more_flags)(const struct verb *v, size_t i);
    unsigned shares; /* which rows of that table apply to this verb */
    /* Flags may be mixed with up to this many arguments; what follows them is left alone, for verbs
     * that run a command. -1: flags and arguments may be mixed up to a "--". */
    int max_args;
    bool waits_forever; /* the verb does not accept --timeout */
    /* The verb is about elections: errors of locks are worded in terms of elections. */
    bool elects;
    bool runs_command; /* the verb runs a command or hooks, and waits for its children itself */
    /* the verb connects to no server: it reads no configuration of clients and refuses their flags
     */
    bool offline;
    /* an offline verb that accepts flags of clients, which an alias of the program may add */
    bool ignores_client_flags;
    /* argv[0] is the verb. Returns the exit code. */
    int (*run)(struct options *o, int argc, char **argv);
};

/* In the order in which the help lists them; NULL after the last. */
extern const struct verb *const all_verbs[];

extern const struct verb verb_acl;
extern const struct verb verb_candidates;
extern const struct verb verb_check;
extern const struct verb verb_completion;
extern const struct verb verb_counter;
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
extern const struct verb verb_instances;
extern const struct verb verb_leader;
extern const struct verb verb_lock;
extern const struct verb verb_locks;
extern const struct verb verb_member;
extern const struct verb verb_members;
extern const struct verb verb_ls;
extern const struct verb verb_mirror;
extern const struct verb verb_ping;
extern const struct verb verb_register;
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
