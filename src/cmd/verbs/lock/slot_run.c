/* slot_run.c - `clave slot run` (slot.h): a command under the lock of the runs of its id,
 * which is ephemeral, and under the slot, which is not (cmd/run/stages/run_slot.h). */
#include <stdlib.h>

#include "base/path.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/run/runner.h"
#include "cmd/verbs/lock/slot.h"
#include "recipe/slots/slot_node.h"

/* PATH/runs/<id>: the id as in the names of slots. NULL: out of memory. */
static char *slot_run_path(const struct slot_command *s)
{
    char name[SLOT_NAME_CAP];
    clave__slot_name_escape(name, s->plan.as.id);
    char *runs = clave__path_child(NULL, s->plan.path, "runs");
    char *path = runs ? clave__path_child(NULL, runs, name) : NULL;
    free(runs);
    return path;
}

int slot_run(struct slot_command *s)
{
    struct run_plan p = {.o = s->o,
                         .kind = KIND_MUTEX,
                         .command.argv = s->argv,
                         .name = s->plan.as.id,
                         .wait_ms = LOCK_TRY,
                         .grace_ms = LOCK_GRACE_DEFAULT,
                         .conflict_code = EXIT_TIMEOUT,
                         .quiet = s->quiet,
                         .acl = s->acl,
                         .stages.slot = &s->plan};
    char *path = slot_run_path(s), *owners = clave__path_child(NULL, s->plan.path, "owners");
    int code = EXIT_USAGE;
    nested_make_owner(p.owner);
    p.path = path;
    p.holders = owners;
    p.connect = connect_dial(s->o);
    if (!path || !owners)
        code = diag_err(s->o, s->plan.path, CLAVE_ENOMEM, NULL);
    else if (p.connect)
        code = runner_run(&p, NULL);
    free(path);
    free(owners);
    return code;
}
