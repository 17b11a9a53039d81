/* slot_session.c - the session of every part of `clave slot`, and the slots on it (slot.h). */
#include <stdatomic.h>

#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/verbs/lock/slot.h"

/* On the loop's thread. */
static void slot_session_on_waiting(clave_async_slots *a, const clave_slots_event *ev, void *arg)
{
    struct slot_command *s = arg;
    (void)a;
    if (atomic_load(&s->signal) != 0)
        clave_slots_cancel(s->slots);
    run_slot_note_room(&s->room, ev);
    if (atomic_load(&s->signal) == 0 && !s->quiet && !ev->refused)
        run_slot_say_waiting(s->o, s->plan.path, &s->room);
}

static clave_slots_options slot_session_options(struct slot_command *s)
{
    return (clave_slots_options){.size = sizeof(clave_slots_options),
                                 .acls = s->acl.n > 0 ? s->acl.list : NULL,
                                 .nacls = s->acl.n,
                                 .event_cb = slot_session_on_waiting,
                                 .event_arg = s};
}

int slot_session_open(struct slot_command *s, clave_client **c)
{
    const clave_slots_options o = slot_session_options(s);
    int code = connect_open(s->o, NULL, c);
    if (code != EXIT_OK)
        return code;
    clave_err err = clave_slots_new(&s->slots, *c, s->plan.path, &o);
    if (err == CLAVE_OK)
        return EXIT_OK;
    code = diag_err(s->o, s->plan.path, err, *c);
    connect_close(*c);
    *c = NULL;
    return code;
}

void slot_session_close(struct slot_command *s, clave_client *c)
{
    clave_slots_free(s->slots);
    connect_close(c);
}
