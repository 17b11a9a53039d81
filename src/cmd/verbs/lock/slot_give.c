/* slot_give.c - `clave slot give` and `clave slot break` (slot.h). A give by the machine's id
 * reads first whose slot it is: cloned machines share the id. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "cmd/cli/shell_command.h"
#include "cmd/verbs/lock/slot.h"
#include "runtime/blocking/call.h"

static void slot_give_show(const struct slot_command *s, const char *key, int64_t token)
{
    struct json j;
    if (!s->o->json)
        return;
    json_begin(&j, stdout);
    clave__json_string(&j, "path", s->plan.path);
    clave__json_string(&j, "id", s->plan.as.id);
    clave__json_bool(&j, key, token != 0);
    if (token != 0)
        clave__json_int(&j, "token", token);
    else
        clave__json_string(&j, "token", NULL);
    json_end(&j);
}

/* The node of this id, or of this very name; NULL: there is none. */
static const clave_slot *slot_give_find(const struct slot_command *s, const clave_slots_view *view)
{
    const char *id = s->plan.as.id;
    for (size_t i = 0; i < view->n; i++) {
        const clave_slot *slot = &view->slots[i];
        if (strcmp(slot->id ? slot->id : clave__path_name(slot->node), id) == 0)
            return slot;
    }
    return NULL;
}

static void slot_give_say_none(const struct slot_command *s, clave_client *c)
{
    clave_slots_view *view;
    if (clave_slots_list(c, s->plan.path, s->o->timeout_ms, &view) == CLAVE_OK) {
        const clave_slot *slot = slot_give_find(s, view);
        if (slot && !slot->id)
            run_slot_say_strange(s->o, s->plan.path, slot->node);
        clave_slots_view_free(view);
    }
    if (s->token != 0)
        diag(s->o, "%s: %s owns no slot with token %" PRId64, s->plan.path, s->plan.as.id,
             s->token);
    else
        diag(s->o, "%s: %s owns no slot", s->plan.path, s->plan.as.id);
}

/* Others have made nodes below it. */
static int slot_give_not_empty(const struct slot_command *s)
{
    char hint[HINT_CAP];
    char *owners = clave__path_child(NULL, s->plan.path, "owners");
    int code = diag_end(
        s->o, s->plan.path, exit_code_of(CLAVE_ENOTEMPTY),
        "others have made nodes below it; to see them: %s",
        hint_command(s->o, (const char *const[]){"tree", owners ? owners : "/", NULL}, hint));
    free(owners);
    return code;
}

static int slot_give_failed(const struct slot_command *s, clave_client *c, clave_err err)
{
    struct client_fault fault;
    if (err == CLAVE_ENOTEMPTY)
        return slot_give_not_empty(s);
    clave__blocking_fault(c, &fault);
    return run_slot_not_given(s->o, s->plan.path, err, &fault);
}

/* EXIT_OK: the slot of the id, if there is one, is this machine's; *token is its. */
static int slot_give_look(const struct slot_command *s, clave_client *c, int64_t *token)
{
    clave_slots_view *view;
    int code = EXIT_OK;
    clave_err err = clave_slots_list(c, s->plan.path, s->o->timeout_ms, &view);
    if (err != CLAVE_OK)
        return diag_err(s->o, s->plan.path, err, c);
    const clave_slot *slot = slot_give_find(s, view);
    if (slot && slot->id) {
        if (!run_slot_is_ours(s->o, &s->plan, slot))
            code = EXIT_REFUSED;
        if (*token == 0)
            *token = slot->token;
    }
    clave_slots_view_free(view);
    return code;
}

static int slot_give_on(struct slot_command *s, clave_client *c)
{
    int64_t given = 0, token = s->token;
    int code = s->plan.id_defaulted ? slot_give_look(s, c, &token) : EXIT_OK;
    if (code != EXIT_OK)
        return code;
    clave_err err = clave_slots_give(s->slots, s->plan.as.id, token, s->o->timeout_ms, &given);
    if (err != CLAVE_OK)
        return slot_give_failed(s, c, err);
    if (given == 0 && !s->quiet)
        slot_give_say_none(s, c);
    slot_give_show(s, "given", given);
    return EXIT_OK;
}

int slot_give(struct slot_command *s)
{
    clave_client *c;
    int code = slot_session_open(s, &c);
    if (code != EXIT_OK)
        return code;
    code = slot_give_on(s, c);
    slot_session_close(s, c);
    return code;
}

int slot_break(struct slot_command *s)
{
    clave_client *c;
    int64_t broken = 0;
    char hint[HINT_CAP];
    const char *path = s->plan.path;
    int code = slot_session_open(s, &c);
    if (code != EXIT_OK)
        return code;
    clave_slot which = s->plan.as;
    which.token = s->token;
    clave_err err = clave_slots_break(s->slots, &which, s->o->timeout_ms, &broken);
    if (err != CLAVE_OK) {
        code = slot_give_failed(s, c, err);
    } else if (broken == 0) {
        slot_give_say_none(s, c);
        code =
            diag_end(s->o, path, EXIT_PATH, "nothing was broken; to see the owners: %s",
                     hint_command(s->o, (const char *const[]){"slot", "list", path, NULL}, hint));
    }
    slot_give_show(s, "broken", broken);
    slot_session_close(s, c);
    return code;
}
