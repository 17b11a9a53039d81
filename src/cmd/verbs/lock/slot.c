/* slot.c - `clave slot`: parses the flags, finds out which part is meant, and carries it out. A
 * part that needs a server opens one session, with a struct clave_slots on it.
 *
 * A signal ends a take that waits: its place in the queue is deleted at once, not when the session
 * expires. A give that uses the machine's id first checks that the slot was taken by this host,
 * since cloned machines share their id. A run holds two things while its command runs: the lock of
 * the runs of its id, which is ephemeral, and the slot, which is not
 * (cmd/run/stages/run_slot.h). */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/hash/sha1.h"
#include "base/path.h"
#include "clave/participants.h"
#include "clave/slots.h"
#include "cmd/cli/acl_text.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/format.h"
#include "cmd/cli/json.h"
#include "cmd/cli/participant.h"
#include "cmd/cli/shell_command.h"
#include "cmd/cli/suggestion.h"
#include "cmd/run/run_flags.h"
#include "cmd/run/runner.h"
#include "cmd/run/stages/run_slot.h"
#include "recipe/slots/slot_node.h"
#include "runtime/blocking/call.h"
#include "runtime/clock.h"

enum { SLOT_ID_TEXT = 37, SLOT_HOST_CAP = 256 };

struct slot_command {
    struct options *o;
    struct run_slot_plan plan; /* path, id, waiting time, and whether to keep the slot */
    const char *limit;         /* the argument N; NULL: not given */
    char *const *argv;         /* command of `run`; NULL: none */
    int64_t token;             /* 0: any token */
    bool waiters, quiet;
    struct acl_list acl;
    struct health_plan health;
    enum sd_notify_when notify;
    struct command_notify_plan command_notify;
    struct run_slot_room room; /* written on the loop's thread while a take waits */
    clave_slots *slots;        /* set from slot_session_open to slot_session_close */
    atomic_int signal;         /* signal that ended a take; 0: none */
    char machine_id[SLOT_ID_TEXT];
    char host[SLOT_HOST_CAP];
};

/* ---- the session ---------------------------------------------------------------------------- */

/* Called on the loop's thread. */
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

/* Opens a session and makes the slots. EXIT_OK, or the exit code after a message; then nothing is
 * left to close. */
static int slot_session_open(struct slot_command *s, clave_client **c)
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

static void slot_session_close(struct slot_command *s, clave_client *c)
{
    clave_slots_free(s->slots);
    connect_close(c);
}

/* ---- the id of this machine ----------------------------------------------------------------- */

/* The machine id (machine-id(5)) is confidential. So the id for slots is the HMAC (RFC 2104, with
 * SHA-1) of our name with the machine id as the key, written as a UUID; the machine id cannot be
 * computed from it. */
enum { MACHINE_ID_DIGITS = 32, KEY_LEN = 16 };

static const char slot_id_file[] = "/etc/machine-id";

static void slot_machine_id_derive(const uint8_t key[KEY_LEN], uint8_t out[SHA1_LEN])
{
    static const char name[] = "clave slot";
    struct hmac_key k;
    clave__hmac_take_key(&k, key, KEY_LEN);
    clave__hmac(&k, name, sizeof name - 1, out);
    out[6] = (uint8_t)((out[6] & 0x0f) | 0x50); /* mark it as a UUID made from a name, RFC 9562 */
    out[8] = (uint8_t)((out[8] & 0x3f) | 0x80);
}

static bool slot_machine_id_parse(const char text[MACHINE_ID_DIGITS + 1], uint8_t key[KEY_LEN])
{
    if (strspn(text, "0123456789abcdefABCDEF") < MACHINE_ID_DIGITS)
        return false;
    unsigned any = 0;
    for (size_t i = 0; i < KEY_LEN; i++) {
        unsigned byte = 0;
        sscanf(text + 2 * i, "%2x", &byte);
        key[i] = (uint8_t)byte;
        any |= byte;
    }
    return any != 0;
}

/* Reads the machine id. NULL, or the reason why there is none. */
static const char *slot_machine_id_read(uint8_t key[KEY_LEN])
{
    char text[MACHINE_ID_DIGITS + 1] = "";
    FILE *f = fopen(slot_id_file, "re");
    if (!f)
        return strerror(errno);
    size_t n = fread(text, 1, MACHINE_ID_DIGITS, f);
    fclose(f);
    text[n] = '\0';
    return slot_machine_id_parse(text, key) ? NULL : "it contains no machine id";
}

