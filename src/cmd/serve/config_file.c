/* config_file.c - decides which of the two forms a configuration file has, and reads clave's own
 * form (see config_file.h). serve.c and gate.c read their files through it. A key may be set only
 * once, except for listen and http. An error on one line does not keep the other lines from being
 * checked. */
#include "cmd/serve/config_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/serve/java_properties.h"
#include "runtime/text_file.h"

struct loading {
    struct serve_settings *v;
    const struct log *log;
    clave_err err;
    struct { /* settings made so far */
        const char *key;
        unsigned line;
    } seen[SETTINGS_CAP];
    size_t nseen;
};

static bool config_file_is_not_data_dir(void *arg, unsigned line, const char *key,
                                        const char *value)
{
    (void)arg;
    (void)line;
    (void)value;
    return strcmp(key, "dataDir") != 0;
}

/* 1: the file is a zoo.cfg; 0: it is not; -1: no memory. */
static int config_file_is_zoocfg(const char *text)
{
    unsigned bad_line;
    char *copy = strdup(text);
    if (!copy)
        return -1;
    bool all = java_properties_each(copy, config_file_is_not_data_dir, NULL, &bad_line);
    free(copy);
    return !all && bad_line == 0;
}

static bool config_file_bad_line(void *arg, const struct origin *at, const char *what)
{
    struct loading *l = arg;
    clave__log_about(l->log, CLAVE_LOG_ERROR, &(struct log_about){.path = at->file}, "%s:%u: %s",
                     at->file, at->line, what);
    l->err = CLAVE_EINVAL;
    return true;
}

/* Refuses a key that is set on two lines: one of the lines would have no effect, and it is easy to
 * mistake which one. */
static clave_err config_file_only_once(struct loading *l, const char *key, unsigned line,
                                       const struct fault *f)
{
    if (strcmp(key, "listen") == 0 || strcmp(key, "http") == 0)
        return CLAVE_OK;
    for (size_t i = 0; i < l->nseen; i++)
        if (strcmp(l->seen[i].key, key) == 0)
            return clave__start_error(f, CLAVE_EINVAL, "already set on line %u", l->seen[i].line);
    if (l->nseen < SETTINGS_CAP) {
        l->seen[l->nseen].key = key;
        l->seen[l->nseen++].line = line;
    }
    return CLAVE_OK;
}

static bool config_file_set_line(void *arg, const struct origin *at, const char *key,
                                 const char *value)
{
    struct loading *l = arg;
    char why[400] = "";
    const struct fault f = {why, sizeof why};
    clave_err err = settings_set(l->v, key, value, &f);
    if (err == CLAVE_OK)
        err = config_file_only_once(l, key, at->line, &f);
    if (err == CLAVE_OK)
        return true;
    l->err = err;
    bool shows = settings_exist(key); /* the value of a key we do not know may be a secret */
    clave__log_about(l->log, CLAVE_LOG_ERROR, &(struct log_about){.path = at->file},
                     "%s:%u: %s%s%s%s: %s", at->file, at->line, key, shows ? " '" : "",
                     shows ? value : "", shows ? "'" : "", why[0] ? why : clave_strerror(err));
    return err != CLAVE_ENOMEM;
}

clave_err serve_config_read(struct serve_settings *v, char *text, const char *path,
                            const struct log *log)
{
    struct loading l = {.v = v, .log = log};
    const struct keyfile_visitor visitor = {config_file_set_line, config_file_bad_line, &l};
    int apache = config_file_is_zoocfg(text);
    if (apache < 0)
        return CLAVE_ENOMEM;
    if (apache && !v->is_gate)
        return serve_zoocfg_load(v, text, path, log);
    clave__keyfile_each(text, path, &visitor);
    return l.err;
}

clave_err serve_config_load(struct serve_settings *v, const char *path, const struct log *log,
                            bool *is_read)
{
    char why[TEXT_FILE_WHY];
    char *text = clave__text_file_read(path, why);
    *is_read = text;
    if (!text) {
        clave__log(log, CLAVE_LOG_ERROR, "configuration %s", why);
        return errno == ENOMEM ? CLAVE_ENOMEM : CLAVE_EINVAL;
    }
    clave_err err = serve_config_read(v, text, path, log);
    free(text);
    return err;
}
