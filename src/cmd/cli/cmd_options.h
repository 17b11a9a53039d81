/* cmd_options.h - what the user asked for, from flags, the environment, the user's
 * configuration file and the machine's, in this order of precedence.
 *
 *     int cmd_get(struct options *o, int argc, char **argv)
 *     {
 *         bool stat = false;
 *         int id;
 *         while ((id = options_next(o, argc, argv)) > 0)
 *             if (id == GET_STAT)
 *                 stat = true;             // o->value is its argument
 *         if (id == OPTIONS_STOP)
 *             return o->status;            // --help was printed, or an error was reported
 *         ... o->argc, o->argv: the arguments */
#ifndef CLAVE_CMD_CLI_CMD_OPTIONS_H
#define CLAVE_CMD_CLI_CMD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time_format.h"
#include "clave/async/client.h"
#include "cmd/cli/inherited_fds.h"
#include "cmd/cli/verb.h"
#include "runtime/client/client_settings.h"

enum { OPTIONS_END = 0, OPTIONS_STOP = -1, OPTIONS_MAX_MS = CLIENT_MAX_MS };

struct options {
    const struct verb *verb;
    const struct verb *const *verbs; /* all verbs, NULL after the last; for help */

    const char *connect;           /* NULL: not given anywhere, so the library uses "local:" */
    int32_t session_timeout_ms;    /* 0: the library's default */
    int64_t timeout_ms;            /* for connecting, and then for each answer */
    struct client_settings client; /* identities of --auth, TLS, "local:" */
    bool tls_any_name;
    /* What was given by flags, for the commands in messages (shell_command.h); NULL: not by a flag.
     */
    struct {
        const char *connect, *tls[CLIENT_TLS_TEXTS];
        int connect_after; /* how many arguments came before -c */
    } flags;
    struct clave_tls *tls; /* made from the settings by connect_dial; NULL: no TLS needed */
    bool json;
    int verbose;
    struct inheritance inherited; /* what a command is given back when it is executed */

    /* Set by options_next. */
    const char *value; /* value of the flag that was just returned */
    int status;        /* exit code, after OPTIONS_STOP */
    /* The arguments, after OPTIONS_END. argv ends with NULL, so that execvp(o->argv[n], o->argv +
     * n) may be called. */
    int argc;
    char **argv;

    /* Used by cmd_options.c alone, except told_local (local_warning.c). */
    int64_t deadline_ms;
    bool scanning;
    bool timeout_given;
    const struct flag *client_flag; /* the last flag of clients that was given; NULL: none */
    const struct flag *path_flag;   /* likewise, the last of the verb's with a value like a path */
    const char *path_value;
    bool told_local;
};

void options_init(struct options *o, const struct verb *const *verbs);
void options_fini(struct options *o);

/* The verb with this name; NULL: there is none. */
const struct verb *options_verb(const struct options *o, const char *name);

/* Returns the id of the verb's next flag; OPTIONS_END when there are no more; OPTIONS_STOP when the
 * verb should return o->status at once. Handles the global flags itself. */
int options_next(struct options *o, int argc, char **argv);
/* Takes what the flags left open from the environment and the configuration files
 * (runtime/client/client_settings.h). options_next does this before it returns OPTIONS_END. false:
 * a file is invalid, and a message with file and line has been printed. */
bool config_apply(struct options *o);
/* Checks that there are `min` to `max` (-1: no limit) arguments. false: there are not, and a
 * message has been printed. */
bool options_args(struct options *o, int min, int max);

/* Parses o->value as a duration; `flag` is the name of the flag without dashes. false: it is
 * invalid; a message has been printed and o->status set. */
bool options_duration(struct options *o, const char *flag, int64_t min_ms, int64_t max_ms,
                      int64_t *ms);
/* Parses o->value as a decimal number, in the same way. */
bool options_number(struct options *o, const char *flag, int64_t min, int64_t max, int64_t *out);
/* Parses o->value as one of `words`, which ends with NULL, in the same way; *out is its index. */
bool options_word(struct options *o, const char *flag, const char *const *words, int *out);

/* Milliseconds that are left for connecting, counted from the first call; never below 0. */
int64_t options_left_ms(struct options *o);

#endif
