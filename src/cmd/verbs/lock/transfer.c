/* transfer.c - `clave transfer`: finds the candidate that is to lead next, then hands over to it
 * (cmd/queues/leader_resign.h). Refuses a candidate that would be asked to resign at once because
 * of its priority. */
#include <string.h>

#include "clave/async/leader.h"
#include "clave/participants.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/shell_command.h"
#include "cmd/queues/leader_resign.h"
#include "cmd/queues/queue_view.h"

/* Finds the candidate with this id, or whose node has this name. Returns EXIT_OK, or an exit code
 * after a message. */
static int transfer_find_target(struct handover *h, const char *id)
{
    clave_participant_list *candidates;
    size_t found = 0;
    int32_t priority = 0, highest = 0; /* of the target, and the highest of the others that wait */
    clave_err err = clave_participants(h->session, clave_async_latch_participants, h->path,
                                       h->o->timeout_ms, &candidates);
    for (size_t i = 0; candidates && i < candidates->n; i++) {
        const clave_participant *p = &candidates->list[i];
        bool same =
            (p->identity.text && strcmp(p->identity.text, id) == 0) || strcmp(p->node, id) == 0;
        if (same && found++ == 0) {
            strncpy(h->target, p->node, sizeof h->target - 1);
            priority = i > 0 ? p->priority : 0;
        } else if (i > 0 && p->priority > highest) {
            highest = p->priority;
        }
    }
    bool empty = candidates && candidates->n == 0;
    clave_participant_list_free(candidates);
    if (err != CLAVE_OK)
        return diag_err(h->o, h->path, err, h->session);
    if (empty && no_queue_report(h->o, h->session, h->path))
        return EXIT_PATH;
    if (found == 1 && (priority == 0 || priority >= highest))
        return EXIT_OK;
    if (found == 1)
        return diag_end(h->o, h->path, EXIT_PATH,
                        "'%s' has priority %d and would resign at once for one with %d", id,
                        (int)priority, (int)highest);
    char hint[HINT_CAP];
    return diag_end(
        h->o, h->path, EXIT_PATH,
        found ? "several candidates have the id '%s': name the node instead; to see them: %s"
              : "no candidate has the id '%s'; to see them: %s",
        id, hint_command(h->o, (const char *const[]){"candidates", h->path, NULL}, hint));
}

static int transfer_run(struct options *o, int argc, char **argv)
{
    struct handover h;
    int code;
    if (!handover_begin(&h, o, argc, argv, 2, &code))
        return code;
    code = transfer_find_target(&h, o->argv[1]);
    if (code != EXIT_OK) {
        connect_close(h.session);
        return code;
    }
    return handover_run(&h);
}

const struct verb verb_transfer = {
    .name = "transfer",
    .args = "PATH ID",
    .summary = "Have a candidate lead next, and ask the leader to resign",
    .text = "ID is as 'clave candidates' shows it, or the name of a node. The candidates between\n"
            "the leader and this one go to the end of the queue, in one transaction. Waits until\n"
            "the candidate leads. Exit code 75: not in time; 66: no such candidate, or another\n"
            "one leads now.\n",
    .flags = handover_flags,
    .elects = true,
    .max_args = -1,
    .run = transfer_run,
};