/* An id for the slots of this machine. false, after a message: this machine has no machine id. */
static bool slot_id_of_machine(const struct options *o, char out[SLOT_ID_TEXT])
{
    uint8_t key[KEY_LEN], id[SHA1_LEN];
    const char *fault = slot_machine_id_read(key);
    if (fault) {
        diag_end(o, NULL, EXIT_USAGE,
                 "%s: %s: name an id with --id, or create the file with systemd-machine-id-setup",
                 slot_id_file, fault);
        return false;
    }
    slot_machine_id_derive(key, id);
    char *at = out;
    for (size_t i = 0; i < KEY_LEN; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        at += snprintf(at, 3, "%02x", id[i]);
    }
    return true;
}

/* ---- take: the signal that ends it ----------------------------------------------------------- */

/* A thread that waits for a signal, since the take blocks the main thread. A signal that arrives
 * before the take begins is noticed when the take has to wait. */
struct slot_take_signals {
    int fd;
    struct slot_command *s;
    pthread_t thread;
};

static void *slot_take_await_signal(void *arg)
{
    struct slot_take_signals *w = arg;
    struct signalfd_siginfo info;
    if (read(w->fd, &info, sizeof info) != (ssize_t)sizeof info)
        return NULL;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    atomic_store(&w->s->signal, (int)info.ssi_signo);
    clave_slots_cancel(w->s->slots);
    return NULL;
}

/* false: the thread could not be started, so signals will not end the take. */
static bool slot_take_begin_signals(struct slot_take_signals *w, struct slot_command *s)
{
    *w = (struct slot_take_signals){.fd = inheritance_open_signals(0), .s = s};
    return w->fd >= 0 && pthread_create(&w->thread, NULL, slot_take_await_signal, w) == 0;
}

static void slot_take_end_signals(const struct slot_take_signals *w)
{
    pthread_cancel(w->thread); /* read(2) is a cancellation point */
    pthread_join(w->thread, NULL);
    close(w->fd);
}

/* ---- take ----------------------------------------------------------------------------------- */

static void slot_take_show(const struct slot_command *s, const clave_slot *slot, bool taken)
{
    char since[TIME_TEXT_CAP];
    struct json j;
    if (!s->o->json) {
        printf("%lld\n", (long long)slot->token);
        return;
    }
    json_begin(&j, stdout);
    clave__json_string(&j, "path", s->plan.path);
    clave__json_string(&j, "id", slot->id);
    clave__json_bool(&j, "taken", taken);
    clave__json_int(&j, "token", slot->token);
    clave__json_string(&j, "node", slot->node);
    clave__json_string(&j, "host", slot->host);
    clave__json_string(&j, "since", time_text(slot->since, since));
    clave__json_string(&j, "by", slot->by);
    clave__json_string(&j, "reason", slot->reason);
    json_end(&j);
}

static int slot_take_owned(const struct slot_command *s, const clave_slot *slot, bool taken)
{
    if (!taken && !run_slot_is_ours(s->o, &s->plan, slot))
        return EXIT_REFUSED;
    if (!taken && !s->quiet)
        run_slot_say_owned(s->o, s->plan.path, slot);
    slot_take_show(s, slot, taken);
    return EXIT_OK;
}

static int slot_take_on(struct slot_command *s, clave_client *c)
{
    struct slot_take_signals signals;
    struct client_fault fault;
    clave_slot *slot;
    bool taken = false, watched = slot_take_begin_signals(&signals, s);
    clave_err err = clave_slots_take(s->slots, &s->plan.as, s->plan.wait_ms, &slot, &taken);
    if (watched)
        slot_take_end_signals(&signals);
    if (err == CLAVE_ECANCELED && atomic_load(&s->signal) != 0)
        return 128 + atomic_load(&s->signal);
    if (err != CLAVE_OK) {
        clave__blocking_fault(c, &fault);
        return run_slot_not_taken(s->o, s->plan.path, err, &s->room, &fault);
    }
    int code = slot_take_owned(s, slot, taken);
    clave_slot_free(slot);
    return code;
}

static int slot_take(struct slot_command *s)
{
    clave_client *c;
    int code = slot_session_open(s, &c);
    if (code != EXIT_OK)
        return code;
    code = slot_take_on(s, c);
    slot_session_close(s, c);
    return code;
}

/* ---- give and break ------------------------------------------------------------------------- */

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

/* The node of the slot with this id, or a node with just this name; NULL: there is none. */
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

