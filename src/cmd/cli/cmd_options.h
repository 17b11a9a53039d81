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
    const struct verb *const *verbs; /* all there are, NULL after the last; for help */

    const char *connect;           /* NULL: none given anywhere, so the library's "local:" */
    int32_t session_timeout_ms;    /* 0: the library's default */
    int64_t timeout_ms;            /* for connecting, and then for each answer */
    struct client_settings client; /* the identities of --auth, TLS, "local:" */
    bool tls_any_name;
    /* Of these, what flags said, for shell_command.h; NULL: not they. */
    struct {
        const char *connect, *tls[CLIENT_TLS_TEXTS];
        int connect_after; /* so many arguments stood before -c */
    } flags;
    struct clave_tls *tls; /* made from these by connect_dial; NULL: not needed */
    bool json;
    int verbose;
    struct inheritance inherited; /* given back to a command */

    /* set by options_next */
    const char *value; /* the value of the flag just returned */
    int status;        /* the exit code, when it returned OPTIONS_STOP */
    int argc;          /* when it returned OPTIONS_END: the arguments, NULL at the end, ready
                          for execvp(o->argv[n], o->argv + n) */
    char **argv;

    /* the verb's own flags */
    int64_t deadline_ms;
    bool scanning;
    bool timeout_given;
    const struct flag *client_flag; /* the last one of clients that was given; NULL: none */
    bool told_local;
};

void options_init(struct options *o, const struct verb *const *verbs);
void options_fini(struct options *o);

/* The verb of that name; NULL: there is none. */
const struct verb *options_verb(const struct options *o, const char *name);

/* The id of the verb's next flag; OPTIONS_END when there are no more; OPTIONS_STOP when the verb
 * should return o->status at once. Handles global flags itself. */
int options_next(struct options *o, int argc, char **argv);
/* Fills in what the flags left open from the environment and the configuration files
 * (runtime/client/client_settings.h); options_next has done so at OPTIONS_END. false after a
 * message with file and line. */
bool config_apply(struct options *o);
/* true: between min and max (-1: no limit) arguments were given. Otherwise reports it. */
bool options_args(struct options *o, int min, int max);

/* A duration as the value of a flag (named without dashes); reports an error and sets o->status. */
bool options_duration(struct options *o, const char *flag, int64_t min_ms, int64_t max_ms,
                      int64_t *ms);
/* A decimal number as the value of a flag. */
bool options_number(struct options *o, const char *flag, int64_t min, int64_t max, int64_t *out);

/* Milliseconds left for connecting, counted from the first call; never below 0. */
int64_t options_left_ms(struct options *o);

#endif
