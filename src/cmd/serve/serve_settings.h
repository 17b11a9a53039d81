/* serve_settings.h - what `clave serve` is told, by the names of its flags: the same names are the
 * keys of its configuration file, and zoo.cfg's keys are turned into them. */
#ifndef CLAVE_CMD_SERVE_SERVE_SETTINGS_H
#define CLAVE_CMD_SERVE_SERVE_SETTINGS_H

#include "base/log.h"
#include "cmd/serve/serve_log.h"
#include "runtime/server/uv_server.h"
#include "runtime/start_error.h"

enum { SETTINGS_MAX_LISTEN = 16, SETTINGS_MAX_FLAGS = 64 };

/* Never copied: it points into itself. Owns its texts. */
struct serve_settings {
    struct server_run_options run;
    const char *listen[SETTINGS_MAX_LISTEN];
    const char *local; /* NULL: not so */
    struct tls_server_options tls;
    enum log_format log_format;
    int32_t log_level; /* CLAVE_LOG_*; 0: not given */
    struct settings_text *texts;
};

void settings_init(struct serve_settings *v);
void settings_fini(struct serve_settings *v);

/* EINVAL: the fault says what it may be. "listen" may be set several times. ENOMEM. */
clave_err settings_set(struct serve_settings *v, const char *name, const char *value,
                       const struct fault *f);
bool settings_exist(const char *name);
/* A copy that lives as long as v does; NULL: no memory. */
const char *settings_keep(struct serve_settings *v, const char *text);

/* Whether all of it makes sense together; and the defaults that depend on others. EINVAL. */
clave_err settings_check(struct serve_settings *v, const struct fault *f);
/* Names in the log every setting that differs and stays as it is until the next start. */
void settings_tell_fixed(const struct serve_settings *now, const struct serve_settings *wanted,
                         const struct log *log);

#endif
