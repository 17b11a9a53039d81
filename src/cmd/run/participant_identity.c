/* participant_identity.c - see participant_identity.h; run_recipe.c and once_and_min_hold.c call
 * it. */
#include "cmd/run/participant_identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void participant_identity_join_words(char *const *argv, char *out, size_t cap)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; argv[i] && n < cap; i++) {
        int added = snprintf(out + n, cap - n, "%s%s", i > 0 ? " " : "", argv[i]);
        n += added > 0 ? (size_t)added : 0;
    }
}

void participant_identity_describe(struct participant_identity *s, const struct run_plan *plan)
{
    s->host[0] = s->host[sizeof s->host - 1] = '\0';
    gethostname(s->host, sizeof s->host - 1);
    participant_identity_join_words(plan->argv, s->command, sizeof s->command);
    s->identity = (clave_identity){.host = *s->host ? s->host : NULL,
                                   .pid = getpid(),
                                   .name = plan->name,
                                   .command = s->command,
                                   .traceparent = getenv("TRACEPARENT")};
}
