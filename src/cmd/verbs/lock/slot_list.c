/* slot_list.c - `clave slot list` and `clave slot limit` (see slot.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "clave/participants.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/format.h"
#include "cmd/cli/json.h"
#include "cmd/cli/participant.h"
#include "cmd/cli/shell_command.h"
#include "cmd/verbs/lock/slot.h"
#include "runtime/clock.h"

enum { SLOT_COLUMN_CAP = 160 };

static int slot_list_no_limit(const struct slot_command *s)
{
    char hint[HINT_CAP];
    const char *path = s->plan.path;
    return diag_end(
        s->o, path, EXIT_PATH, "no limit is set; to set one: %s",
        hint_command(s->o, (const char *const[]){"slot", "limit", path, "N", NULL}, hint));
}

/* ---- the limit ------------------------------------------------------------------------------ */

static int slot_limit_show(const struct slot_command *s, clave_client *c)
{
    clave_slots_view *view;
    int code = EXIT_OK;
    clave_err err = clave_slots_list(c, s->plan.path, s->o->timeout_ms, &view);
    if (err != CLAVE_OK)
        return diag_err(s->o, s->plan.path, err, c);
    if (view->limit == CLAVE_SLOTS_LIMIT_BAD) {
        code = run_slot_bad_limit(s->o, s->plan.path);
    } else if (view->limit < 0) {
        code = slot_list_no_limit(s);
    } else if (s->o->json) {
        struct json j;
        json_begin(&j, stdout);
        clave__json_string(&j, "path", s->plan.path);
        clave__json_int(&j, "limit", view->limit);
        clave__json_int(&j, "owned", (int64_t)view->n);
        json_end(&j);
    } else {
        printf("%" PRId64 "\n", view->limit);
    }
    clave_slots_view_free(view);
    return code;
}

int slot_limit(struct slot_command *s)
{
    clave_client *c;
    char *end;
    long long n = s->limit ? strtoll(s->limit, &end, 10) : 0;
    if (s->limit && (*end || *s->limit < '0' || *s->limit > '9' || n > INT32_MAX))
        return diag_usage(s->o, "'%s': the limit is a number from 0 to %d", s->limit, INT32_MAX);
    int code = slot_session_open(s, &c);
    if (code != EXIT_OK)
        return code;
    if (s->limit) {
        clave_err err = clave_slots_set_limit(s->slots, (uint32_t)n, s->o->timeout_ms);
        code = err == CLAVE_OK ? EXIT_OK : diag_err(s->o, s->plan.path, err, c);
    } else {
        code = slot_limit_show(s, c);
    }
    slot_session_close(s, c);
    return code;
}

/* ---- owners and waiters ---------------------------------------------------------------------- */

/* The list: owners first, then waiters. A waiter's slot has no token. */
struct slot_listing {
    const clave_slots_view *view;
    const clave_participant_list *waiters; /* NULL: waiters are not shown */
};

static size_t slot_listing_count(const struct slot_listing *l)
{
    return l->view->n + (l->waiters ? l->waiters->n : 0);
}

static clave_slot slot_listing_at(const struct slot_listing *l, size_t i)
{
    if (i < l->view->n)
        return l->view->slots[i];
    const clave_participant *p = &l->waiters->list[i - l->view->n];
    return (clave_slot){
        .id = p->identity.name, .host = p->identity.host, .node = p->node, .since = p->stat.ctime};
}

static const char *slot_listing_id(const clave_slot *slot)
{
    return slot->id ? slot->id : clave__path_name(slot->node); /* of a node that is not a slot */
}

static void slot_list_json(const struct slot_listing *l)
{
    for (size_t i = 0; i < slot_listing_count(l); i++) {
        clave_slot slot = slot_listing_at(l, i);
        char since[TIME_TEXT_CAP];
        struct json j;
        json_begin(&j, stdout);
        clave__json_string(&j, "id", slot.id);
        clave__json_string(&j, "host", slot.host);
        clave__json_string(&j, "since", time_text(slot.since, since));
        if (slot.token != 0)
            clave__json_int(&j, "token", slot.token);
        else
            clave__json_string(&j, "token", NULL);
        clave__json_string(&j, "by", slot.by);
        clave__json_string(&j, "reason", slot.reason);
        clave__json_string(&j, "node", slot.node);
        if (l->waiters)
            clave__json_bool(&j, "waits", i >= l->view->n);
        json_end(&j);
    }
}

/* The form for scripts: the ids and, if waiters are shown, a word before each that says whether it
 * owns or waits. */
