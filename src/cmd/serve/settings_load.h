/* settings_load.h - how `clave serve` and `clave gate` get their settings: from flags on top of a
 * configuration file. Every flag except --config and --check-config is the setting of the same
 * name. SIGHUP reads the file again, and applies it either completely or not at all. */
#ifndef CLAVE_CMD_SERVE_SETTINGS_LOAD_H
#define CLAVE_CMD_SERVE_SETTINGS_LOAD_H

#include "cmd/cli/cmd_options.h"
#include "cmd/serve/settings.h"

/* Ids of the flags that are not settings. */
enum { CONFIGURED_FILE = FLAG_LONG, CONFIGURED_CHECK };
enum { FAULTS_CAP = 4096 }; /* room for a list of everything that is wrong */

/* A flag as the user gave it. */
struct given {
    const char *name;
    const char *value;
};

struct configured {
    struct options *o;
    bool is_gate;
    struct given given[SETTINGS_MAX_FLAGS];
    size_t ngiven;
    const char *config; /* name of the file; NULL: no file */
    bool check;         /* only check the configuration */
    bool bad_flags;     /* a flag was invalid, which has been reported */
    struct serve_log log;
    struct serve_settings settings;  /* the settings at the start */
    struct serve_settings *reloaded; /* the settings of the last SIGHUP; NULL: none yet */
    char again[120];                 /* what this SIGHUP has read again other than the file */
};

/* Parses the flags. OPTIONS_STOP: the verb returns o->status. Also sets up the log, which until
 * configured_read follows the flags alone. */
int configured_take_flags(struct configured *c, int argc, char **argv);
/* Fills in `settings` from the file and the flags. Returns EXIT_OK, or an exit code after a message
 * for each thing that is wrong. */
int configured_read(struct configured *c);
void configured_fini(struct configured *c);

struct log configured_log(const struct configured *c);
/* Reports why the verb cannot serve, one message for each line of `fault`, which it modifies.
 * Returns the exit code. */
int configured_fail(const struct configured *c, clave_err err, char *fault);
/* Combines the exit codes of two checks: EXIT_USAGE takes precedence. */
int configured_worse(int code, int other);
/* Flushes the line that says that it serves, for which the process that started it may be waiting.
 * If the line cannot be written, the log says so, and clients are served all the same. */
void configured_end_ready(const struct configured *c);
/* The settings that are in effect now. */
const struct serve_settings *configured_now(const struct configured *c);

/* On SIGHUP: reads the file, if there is one, and calls `apply` to change what runs. One line,
 * shown at every log level, says what has changed and what else was read again. (Audit logs are
 * reopened by others, and are not mentioned.) */
void configured_reload(struct configured *c,
                       clave_err (*apply)(void *arg, const struct serve_settings *wanted,
                                          const struct fault *f),
                       void *arg);

/* Notes, before configured_reload, that something else was read again, for the line that it
 * logs. */
void configured_read_again(struct configured *c, const char *what);

#endif
