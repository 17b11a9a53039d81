/* hook.c - starts a hook with posix_spawn. runner.c and child.c call it. A hook inherits neither
 * our signal mask nor the variables of the service manager. */
#include "cmd/run/hook.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cli/diag.h"
#include "cmd/service/sd_notify.h"

enum { ADDED = 4 };

/* This process's environment plus the variables added, which come first and so take precedence. */
static char **make_environment(char *const added[ADDED])
{
    size_t n = 0;
    while (environ[n])
        n++;
    char **env = calloc(n + ADDED + 1, sizeof *env);
    size_t at = 0;
    for (size_t i = 0; env && i < ADDED; i++)
        if (added[i])
            env[at++] = added[i];
    for (size_t i = 0; env && i < n; i++) {
        size_t name = strcspn(environ[i], "=");
        bool replaced = sd_notify_is_variable(environ[i]); /* a hook is not the service */
        for (size_t k = 0; k < ADDED; k++)
            replaced |= added[k] && strncmp(added[k], environ[i], name + 1) == 0;
        if (!replaced)
            env[at++] = environ[i];
    }
    return env;
}

static char *variable(const char *name, const char *value)
{
    char *text = NULL;
    return asprintf(&text, "%s=%s", name, value) < 0 ? NULL : text;
}

/* Like a command started by a shell: in a group of its own, with no signal blocked or ignored. */
static int hook_start(const char *command, char **env)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    pid_t pid;
    char shell[] = "sh", flag[] = "-c";
    char *text = strdup(command);
    char *argv[] = {shell, flag, text, NULL};
    if (!text)
        return -1;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                        POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setsigmask(&attr, &none);
    int err = posix_spawn(&pid, "/bin/sh", &files, &attr, argv, env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    free(text);
    return err;
}

void hook_run(const struct lock_plan *p, const char *command, const char *event, int64_t token)
{
    char number[24];
    if (!command)
        return;
    snprintf(number, sizeof number, "%" PRId64, token);
    char *added[ADDED] = {variable("CLAVE_EVENT", event), variable("CLAVE_PATH", p->path),
                          variable("CLAVE_CONNECT", p->connect),
                          token != 0 ? variable("CLAVE_TOKEN", number) : NULL};
    char **env = added[0] && added[1] && added[2] ? make_environment(added) : NULL;
    if (!env || hook_start(command, env) != 0)
        diag(p->o, "%s: cannot run the hook: %s", p->path, command);
    free(env);
    for (size_t i = 0; i < ADDED; i++)
        free(added[i]);
}