static void slot_list_plain(const struct slot_listing *l)
{
    for (size_t i = 0; i < slot_listing_count(l); i++) {
        clave_slot slot = slot_listing_at(l, i);
        if (i < l->view->n && !slot.id)
            continue; /* a message on standard error mentions it */
        if (l->waiters)
            fputs(i < l->view->n ? "owns " : "waits ", stdout);
        format_text(stdout, slot_listing_id(&slot));
        putchar('\n');
    }
}

static void slot_list_line(const struct slot_listing *l, size_t i, int64_t now)
{
    clave_slot slot = slot_listing_at(l, i);
    char id[SLOT_COLUMN_CAP], host[SLOT_COLUMN_CAP], by[SLOT_COLUMN_CAP];
    char reason[PARTICIPANT_TEXT_CAP], since[TIME_TEXT_CAP], kept[AGE_CAP];
    printf("%-36s %-16s %-24s %6s %s%s %s\n",
           participant_text_column(slot_listing_id(&slot), false, id, sizeof id),
           participant_text_column(slot.host, false, host, sizeof host),
           time_text(slot.since, since), age_format(now - slot.since, kept),
           i < l->view->n ? "" : "(waits) ", participant_text_column(slot.by, false, by, sizeof by),
           participant_text_column(slot.reason, true, reason, sizeof reason));
}

static void slot_list_table(const struct slot_listing *l)
{
    const clave_slot *b = &l->view->broken;
    char id[PARTICIPANT_TEXT_CAP], reason[PARTICIPANT_TEXT_CAP];
    char by[SLOT_COLUMN_CAP], since[TIME_TEXT_CAP];
    int64_t now = clave__clock_wall();
    printf("%zu owned, ", l->view->n);
    if (l->view->limit >= 0)
        printf("the limit is %" PRId64 "\n", l->view->limit);
    else
        puts("there is no limit");
    if (slot_listing_count(l) > 0)
        printf("%-36s %-16s %-24s %6s %s %s\n", "ID", "HOST", "SINCE", "KEPT", "BY", "REASON");
    for (size_t i = 0; i < slot_listing_count(l); i++)
        slot_list_line(l, i, now);
    if (b->id)
        printf("broken last: %s, %s, by %s: %s\n", participant_text_printable(b->id, id, sizeof id),
               time_text(b->since, since), participant_text_column(b->by, false, by, sizeof by),
               b->reason ? participant_text_printable(b->reason, reason, sizeof reason) : "-");
}

/* Mentions what keeps takes waiting and does not end when somebody gives back a slot. */
static void slot_list_say_faults(const struct slot_command *s, const clave_slots_view *view)
{
    if (view->limit == CLAVE_SLOTS_LIMIT_BAD)
        (void)run_slot_bad_limit(s->o, s->plan.path);
    for (size_t i = 0; i < view->n; i++)
        if (!view->slots[i].id)
            run_slot_say_strange(s->o, s->plan.path, view->slots[i].node);
}

static clave_err slot_list_read_waiters(const struct slot_command *s, clave_client *c,
                                        clave_participant_list **out)
{
    char *queue = clave__path_child(NULL, s->plan.path, "queue");
    if (!queue)
        return CLAVE_ENOMEM;
    clave_err err = clave_participants(c, clave_async_participants, queue, s->o->timeout_ms, out);
    free(queue);
    return err;
}

static int slot_list_on(const struct slot_command *s, clave_client *c)
{
    clave_slots_view *view;
    clave_participant_list *waiters = NULL;
    int code = EXIT_OK;
    clave_err err = clave_slots_list(c, s->plan.path, s->o->timeout_ms, &view);
    if (err == CLAVE_OK && s->waiters)
        err = slot_list_read_waiters(s, c, &waiters);
    const struct slot_listing l = {view, waiters};
    if (err != CLAVE_OK)
        code = diag_err(s->o, s->plan.path, err, c);
    else if (view->limit == CLAVE_SLOTS_LIMIT_NONE && view->n == 0)
        code = slot_list_no_limit(s);
    else if (s->o->json)
        slot_list_json(&l);
    else if (isatty(STDOUT_FILENO))
        slot_list_table(&l);
    else
        slot_list_plain(&l);
    if (err == CLAVE_OK)
        slot_list_say_faults(s, view);
    clave_participant_list_free(waiters);
    clave_slots_view_free(view);
    return code;
}

int slot_list(struct slot_command *s)
{
    clave_client *c;
    int code = connect_open(s->o, NULL, &c);
    if (code == EXIT_OK) {
        code = slot_list_on(s, c);
        connect_close(c);
    }
    return code;
}
