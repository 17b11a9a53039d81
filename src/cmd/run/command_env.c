/* command_env.c - see command_env.h. guardian.c calls it for the command, hook.c for a hook. */
#include "cmd/run/command_env.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "cmd/service/sd_notify.h"

/* ---- the command ----------------------------------------------------------------------------- */

static bool command_env_put_number(const char *name, const char *format, int64_t n)
{
    char text[32];
    snprintf(text, sizeof text, strcmp(format, "hex") == 0 ? "0x%llx" : "%lld", (long long)n);
    return setenv(name, text, 1) == 0;
}

/* So that clave, run by the command, reaches the same servers. */
static bool command_env_put_tls(const struct options *o)
{
    static const char *const names[CLIENT_TLS_TEXTS] = {[CLIENT_TLS_CA] = "CLAVE_TLS_CA",
                                                        [CLIENT_TLS_CERT] = "CLAVE_TLS_CERT",
                                                        [CLIENT_TLS_KEY] = "CLAVE_TLS_KEY",
                                                        [CLIENT_TLS_NAME] = "CLAVE_TLS_NAME"};
    for (size_t i = 0; i < CLIENT_TLS_TEXTS; i++)
        if (o->client.tls_texts[i] && setenv(names[i], o->client.tls_texts[i], 1) != 0)
            return false;
    return true;
}

bool command_env_set(const struct guardian_plan *plan, const struct guardian_task *task,
                     int deadline_page_fd)
{
    char page[DEADLINE_PAGE_FILE_CAP];
    char *node = clave__path_child(NULL, plan->holders, task->node);
    if (!node)
        return false;
    snprintf(page, sizeof page, "/proc/%d/fd/%d", (int)getpid(), deadline_page_fd);
    bool fine =
        setenv("CLAVE_PATH", plan->path, 1) == 0 && setenv("CLAVE_NODE", node, 1) == 0 &&
        setenv("CLAVE_DEADLINE", page, 1) == 0 && setenv("CLAVE_CONNECT", plan->connect, 1) == 0 &&
        (!*plan->owner || setenv("CLAVE_OWNER", plan->owner, 1) == 0) &&
        command_env_put_tls(plan->o) && command_env_put_number("CLAVE_TOKEN", "dec", task->token) &&
        command_env_put_number("CLAVE_SESSION", "hex", task->session_id);
    free(node);
    return fine;
}

/* ---- hooks ----------------------------------------------------------------------------------- */

static char *command_env_text(const char *name, const char *value)
{
    char *text = NULL;
    return asprintf(&text, "%s=%s", name, value) < 0 ? NULL : text;
}

/* This process's environment plus the variables added, which come first and so take precedence. */
static char **command_env_join(char *const added[COMMAND_ENV_ADDED])
{
    size_t n = 0;
    while (environ[n])
        n++;
    char **env = calloc(n + COMMAND_ENV_ADDED + 1, sizeof *env);
    size_t at = 0;
    for (size_t i = 0; env && i < COMMAND_ENV_ADDED; i++)
        if (added[i])
            env[at++] = added[i];
    for (size_t i = 0; env && i < n; i++) {
        size_t name = strcspn(environ[i], "=");
        bool replaced = sd_notify_is_variable(environ[i]); /* a hook is not the service */
        for (size_t k = 0; k < COMMAND_ENV_ADDED; k++)
            replaced |= added[k] && strncmp(added[k], environ[i], name + 1) == 0;
        if (!replaced)
            env[at++] = environ[i];
    }
    return env;
}

bool command_env_init_hook(struct command_env *e, const struct run_plan *p, const char *event,
                           int64_t token)
{
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, token);
    char *added[COMMAND_ENV_ADDED] = {command_env_text("CLAVE_EVENT", event),
                                      command_env_text("CLAVE_PATH", p->path),
                                      command_env_text("CLAVE_CONNECT", p->connect),
                                      token != 0 ? command_env_text("CLAVE_TOKEN", number) : NULL};
    memcpy(e->added, added, sizeof added);
    e->all = added[0] && added[1] && added[2] ? command_env_join(added) : NULL;
    return e->all != NULL;
}

void command_env_fini(struct command_env *e)
{
    free(e->all);
    for (size_t i = 0; i < COMMAND_ENV_ADDED; i++)
        free(e->added[i]);
}