/* Other clients have created nodes below the slot. */
static int slot_give_not_empty(const struct slot_command *s)
{
    char hint[HINT_CAP];
    char *owners = clave__path_child(NULL, s->plan.path, "owners");
    int code = diag_end(
        s->o, s->plan.path, exit_code_of(CLAVE_ENOTEMPTY),
        "other clients have created nodes below it; to see them: %s",
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

/* EXIT_OK: if there is a slot of this id, this machine took it, and *token is its token unless one
 * was given. */
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

static int slot_give(struct slot_command *s)
{
    clave_client *c;
    int code = slot_session_open(s, &c);
    if (code != EXIT_OK)
        return code;
    code = slot_give_on(s, c);
    slot_session_close(s, c);
    return code;
}

static int slot_break(struct slot_command *s)
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

/* ---- list and limit ------------------------------------------------------------------------- */

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

static int slot_limit(struct slot_command *s)
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

static int slot_list(struct slot_command *s)
{
    clave_client *c;
    int code = connect_open(s->o, NULL, &c);
    if (code == EXIT_OK) {
        code = slot_list_on(s, c);
        connect_close(c);
    }
    return code;
}

/* ---- run ------------------------------------------------------------------------------------ */

/* PATH/runs/<id>, with the id written as in the names of slots. NULL: no memory. */
static char *slot_run_path(const struct slot_command *s)
{
    char name[SLOT_NAME_CAP];
    clave__slot_name_escape(name, s->plan.as.id);
    char *runs = clave__path_child(NULL, s->plan.path, "runs");
    char *path = runs ? clave__path_child(NULL, runs, name) : NULL;
    free(runs);
    return path;
}

static int slot_run(struct slot_command *s)
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
                         .health = s->health,
                         .notify = s->notify,
                         .command_notify = s->command_notify,
                         .stages.slot = &s->plan};
    char *path = slot_run_path(s), *owners = clave__path_child(NULL, s->plan.path, "owners");
    int code = health_plan_check(&p.health, s->o, p.on_lost);
    if (code == EXIT_OK)
        code = command_notify_check(&p);
    nested_make_owner(p.owner);
    p.path = path;
    p.holders = owners;
    if (code == EXIT_OK)
        code = (p.connect = connect_dial(s->o)) ? EXIT_OK : EXIT_USAGE;
    if (!path || !owners)
        code = diag_err(s->o, s->plan.path, CLAVE_ENOMEM, NULL);
    else if (code == EXIT_OK)
        code = runner_run(&p, NULL);
    free(path);
    free(owners);
    return code;
}

/* ---- the parts ------------------------------------------------------------------------------ */

enum {
    SLOT_ID = RUN_FLAG_OWN,
    SLOT_BY,
    SLOT_REASON,
    SLOT_TOKEN,
    SLOT_KEEP,
    SLOT_WAITERS,
    SLOT_ACL
};

/* Bits for the flags that were given; -w and -n share one. */
enum { BIT_WAIT = 1, BIT_ID = 2, BIT_BY = 4, BIT_REASON = 8, BIT_TOKEN = 16, BIT_KEEP = 32 };
enum { BIT_WAITERS = 64, BIT_ACL = 128, BIT_QUIET = 256, BIT_WORK = 512 };

struct slot_part {
    const char *name;
    int least, most; /* number of arguments after the name; -1: any */
    const char *args;
    unsigned flags; /* flags that the part accepts */
    int (*run)(struct slot_command *s);
};

static const struct slot_part parts[] = {
    {"limit", 1, 2, "PATH [N]", BIT_ACL, slot_limit},
    {"take", 1, 1, "PATH", BIT_WAIT | BIT_ID | BIT_BY | BIT_REASON | BIT_ACL | BIT_QUIET,
     slot_take},
    {"give", 1, 1, "PATH", BIT_ID | BIT_TOKEN | BIT_QUIET, slot_give},
    {"list", 1, 1, "PATH", BIT_WAITERS, slot_list},
    {"break", 2, 2, "PATH ID", BIT_BY | BIT_REASON | BIT_TOKEN, slot_break},
    {"run", 2, -1, "PATH -- COMMAND...",
     BIT_WAIT | BIT_ID | BIT_BY | BIT_REASON | BIT_KEEP | BIT_ACL | BIT_QUIET | BIT_WORK, slot_run},
};
enum { PARTS = sizeof parts / sizeof *parts };

/* ---- flags ---------------------------------------------------------------------------------- */

