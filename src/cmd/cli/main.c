/* main.c - finds the verb and runs it. Makes sure first of all that the descriptors 0 to 2 are
 * open. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/suggestion.h"
#include "runtime/client/local_start.h"

static void main_end_by_signal(int sig)
{
    _exit(128 + sig);
}

/* Adapts to being process 1 of a container. Signals whose default action ends other processes do
 * not end process 1, so they get a handler. Process 1 also inherits every orphan, and none may
 * remain a zombie: while SIGCHLD is ignored, the kernel discards ended children. Verbs that run a
 * command wait for their children themselves. */
static void main_become_process_1(const struct verb *v)
{
    static const int ending[] = {SIGTERM, SIGINT, SIGHUP};
    const struct sigaction end = {.sa_handler = main_end_by_signal},
                           discard = {.sa_handler = SIG_IGN};
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        struct sigaction now;
        sigaction(ending[i], NULL, &now);
        if (now.sa_handler == SIG_DFL)
            sigaction(ending[i], &end, NULL);
    }
    if (!v->runs_command)
        sigaction(SIGCHLD, &discard, NULL);
}

/* Parses the words before the verb as if they were a verb without a name. */
static const struct verb program = {
    .name = "",
    .flags = (const struct flag[]){{FLAG_LONG, "version", NULL, ""}, {0, NULL, NULL, NULL}},
    .max_args = 0,
    .offline = true,
};

static int main_run(struct options *o, int argc, char **argv)
{
    o->verb = &program;
    int id = options_next(o, argc, argv);
    if (id == OPTIONS_STOP)
        return o->status;
    if (id == FLAG_LONG) {
        printf("clave %s\n", clave_version());
        return EXIT_OK;
    }
    if (o->argc == 0) {
        fputs("clave: no verb given (see 'clave help')\n", stderr);
        return EXIT_USAGE;
    }
    const struct verb *v = options_verb(o, o->argv[0]);
    if (!v) {
        char instead[SUGGESTION_CAP];
        return diag_usage(o, "unknown verb '%s'%s", o->argv[0],
                          suggestion_for_verb(o->verbs, o->argv[0], instead));
    }
    o->verb = v;
    if (getpid() == 1)
        main_become_process_1(v);
    return v->run(o, o->argc, o->argv);
}

int main(int argc, char **argv)
{
    struct options o;
    if (!inheritance_hold_descriptors())
        return EXIT_IO;
    options_init(&o, all_verbs);
    clave__local_set_program(
        "/proc/self/exe"); /* "local:" starts this very program as its server */
    inheritance_take(&o.inherited);
    int code = main_run(&o, argc, argv);
    int flushed = finish_stdout(&o);
    options_fini(&o);
    return code != EXIT_OK ? code : flushed;
}
