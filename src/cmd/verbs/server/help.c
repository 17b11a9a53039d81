/* help.c - `clave help`: prints the usage of the program or of one verb, what verbs have in common
 * (a topic), or the flags that match some words. usage.c has the texts. */
#include <stdio.h>
#include <string.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/suggestion.h"
#include "cmd/cli/usage.h"

static int run_help(struct options *o, int argc, char **argv)
{
    if (options_next(o, argc, argv) == OPTIONS_STOP)
        return o->status;
    if (o->argc == 0) {
        usage_all(o->verbs);
        return EXIT_OK;
    }
    const struct verb *v = options_verb(o, o->argv[0]);
    if (v && o->argc == 1) {
        usage_verb(v);
        return EXIT_OK;
    }
    if ((o->argc == 1 && usage_topic(o->verbs, o->argv[0])) || usage_find(o->verbs, o->argv))
        return EXIT_OK;
    if (o->argc > 1)
        return diag_usage(o, "no flag matches all of these words");
    char instead[SUGGESTION_CAP];
    return diag_usage(o, "unknown verb or topic '%s'%s", o->argv[0],
                      suggestion_for_verb(o->verbs, o->argv[0], instead));
}

const struct verb verb_help = {
    .name = "help",
    .args = "[VERB|TOPIC|WORD...]",
    .summary = "Print the usage of clave or of a verb, a topic, or the flags that match some words",
    .max_args = -1,
    .offline = true,
    .ignores_client_flags = true,
    .run = run_help,
};
