/* hook.c - starts a hook with posix_spawn. runner.c and child.c call it. A hook inherits neither
 * our signal mask nor the variables of the service manager. */
#include "cmd/run/hook.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cli/diag.h"
#include "cmd/run/command_env.h"

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

void hook_run(const struct run_plan *p, const char *command, const char *event, int64_t token)
{
    struct command_env env;
    if (!command)
        return;
    if (!command_env_init_hook(&env, p, event, token) || hook_start(command, env.all) != 0)
        diag(p->o, "%s: cannot run the hook: %s", p->path, command);
    command_env_fini(&env);
}
