/* run_slot.c - see run_slot.h. once_and_min_hold.c, child.c and `clave slot` call it. The lock of
 * the run is held all the time, so a second run with the same id neither takes nor gives back the
 * slot. */
#include "cmd/run/stages/run_slot.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/format.h"
#include "cmd/cli/participant.h"
#include "cmd/cli/shell_command.h"
#include "cmd/run/runner.h"

/* ---- messages -------------------------------------------------------------------------------- */

static const char *run_slot_hint_list(const struct options *o, const char *path, char out[HINT_CAP])
{
    return hint_command(o, (const char *const[]){"slot", "list", path, NULL}, out);
}

bool run_slot_is_ours(const struct options *o, const struct run_slot_plan *p,
                      const clave_slot *slot)
{
    char host[PARTICIPANT_TEXT_CAP];
    if (!p->id_defaulted || !slot->host || (p->as.host && strcmp(slot->host, p->as.host) == 0))
        return true;
    diag_end(o, p->path, EXIT_REFUSED,
             "the slot of this machine's id %s was taken by host %s: cloned machines share their "
             "id, and a renamed one keeps it: name another id with --id, or this same one if the "
             "slot is this machine's",
             slot->id, participant_text_printable(slot->host, host, sizeof host));
    return false;
}

void run_slot_say_owned(const struct options *o, const char *path, const clave_slot *slot)
{
    char since[TIME_TEXT_CAP];
    diag(o, "%s: %s owns a slot already, since %s", path, slot->id, time_text(slot->since, since));
}

void run_slot_note_room(struct run_slot_room *r, const clave_slots_event *ev)
{
    *r = (struct run_slot_room){
        .known = true, .ahead = ev->ahead, .owned = ev->owned, .limit = ev->limit};
    snprintf(r->strange, sizeof r->strange, "%s", ev->strange ? ev->strange : "");
    snprintf(r->left_over, sizeof r->left_over, "%s",
             ev->left_over ? clave__path_name(ev->left_over) : "");
}

static const char *run_slot_hint_limit(const struct options *o, const char *path,
                                       char out[HINT_CAP])
{
    return hint_command(o, (const char *const[]){"slot", "limit", path, "N", NULL}, out);
}

void run_slot_say_strange(const struct options *o, const char *path, const char *node)
{
    char hint[HINT_CAP];
    diag(o, "%s: %s is not a slot, but counts as one; to remove it: %s", path, node,
         hint_command(o, (const char *const[]){"rm", "-r", node, NULL}, hint));
}

int run_slot_bad_limit(const struct options *o, const char *path)
{
    char hint[HINT_CAP];
    return diag_end(o, path, EXIT_PATH,
                    "the node of the limit holds no number of slots, so nobody takes any; to set "
                    "it: %s",
                    run_slot_hint_limit(o, path, hint));
}

void run_slot_say_waiting(const struct options *o, const char *path, const struct run_slot_room *r)
{
    char text[LEFT_OVER_CAP];
    char *queue = r->left_over[0] ? clave__path_child(NULL, path, "queue") : NULL;
    if (r->limit == CLAVE_SLOTS_LIMIT_BAD)
        (void)run_slot_bad_limit(o, path);
    else if (queue)
        diag(o, "%s: waiting, %zu ahead; %s", path, r->ahead,
             participant_text_left_over(o, queue, r->left_over, NULL, text));
    else if (r->ahead > 0)
        diag(o, "%s: waiting, %zu ahead", path, r->ahead);
    else
        diag(o, "%s: waiting for a slot to be given back", path);
    if (r->strange[0])
        run_slot_say_strange(o, path, r->strange);
    free(queue);
}

/* No slot was free: says how many owners there are, and how many participants are before us in the
 * queue. */
