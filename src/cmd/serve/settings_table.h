/* settings_table.h - the settings of `clave serve` and of `clave gate`, by the names of their
 * flags: the same names are the keys of the configuration file, and zoo.cfg's keys are translated
 * to them.
 *
 * Map of src/cmd/serve:
 *   serve            the verb: start, SIGHUP, the ready line, systemd
 *   settings_load    flags over a file, for `clave serve` and `clave gate`; reloading
 *   settings_table   all settings: names, and what may change while running
 *   settings_values  what the text of one may be
 *   settings_check   whether all of them go together; the defaults that depend on others
 *   config_file      the configuration file: which form it has, and clave's own form
 *   zoocfg_load      Apache's zoo.cfg: each of its keys, and what becomes of it
 *   java_properties  the syntax of Java's properties files
 *   serve_log        the log on standard error
 * The server itself is src/runtime/server. */
#ifndef CLAVE_CMD_SERVE_SETTINGS_TABLE_H
#define CLAVE_CMD_SERVE_SETTINGS_TABLE_H

#include "base/log_line.h"
#include "cmd/serve/serve_log.h"
#include "runtime/gate/gate_access_file.h"
#include "runtime/server/server_run.h"
#include "runtime/start_error.h"

enum { SETTINGS_MAX_LISTEN = 16, SETTINGS_MAX_FLAGS = 80, SETTINGS_CAP = 80 };

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

/* Sets one setting. EINVAL: the fault says what it may be. "listen" and "http" may be set several
 * times.
 * ENOMEM. */
clave_err settings_set(struct serve_settings *v, const char *name, const char *value,
                       const struct fault *f);
bool settings_exist(const char *name);
/* The value of an existing setting as it was given; NULL: it has its default. */
const char *settings_given(const struct serve_settings *v, const char *name);
/* A copy that lives as long as v; NULL: out of memory. */
const char *settings_keep(struct serve_settings *v, const char *text);

/* Logs every setting that differs and does not change until the next start. */
void settings_tell_fixed(const struct serve_settings *now, const struct serve_settings *wanted,
                         const struct log *log);

/* "max-connections 60 -> 100, words (default) -> ruok": what differs and has changed, without
 * secrets.
 * "" if nothing has. */
void settings_list_changes(const struct serve_settings *before, const struct serve_settings *now,
                           char *out, size_t cap);

#endif