static bool slot_take_keep(struct slot_command *s)
{
    static const char *const words[] = {
        [SLOT_KEEP_NEVER] = "never", [SLOT_KEEP_FAILED] = "failed", [SLOT_KEEP_ALWAYS] = "always"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(s->o->value, words[i]) == 0) {
            s->plan.keep = (enum slot_keep)i;
            return true;
        }
    }
    diag_usage(s->o, "--keep '%s': expected never, failed or always", s->o->value);
    return false;
}

static bool slot_take_acl(struct slot_command *s)
{
    const char *fault = "a slot's nodes have no parent to copy it from: give the list";
    acl_fini(&s->acl);
    s->acl = (struct acl_list){0};
    if (acl_parse(s->o->value, &s->acl, &fault) && !s->acl.of_parent)
        return true;
    diag_usage(s->o, "--acl '%s': %s", s->o->value, fault);
    return false;
}

/* false, after a message: the flag is invalid. */
static bool slot_take_flag(struct slot_command *s, int id, unsigned *given)
{
    static const unsigned bits[] = {BIT_ID,   BIT_BY,      BIT_REASON, BIT_TOKEN,
                                    BIT_KEEP, BIT_WAITERS, BIT_ACL};
    struct options *o = s->o;
    if (id >= RUN_FLAG_HEALTH && id <= RUN_FLAG_HEALTH_GRACE) {
        *given |= BIT_WORK;
        return health_plan_take_flag(&s->health, o, id);
    }
    if (id >= RUN_FLAG_NOTIFY && id <= RUN_FLAG_WATCHDOG_SEC) {
        *given |= BIT_WORK;
        return id == RUN_FLAG_NOTIFY ? run_flags_take_notify(o, &s->notify)
                                     : command_notify_take_flag(&s->command_notify, o, id);
    }
    if (id >= SLOT_ID)
        *given |= bits[id - SLOT_ID];
    else
        *given |= id == 'q' ? BIT_QUIET : BIT_WAIT;
    switch (id) {
    case 'w':
        return options_duration(o, "wait", 0, RUN_FLAG_YEAR_MS, &s->plan.wait_ms);
    case 'n':
        s->plan.wait_ms = LOCK_TRY;
        return true;
    case 'q':
        s->quiet = true;
        return true;
    case SLOT_ID:
        s->plan.as.id = o->value;
        return true;
    case SLOT_BY:
        s->plan.as.by = o->value;
        return true;
    case SLOT_REASON:
        s->plan.as.reason = o->value;
        return true;
    case SLOT_TOKEN:
        return options_number(o, "token", 1, INT64_MAX, &s->token);
    case SLOT_KEEP:
        return slot_take_keep(s);
    case SLOT_WAITERS:
        s->waiters = true;
        return true;
    default:
        return slot_take_acl(s);
    }
}

/* ---- arguments ------------------------------------------------------------------------------ */

/* NULL, after a message: no part fits the arguments and flags. */
static const struct slot_part *slot_find_part(struct slot_command *s, unsigned given)
{
    static const char *const names[] = {"limit", "take", "give", "list", "break", "run", NULL};
    struct options *o = s->o;
    char instead[SUGGESTION_CAP];
    const struct slot_part *p = parts;
    while (p < parts + PARTS && strcmp(o->argv[0], p->name) != 0)
        p++;
    int n = o->argc - 1;
    if (p == parts + PARTS)
        diag_usage(o, "'%s': expected limit, take, give, list, break or run%s", o->argv[0],
                   suggestion_for_word(names, o->argv[0], instead));
    else if (n < p->least || (p->most >= 0 && n > p->most))
        diag_usage(o, "%s takes %s", p->name, p->args);
    else if (given & ~p->flags)
        diag_usage(o, "%s: a flag is given that it does not take", p->name);
    else
        return p;
    return NULL;
}

/* Finds the id to use. Returns EXIT_OK, or an exit code after a message. */
static int slot_find_id(struct slot_command *s, const struct slot_part *p)
{
    char shown[PARTICIPANT_TEXT_CAP];
    clave_slot *as = &s->plan.as;
    if (p->run == slot_break)
        as->id = s->o->argv[2];
    if (p->run == slot_limit || p->run == slot_list)
        return EXIT_OK;
    if (!as->id) {
        s->plan.id_defaulted = true;
        as->id = s->machine_id;
        return slot_id_of_machine(s->o, s->machine_id) ? EXIT_OK : EXIT_USAGE;
    }
    if (!clave__slot_id_is_valid(as->id))
        return diag_usage(
            s->o, "the id '%s' must have 1 to %d bytes of UTF-8, without control characters",
            participant_text_printable(as->id, shown, sizeof shown), CLAVE_SLOT_ID_MAX);
    return EXIT_OK;
}