static int run_slot_no_room(const struct options *o, const char *path,
                            const struct run_slot_room *r)
{
    char hint[HINT_CAP], why[160] = "", before[48] = "";
    if (r->limit == CLAVE_SLOTS_LIMIT_BAD)
        return run_slot_bad_limit(o, path);
    if (r->ahead > 0)
        snprintf(before, sizeof before, ", %zu before it", r->ahead);
    if (r->known)
        snprintf(why, sizeof why, ": %zu owner%s%s, the limit is %" PRId64, r->owned,
                 r->owned == 1 ? "" : "s", before, r->limit);
    if (r->strange[0])
        run_slot_say_strange(o, path, r->strange);
    return diag_end(o, path, EXIT_TIMEOUT, "no slot was free in time%s; to see the owners: %s", why,
                    run_slot_hint_list(o, path, hint));
}

int run_slot_not_taken(const struct options *o, const char *path, clave_err err,
                       const struct run_slot_room *r, const struct client_fault *fault)
{
    char hint[HINT_CAP];
    if (err == CLAVE_EBUSY)
        return run_slot_no_room(o, path, r);
    if (err == CLAVE_ECANCELED)
        return diag_end(o, path, EXIT_LOST,
                        "its place in the queue was deleted: giving or breaking the slot of an id "
                        "also ends the takes of this id that are waiting");
    if (err == CLAVE_ENONODE)
        return diag_end(o, path, exit_code_of(err), "no limit is set; to set one: %s",
                        run_slot_hint_limit(o, path, hint));
    if (clave_err_classify(err) == CLAVE_CLASS_UNKNOWN)
        return diag_end(o, path, exit_code_of(err),
                        "%s: the slot may have been taken: look with: %s", clave_strerror(err),
                        run_slot_hint_list(o, path, hint));
    return diag_fault(o, path, err, fault);
}

int run_slot_not_given(const struct options *o, const char *path, clave_err err,
                       const struct client_fault *fault)
{
    char hint[HINT_CAP];
    if (clave_err_classify(err) != CLAVE_CLASS_UNKNOWN)
        return diag_fault(o, path, err, fault);
    return diag_end(o, path, exit_code_of(err), "%s: the slot may still be owned: look with: %s",
                    clave_strerror(err), run_slot_hint_list(o, path, hint));
}

/* ---- before the command ---------------------------------------------------------------------- */

/* Where the name of the parent begins in `path`, given where the last name begins. */
static const char *run_slot_name_before(const char *path, const char *name)
{
    for (name--; name > path && name[-1] != '/';)
        name--;
    return name;
}

static void run_slot_on_taken(clave_async_slots *s, clave_err err, const clave_slot *slot,
                              bool taken, void *arg)
{
    struct runner *r = arg;
    const struct run_slot_plan *p = r->plan->stages.slot;
    (void)s;
    if (r->phase != WAITING)
        return;
    assert(r->stages.phase == TAKING);
    r->stages.phase = BEGUN;
    if (err != CLAVE_OK) {
        int code = run_slot_not_taken(r->o, p->path, err, &r->stages.slot_room,
                                      clave__client_latest_fault(r->client));
        r->events->leave(r, code);
    } else if (!taken && !run_slot_is_ours(r->o, p, slot)) {
        r->events->leave(r, EXIT_REFUSED);
    } else {
        if (!taken && !r->plan->quiet)
            run_slot_say_owned(r->o, p->path, slot);
        r->stages.slot_token = slot->token;
        const char *take = clave__path_name(
            slot->node); /* the name below the owners' node consists of two names */
        snprintf(r->stages.slot_name, sizeof r->stages.slot_name, "%s",
                 run_slot_name_before(slot->node, take));
        r->events->cleared(r);
    }
}

static void run_slot_on_waiting(clave_async_slots *s, const clave_slots_event *ev, void *arg)
{
    struct runner *r = arg;
    (void)s;
    run_slot_note_room(&r->stages.slot_room, ev);
    if (!r->plan->quiet && !ev->refused)
        run_slot_say_waiting(r->o, r->plan->stages.slot->path, &r->stages.slot_room);
}

static int64_t run_slot_deadline(int64_t wait_ms)
{
    if (wait_ms == LOCK_FOR_EVER)
        return CLAVE_NEVER;
    return wait_ms == LOCK_TRY ? CLAVE_TRY : clave_now() + wait_ms;
}

