/* verb.h - a verb of the program: what it is called, which flags it takes, how it runs.
 * One file a verb; each defines its `struct verb`, and verbs.c lists them. */
#ifndef CLAVE_CMD_CLI_VERB_H
#define CLAVE_CMD_CLI_VERB_H

#include <stdbool.h>

struct options;

/* A flag: the only source of what is parsed and of what --help says. */
struct flag {
    int id;           /* the letter of the short form; FLAG_LONG + n: it has only a long one */
    const char *name; /* the long form, without dashes */
    const char *arg;  /* what its value is called ("DURATION"); NULL: it takes none; in brackets
                         ("[=PATH]"): it need not have one */
    const char *help; /* one line */
};
enum { FLAG_LONG = 256 }; /* own ids of a verb: 256 to 511 */

struct verb {
    const char *name;
    const char *args;         /* "PATH [DATA|-]" */
    const char *summary;      /* one line for the list of verbs */
    const char *text;         /* paragraphs under the usage line; may be NULL */
    const struct flag *flags; /* ends with id 0; NULL: none of its own. A flag with the
                                 name of a global one takes its place; the letters
                                 c, h and v are taken */
    int max_args;             /* flags and arguments may be mixed up to this many arguments;
                                 what follows them is left alone, for verbs that run a
                                 command. -1: mixed up to a "--" */
    bool elects;              /* it is about elections: errors of locks are told in their words */
    bool offline;             /* talks to no server: the configuration is not read */
    int (*run)(struct options *o, int argc, char **argv); /* argv[0] is the verb; returns the
                                                             exit code */
};

/* NULL: no such verb. */
const struct verb *verb_find(const char *name);
/* NULL behind the last. */
const struct verb *verb_at(unsigned i);

extern const struct verb verb_bench;
extern const struct verb verb_candidates;
extern const struct verb verb_check;
extern const struct verb verb_create;
extern const struct verb verb_data;
extern const struct verb verb_elect;
extern const struct verb verb_get;
extern const struct verb verb_grow;
extern const struct verb verb_help;
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
extern const struct verb verb_set;
extern const struct verb verb_stat;
extern const struct verb verb_sync;
extern const struct verb verb_transfer;
extern const struct verb verb_tree;
extern const struct verb verb_version;
extern const struct verb verb_watch;

#endif
