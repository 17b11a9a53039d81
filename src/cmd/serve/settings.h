/* settings.h - the settings of `clave serve` and `clave gate`. The names of the flags are also the
 * keys of the configuration file, and the keys of a zoo.cfg are translated to them. All settings
 * are rows of one table in settings.c.
 *
 * Map of src/cmd/serve:
 *   serve            the verb: start, SIGHUP, the ready line, systemd, the gate of --http
 *   gate             the verb `clave gate`, on the same settings
 *   settings         the table of all settings: flags, help, values, defaults, and what may change
 *                    while running; whether all of them go together
 *   settings_load    flags over a file, for both verbs; reloading
 *   config_file      the configuration file: which form it has, and clave's own form
 *   zoocfg           Apache's zoo.cfg: each of its keys, and what becomes of it; zoocfg_keys: the
 *                    keys that are not settings of clave
 *   java_properties  the syntax of Java's properties files
 *   serve_log        the log on standard error
 * The server itself is src/runtime/server. */
#ifndef CLAVE_CMD_SERVE_SETTINGS_H
#define CLAVE_CMD_SERVE_SETTINGS_H

#include "base/log_line.h"
#include "cmd/cli/verb.h"
#include "cmd/serve/serve_log.h"
#include "runtime/gate/gate_access_file.h"
#include "runtime/server/server_run.h"
#include "runtime/start_error.h"

enum { SETTINGS_MAX_LISTEN = 16, SETTINGS_MAX_FLAGS = 80, SETTINGS_CAP = 80 };
#define SETTINGS_LISTEN "127.0.0.1:2181" /* default of a server without --listen */

/* The verbs, as bits of `shares` in struct verb. */
enum { SETTINGS_OF_SERVE = 1, SETTINGS_OF_GATE = 2 };
/* Id of the first flag that is a setting; a verb's own flags have smaller ids. */
enum { SETTINGS_FLAG = FLAG_LONG + 16 };

/* How zoo.cfg writes the value of a setting. */
enum zoocfg_form {
    ZOOCFG_AS_IS,
    ZOOCFG_MS,      /* a number of milliseconds; -1: not given */
    ZOOCFG_SWITCH,  /* Java's "true"; everything else is false */
    ZOOCFG_DECODED, /* a number as Java's decode() reads it, 0x.. included */
    ZOOCFG_WORDS,   /* names of four-letter words */
};

/* The settings of a gate, whether it runs alone or in a server. */
struct gate_settings {
    const char *connect; /* the servers of `clave gate`; NULL: not given */
    const char *http[SETTINGS_MAX_LISTEN];
    size_t nhttp;
    struct gate_access_options access;
    const char *audit, *key;
    const char *metric_paths; /* separated by commas */
    size_t max_connections, max_waiting, max_sender_sessions, max_body;
    struct tls_server_options tls; /* for the addresses with "tls:" */
};

/* Must not be copied, since it contains pointers into itself. Owns its texts; settings_fini frees
 * them. */
struct serve_settings {
    struct server_run_options run;
    const char *listen[SETTINGS_MAX_LISTEN];
    const char *local; /* NULL: without --local */
    struct gate_settings gate;
    bool is_gate; /* for `clave gate`, which has other settings than a server */
    struct tls_server_options tls;
    enum log_format log_format;
    enum log_time log_time;
    int32_t log_level;               /* CLAVE_LOG_*; 0: not given */
    const char *given[SETTINGS_CAP]; /* the text of each setting as it was given; NULL: default */
    struct settings_text *texts;
};

void settings_init(struct serve_settings *v, bool is_gate);
void settings_fini(struct serve_settings *v);

/* `more_flags` of struct verb for both verbs: one flag per setting. */
const struct flag *settings_flag(const struct verb *v, size_t i);
/* The name of the setting whose flag has this id; NULL: the flag is not a setting. */
const char *settings_name_of_flag(int id);
/* The setting that a single key of zoo.cfg stands for, and how its value is written there. NULL:
 * there is none. */
const char *settings_of_zoocfg(const char *key, enum zoocfg_form *form);

/* Sets one setting. "listen" and "http" may be set several times. EINVAL: the fault says what the
 * value may be; ENOMEM. */
clave_err settings_set(struct serve_settings *v, const char *name, const char *value,
                       const struct fault *f);
bool settings_exist(const char *name);
/* Copies a text; the copy lives as long as `v`. NULL: no memory. */
const char *settings_keep(struct serve_settings *v, const char *text);

/* Checks that the settings go together, and fills in the defaults that depend on other settings.
 * EINVAL: the fault has one line for each thing that is wrong. */
clave_err settings_check(struct serve_settings *v, const struct fault *f);
/* Warns about settings that have no effect because of other settings. */
void settings_tell_useless(const struct serve_settings *v, const struct log *log);

/* Logs every setting that differs but does not change until the next start. */
void settings_tell_fixed(const struct serve_settings *now, const struct serve_settings *wanted,
                         const struct log *log);

/* The names of the same settings: "data, listen"; "" if there are none. */
void settings_list_fixed(const struct serve_settings *now, const struct serve_settings *wanted,
                         char *out, size_t cap);

/* What has changed already: "max-connections 60 -> 100, words (default) -> ruok", without secrets;
 * "" if nothing has. */
void settings_list_changes(const struct serve_settings *before, const struct serve_settings *now,
                           char *out, size_t cap);

#endif