void run_slot_begin(struct runner *r)
{
    assert(!r->stages.slots);
    const struct run_slot_plan *p = r->plan->stages.slot;
    const clave_slots_options o = {.size = sizeof o,
                                   .acls = r->plan->acl.n > 0 ? r->plan->acl.list : NULL,
                                   .nacls = r->plan->acl.n,
                                   .event_cb = run_slot_on_waiting,
                                   .event_arg = r};
    r->stages.phase = TAKING;
    clave_err err = clave_async_slots_new(&r->stages.slots, r->client, p->path, &o);
    if (err == CLAVE_OK)
        err = clave_async_slots_take(r->stages.slots, 0, &p->as, run_slot_deadline(p->wait_ms),
                                     run_slot_on_taken, r);
    if (err != CLAVE_OK)
        run_slot_on_taken(NULL, err, NULL, false, r);
}

void run_slot_put(const struct runner *r, struct guardian_task *t)
{
    static_assert(sizeof t->node == sizeof r->stages.slot_name, "the name fits");
    assert(r->stages.slot_token != 0);
    t->token = r->stages.slot_token;
    t->session_id = 0;
    memcpy(t->node, r->stages.slot_name, sizeof r->stages.slot_name);
}

/* ---- after the command ----------------------------------------------------------------------- */

static void run_slot_on_given(clave_async_slots *s, clave_err err, const clave_slot *slot,
                              void *arg)
{
    struct runner *r = arg;
    const char *path = r->plan->stages.slot->path;
    int code = r->stages.code;
    (void)s;
    if (r->phase != KEEPING)
        return;
    assert(r->stages.phase == GIVING);
    if (err != CLAVE_OK) {
        int why = run_slot_not_given(r->o, path, err, clave__client_latest_fault(r->client));
        code = code == EXIT_OK ? why : code;
    } else if (!slot && !r->plan->quiet) {
        diag(r->o, "%s: the slot had been given back or broken while the command ran", path);
    }
    r->stages.given(r, code);
}

bool run_slot_end(struct runner *r, int code, void (*given)(struct runner *r, int code))
{
    const struct run_slot_plan *p = r->plan->stages.slot;
    bool keeps = p->keep == SLOT_KEEP_ALWAYS || (p->keep == SLOT_KEEP_FAILED && code != EXIT_OK);
    if (keeps || r->stages.slot_token == 0) {
        if (keeps && code != EXIT_OK && !r->plan->quiet)
            diag(r->o, "%s: %s keeps the slot: the command ended with %d", p->path, p->as.id, code);
        return false;
    }
    r->stages.phase = GIVING;
    r->stages.given = given;
    clave_err err = clave_async_slots_give(r->stages.slots, p->as.id, r->stages.slot_token,
                                           CLAVE_NEVER, run_slot_on_given, r);
    if (err != CLAVE_OK)
        run_slot_on_given(NULL, err, NULL, r);
    clave_uv_flush(r->uv);
    return true;
}

/* The slot is kept: since the lock was lost, another run with this id may have begun and be using
 * it. */
void run_slot_lost(const struct runner *r)
{
    const struct run_slot_plan *p = r->plan->stages.slot;
    char hint[HINT_CAP], token[24];
    if (p->keep == SLOT_KEEP_ALWAYS || r->stages.slot_token == 0)
        return;
    snprintf(token, sizeof token, "%" PRId64, r->stages.slot_token);
    diag(r->o,
         "%s: %s keeps the slot: the lock of the run was lost, so another run of it may be using "
         "the slot; to give it back: %s",
         p->path, p->as.id,
         hint_command(r->o,
                      (const char *const[]){"slot", "give", p->path, "--id", p->as.id, "--token",
                                            token, NULL},
                      hint));
}

void run_slot_release(struct runner *r)
{
    if (r->stages.phase != TAKING)
        return;
    (void)run_slot_not_taken(r->o, r->plan->stages.slot->path, CLAVE_ECONNLOSS,
                             &r->stages.slot_room, clave__client_latest_fault(r->client));
}

void run_slot_free(struct runner *r)
{
    clave_async_slots_free(r->stages.slots);
    r->stages.slots = NULL;
}
