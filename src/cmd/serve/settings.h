/* settings.h - the settings of `clave serve` and of `clave gate`. The names of their flags are the
 * keys of the configuration file, and zoo.cfg's keys are translated to them. settings.c has the one
 * table of all: a setting is a row there.
 *
 * Map of src/cmd/serve:
 *   serve            the verb: start, SIGHUP, the ready line, systemd; serve_gate: its --http
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
#define SETTINGS_LISTEN "127.0.0.1:2181" /* of a server without --listen */

/* verb.shares: whose settings. */
enum { SETTINGS_OF_SERVE = 1, SETTINGS_OF_GATE = 2 };
/* The id of the first flag that is a setting: those of a verb's own are below. */
enum { SETTINGS_FLAG = FLAG_LONG + 16 };

/* How zoo.cfg has the value of a setting. */
enum zoocfg_form {
    ZOOCFG_AS_IS,
    ZOOCFG_MS,      /* a number of milliseconds; -1: not given */
    ZOOCFG_SWITCH,  /* Java's "true", or anything else */
    ZOOCFG_DECODED, /* a number, 0x.. too, as Java's decode() reads it */
    ZOOCFG_WORDS,   /* four-letter words */
};

/* Of a gate, or of the one in a server. */
struct gate_settings {
    const char *connect; /* the servers of `clave gate`; NULL: not given */
    const char *http[SETTINGS_MAX_LISTEN];
    size_t nhttp;
    struct gate_access_options access;
    const char *audit, *key;
    const char *metric_paths; /* with commas between them */
    size_t max_connections, max_waiting, max_sender_sessions, max_body;
    struct tls_server_options tls; /* of the addresses with "tls:" */
};

/* Must not be copied: it points into itself. Owns its texts. */
struct serve_settings {
    struct server_run_options run;
    const char *listen[SETTINGS_MAX_LISTEN];
    const char *local; /* NULL: not --local */
    struct gate_settings gate;
    bool is_gate; /* `clave gate`: others of the settings exist */
    struct tls_server_options tls;
    enum log_format log_format;
    enum log_time log_time;
    int32_t log_level;               /* CLAVE_LOG_*; 0: not given */
    const char *given[SETTINGS_CAP]; /* each setting as it was given; NULL: its default */
    struct settings_text *texts;
};

void settings_init(struct serve_settings *v, bool is_gate);
void settings_fini(struct serve_settings *v);

/* verb.more_flags of both verbs: a flag for each of their settings. */
const struct flag *settings_flag(const struct verb *v, size_t i);
/* The setting of a flag's id; NULL: it is none. */
const char *settings_name_of_flag(int id);
/* The setting that a key of zoo.cfg stands for by itself, and how its value is written there; NULL:
 * there is none. */
const char *settings_of_zoocfg(const char *key, enum zoocfg_form *form);

/* Sets one setting. "listen" and "http" may be set several times. EINVAL: the fault says what it
 * may be; ENOMEM. */
clave_err settings_set(struct serve_settings *v, const char *name, const char *value,
                       const struct fault *f);
bool settings_exist(const char *name);
/* A copy that lives as long as v; NULL: out of memory. */
const char *settings_keep(struct serve_settings *v, const char *text);

/* Checks that the settings go together, and fills in the defaults that depend on others. EINVAL:
 * with a line for each thing that is wrong. */
clave_err settings_check(struct serve_settings *v, const struct fault *f);
/* Warns of settings that have no effect beside the others. */
void settings_tell_useless(const struct serve_settings *v, const struct log *log);

/* Logs every setting that differs and does not change until the next start. */
void settings_tell_fixed(const struct serve_settings *now, const struct serve_settings *wanted,
                         const struct log *log);

/* "data, listen": the same ones. "" if there are none. */
void settings_list_fixed(const struct serve_settings *now, const struct serve_settings *wanted,
                         char *out, size_t cap);

/* "max-connections 60 -> 100, words (default) -> ruok": what differs and has changed, without
 * secrets. "" if nothing has. */
void settings_list_changes(const struct serve_settings *before, const struct serve_settings *now,
                           char *out, size_t cap);

#endif
