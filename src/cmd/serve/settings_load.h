/* settings_load.h - how `clave serve` and `clave gate` get their settings: flags over a
 * configuration file. Each flag but --config and --check-config is the setting of the same name.
 * SIGHUP reads the file again, and applies all of it or nothing. */
#ifndef CLAVE_CMD_SERVE_SETTINGS_LOAD_H
#define CLAVE_CMD_SERVE_SETTINGS_LOAD_H

#include "cmd/cli/cmd_options.h"
#include "cmd/serve/settings.h"

/* The flags that are no settings. */
enum { CONFIGURED_FILE = FLAG_LONG, CONFIGURED_CHECK };
enum { FAULTS_CAP = 4096 }; /* the texts of all that is wrong with a configuration */

/* A flag as given. */
struct given {
    const char *name;
    const char *value;
};

struct configured {
    struct options *o;
    bool is_gate;
    struct given given[SETTINGS_MAX_FLAGS];
    size_t ngiven;
    const char *config; /* NULL: none */
    bool check;         /* only the configuration, without serving */
    bool bad_flags;     /* reported */
    struct serve_log log;
    struct serve_settings settings;  /* that it was started with */
    struct serve_settings *reloaded; /* since the last SIGHUP; NULL: those */
    char again[120];                 /* what else this SIGHUP has read again */
};

/* OPTIONS_STOP: return o->status. What only flags can set is the log of reading the file itself. */
int configured_take_flags(struct configured *c, int argc, char **argv);
/* Fills in `settings`. EXIT_OK, or the exit code after a message for each thing that is wrong. */
int configured_read(struct configured *c);
void configured_fini(struct configured *c);

struct log configured_log(const struct configured *c);
/* Logs why it cannot be served, a line for each line of `fault`, which it cuts up. Returns the exit
 * code. */
int configured_fail(const struct configured *c, clave_err err, char *fault);
/* The exit code of two checks: usage before all else. */
int configured_worse(int code, int other);
/* Writes the line that says that it serves: the process that started it may be waiting for that. If
 * it cannot be written, the log says so, and clients are served all the same. */
void configured_end_ready(const struct configured *c);
/* The settings as of now. */
const struct serve_settings *configured_now(const struct configured *c);

/* SIGHUP: reads the file, if there is one, and has `apply` change what runs. One line says what has
 * changed and what else was read again, at any log level, but for audit logs. */
void configured_reload(struct configured *c,
                       clave_err (*apply)(void *arg, const struct serve_settings *wanted,
                                          const struct fault *f),
                       void *arg);

/* Before _reload: this has been read again, too. */
void configured_read_again(struct configured *c, const char *what);

#endif