static int slot_check_texts(struct slot_command *s, const struct slot_part *p)
{
    const clave_slot *as = &s->plan.as;
    if (!clave__slot_text_is_valid(as->by) || !clave__slot_text_is_valid(as->reason))
        return diag_usage(s->o,
                          "--by and --reason may have at most %d bytes of UTF-8, without control "
                          "characters",
                          CLAVE_SLOT_TEXT_MAX);
    if (p->run == slot_break && (!as->reason || !*as->reason))
        return diag_usage(s->o, "break needs --reason TEXT, which is recorded");
    return acl_has_identity(s->o, &s->acl) ? EXIT_OK : EXIT_PATH;
}

static int slot_do(struct slot_command *s, unsigned given)
{
    struct options *o = s->o;
    const struct slot_part *p = slot_find_part(s, given);
    if (!p)
        return EXIT_USAGE;
    s->plan.path = o->argv[1];
    s->limit = p->run == slot_limit ? o->argv[2] : NULL;
    s->argv = p->run == slot_run ? o->argv + 2 : NULL;
    gethostname(s->host, sizeof s->host - 1);
    s->plan.as.host = *s->host ? s->host : NULL;
    int code = connect_path_ok(o, s->plan.path) ? slot_find_id(s, p) : EXIT_PATH;
    if (code == EXIT_OK)
        code = slot_check_texts(s, p);
    return code == EXIT_OK ? p->run(s) : code;
}

static int run_slot(struct options *o, int argc, char **argv)
{
    struct slot_command s = {.o = o,
                             .plan = {.wait_ms = LOCK_FOR_EVER, .keep = SLOT_KEEP_FAILED},
                             .health = HEALTH_PLAN_INIT};
    unsigned given = 0;
    int id, code = EXIT_USAGE;
    bool taken = true;
    while (taken && (id = options_next(o, argc, argv)) > 0)
        taken = slot_take_flag(&s, id, &given);
    if (taken && id == OPTIONS_STOP)
        code = o->status;
    else if (taken && options_args(o, 2, -1))
        code = slot_do(&s, given);
    acl_fini(&s.acl);
    return code;
}

static const struct flag flags[] = {
    {'w', "wait", "DURATION", "take, run: give up after this long [wait forever]"},
    {'n', "no-wait", NULL, "take, run: only if a slot is free now"},
    {SLOT_ID, "id", "ID", "take, give, run: the owner's id [this machine's]"},
    {SLOT_BY, "by", "WHO", "take, run, break: the person or role"},
    {SLOT_REASON, "reason", "TEXT", "take, run: what it is for; break: why"},
    {SLOT_TOKEN, "token", "TOKEN", "give, break: only the slot of this token"},
    {SLOT_KEEP, "keep", "WHEN", "run: keep the slot never, failed or always [failed]"},
    {SLOT_WAITERS, "waiters", NULL, "list: the ids that wait, too"},
    {SLOT_ACL, "acl", "ACL", "limit, take, run: an access list: see 'clave create' [open]"},
    {'q', "quiet", NULL, "take, give, run: do not report a wait, or that nothing changed"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_slot = {
    .name = "slot",
    .args = "limit|take|give|list|break|run PATH [ARGUMENT]...",
    .summary = "Own one of N slots by an id, until it is given back",
    .text =
        "A slot belongs to an id, not to a session: it survives the process that took it, its\n"
        "machine's reboot and the servers' restart. It never times out.\n"
        "\n"
        "limit PATH [N]        set how many may be owned, and create PATH; print it\n"
        "take PATH             own a slot and print its token, even if the id owns one already\n"
        "give PATH             give the slot back; no error if the id owns none\n"
        "list PATH             print the ids that own a slot, the oldest first\n"
        "break PATH ID         take the slot away from an id, and record why (--reason)\n"
        "run PATH -- COMMAND   take, run the command, give when it ends with 0\n"
        "\n"
        "An id has 1 to 128 bytes. Exit codes: 66 no limit is set, or break found no slot; 73\n"
        "the slot of this machine's id was taken by another host; 75 not in time, or run: a\n"
        "command of this id is running; 80 run: unhealthy; otherwise the command's, after run.\n"
        "If an answer was lost, the slot may have been taken or given in spite of exit code 69\n"
        "or 75: the message says so, and list shows it.\n",
    .flags = flags,
    .more_flags = run_flags_of,
    .shares = RUN_SLOT,
    .max_args = -1,
    .runs_command = true,
    .run = run_slot,
};
