/* lock_wait_messages.c - what lock_messages.h says while a lock is waited for, and when it was not
 * acquired. Called by runner_acquire.c and wait_progress.c. Each event names the path. */
#include <stdio.h>

#include "base/duration.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/participant_json.h"
#include "cmd/cli/participant_text.h"
#include "cmd/cli/shell_command.h"
#include "cmd/run/lock_message_json.h"
#include "cmd/run/lock_messages.h"

enum { LACK_CAP = PARTICIPANT_TEXT_CAP + 128 };
enum { TRACE_AT = 3, TRACE_DIGITS = 32 }; /* in a traceparent */
enum { HOLDER_CAP = PARTICIPANT_TEXT_CAP + 64 };

static void lock_message_put_holder(const struct run_plan *p, struct json *j,
                                    const clave_participant *holder)
{
    clave__json_open(j, p->elects ? "leader" : "holder", '{');
    clave__json_int(j, "token", holder->stat.czxid);
    participant_json_identity(j, &holder->identity);
    clave__json_close(j, '}');
}

/* "held by web1 pid 4711 (nightly), trace 4bf9..." */
static const char *lock_message_holder_text(const struct run_plan *p,
                                            const clave_participant *holder, char out[HOLDER_CAP])
{
    char who[PARTICIPANT_TEXT_CAP];
    const char *trace = holder ? holder->identity.traceparent : NULL;
    snprintf(out, HOLDER_CAP, "%s %s%s%.*s", lock_message_words(p)->held_by,
             holder ? participant_text_format(&holder->identity, who, sizeof who) : "another",
             trace ? ", trace " : "", TRACE_DIGITS, trace ? trace + TRACE_AT : "");
    return out;
}

void lock_message_waiting(const struct run_plan *p, size_t ahead, const clave_participant *holder)
{
    struct json j;
    char who[HOLDER_CAP];
    if (p->o->json) {
        lock_message_begin(p, &j, "waiting");
        clave__json_int(&j, "ahead", (int64_t)ahead);
        if (holder)
            lock_message_put_holder(p, &j, holder);
        lock_message_end(&j);
    } else if (holder) {
        diag(p->o, "%s: waiting, %zu ahead; %s", p->path, ahead,
             lock_message_holder_text(p, holder, who));
    } else {
        diag(p->o, "%s: waiting, %zu ahead", p->path, ahead);
    }
}

/* What is missing so that nobody gets a lease. */
static const char *lock_message_lack(const struct run_plan *p, char out[LACK_CAP])
{
    char path[PARTICIPANT_TEXT_CAP];
    snprintf(out, LACK_CAP,
             "%s does not hold a number of leases (four bytes, big-endian, as Curator's "
             "SharedCount)",
             participant_text_printable(p->limit_path, path, sizeof path));
    return out;
}

void lock_message_no_limit(const struct run_plan *p, size_t ahead)
{
    struct json j;
    char why[LACK_CAP];
    if (p->o->json) {
        lock_message_begin(p, &j, "waiting");
        clave__json_int(&j, "ahead", (int64_t)ahead);
        clave__json_string(&j, "why", lock_message_lack(p, why));
        lock_message_end(&j);
    } else {
        diag(p->o, "%s: waiting: %s", p->path, lock_message_lack(p, why));
    }
}

void lock_message_put_off(const struct run_plan *p)
{
    struct json j;
    if (p->o->json) {
        lock_message_begin(p, &j, "waiting");
        clave__json_string(&j, "why", LOCK_MESSAGE_PUT_OFF);
        lock_message_end(&j);
    } else {
        diag(p->o, "%s: waiting: %s", p->path, LOCK_MESSAGE_PUT_OFF);
    }
}

void lock_message_connecting(const struct run_plan *p, const char *fault)
{
    struct json j;
    lock_message_begin(p, &j, "connecting");
    clave__json_string(&j, "why", fault);
    lock_message_end(&j);
}

void lock_message_away(const struct run_plan *p, const char *fault)
{
    struct json j;
    if (p->o->json) {
        lock_message_begin(p, &j, "suspended");
        clave__json_string(&j, "why", fault);
        lock_message_end(&j);
    } else {
        diag(p->o, "%s: waiting, but no server is answering: %s", p->path, fault);
    }
}

/* The number of leases is not even read while the server gives nobody a place. */
static const char *lock_message_obstacle_text(const struct run_plan *p,
                                              const struct lock_obstacle *why, char out[LACK_CAP])
{
    if (why->away)
        return why->away;
    if (why->put_off)
        return LOCK_MESSAGE_PUT_OFF;
    return why->limit_missing ? lock_message_lack(p, out) : NULL;
}

void lock_message_not_acquired(const struct run_plan *p, int64_t waited_ms,
                               const struct lock_obstacle *why)
{
    struct json j;
    char age[AGE_CAP], asked_for[DURATION_CAP], out[LACK_CAP], who[HOLDER_CAP], hint[HINT_CAP];
    const char *text = lock_message_obstacle_text(p, why, out);
    const char *within =
        p->wait_ms > 0 ? clave__duration_format(p->wait_ms, asked_for) : age_format(waited_ms, age);
    if (p->o->json) {
        lock_message_begin(p, &j, lock_message_words(p)->not_acquired);
        clave__json_int(&j, "waited_ms", waited_ms);
        if (text)
            clave__json_string(&j, "why", text);
        if (why->holder)
            lock_message_put_holder(p, &j, why->holder);
        lock_message_end(&j);
    } else if (p->quiet) {
        return;
    } else if (text) {
        diag(p->o, "%s: not %s within %s%s: %s", p->path, lock_message_words(p)->acquired, within,
             why->away ? ", no server is answering" : "", text);
    } else if (p->wait_ms == LOCK_TRY) {
        diag(p->o, "%s: %s; to see the queue: %s", p->path,
             lock_message_holder_text(p, why->holder, who),
             hint_command(p->o, (const char *const[]){lock_message_words(p)->who, p->path, NULL},
                          hint));
    } else {
        diag(p->o, "%s: not %s within %s; %s; to see the queue: %s", p->path,
             lock_message_words(p)->acquired, within, lock_message_holder_text(p, why->holder, who),
             hint_command(p->o, (const char *const[]){lock_message_words(p)->who, p->path, NULL},
                          hint));
    }
}
