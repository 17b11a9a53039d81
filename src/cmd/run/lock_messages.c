/* lock_messages.c - formats the messages and JSON events of lock_messages.h. runner.c, child.c,
 * run_stages.c and wait_progress.c call it. Each event is written as one piece, and names the path.
 */
#include "cmd/run/lock_messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/format.h"
#include "cmd/cli/hint.h"
#include "cmd/cli/json.h"
#include "cmd/cli/local_warning.h"
#include "cmd/cli/participant_text.h"
#include "cmd/cli/time_text.h"
#include "runtime/clock.h"

enum { LACK_CAP = PARTICIPANT_TEXT_CAP + 128 };
enum { TEXT_CAP = HOLDOUT_TEXT_CAP + 512 };
enum { TRACE_AT = 3, TRACE_DIGITS = 32 }; /* in a traceparent */
enum { HOLDER_CAP = PARTICIPANT_TEXT_CAP + 64 };

/* The words that differ between a lock and a leadership. */
struct lock_message_words {
    const char *acquired, *not_acquired; /* events, and verbs */
    const char *held_by, *still, *it, *who, *asked, *hold, *next, *before;
};

static const struct lock_message_words *lock_message_words(const struct run_plan *p)
{
    static const struct lock_message_words lock = {"acquired",
                                                   "not-acquired",
                                                   "held by",
                                                   "still held",
                                                   "the lock",
                                                   "locks",
                                                   "another participant asks for it",
                                                   "hold",
                                                   "holder",
                                                   "acquired; the previous holder"};
    static const struct lock_message_words leadership = {
        "elected",    "not-elected",     "led by", "still leading", "the leadership",
        "candidates", "asked to resign", "term",   "leader",        "elected; the previous leader"};
    return p->elects ? &leadership : &lock;
}

/* Standard output is the command's. */
static void lock_message_begin(const struct run_plan *p, struct json *j, const char *event)
{
    flockfile(stderr);
    char when[TIME_TEXT_CAP];
    json_begin(j, stderr);
    clave__json_string(j, "time", time_text(clave__clock_wall(), when));
    clave__json_string(j, "event", event);
    clave__json_string(j, "path", p->path);
}

static void lock_message_end(struct json *j)
{
    json_end(j);
    funlockfile(stderr);
}

static void lock_message_put_holder(const struct run_plan *p, struct json *j,
                                    const clave_participant *holder)
{
    clave__json_open(j, p->elects ? "leader" : "holder", '{');
    clave__json_int(j, "token", holder->stat.czxid);
    format_identity(j, &holder->identity);
    clave__json_close(j, '}');
}

static void lock_message_put_identity(struct json *j, const char *key, const clave_identity *id)
{
    clave__json_open(j, key, '{');
    format_identity(j, id);
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

void lock_message_parent_ended(const struct run_plan *p, int64_t waited_ms)
{
    struct json j;
    char text[PARENT_WATCH_TEXT_CAP];
    if (!p->o->json) {
        diag(p->o, "%s: not %s: %s", p->path, lock_message_words(p)->acquired,
             parent_watch_text(&p->parent, text));
        return;
    }
    lock_message_begin(p, &j, lock_message_words(p)->not_acquired);
    clave__json_int(&j, "waited_ms", waited_ms);
    clave__json_string(&j, "why", parent_watch_text(&p->parent, text));
    lock_message_end(&j);
}

void lock_message_warning(const struct run_plan *p, const char *msg)
{
    struct json j;
    if (!p->o->json) {
        diag(p->o, "%s", msg);
        return;
    }
    lock_message_begin(p, &j, "warning");
    clave__json_string(&j, "text", msg);
    lock_message_end(&j);
}

void lock_message_deadlock(const struct run_plan *p, const char *text)
{
    struct json j;
    char safe[4096];
    if (p->o->json) {
        lock_message_begin(p, &j, "deadlock");
        clave__json_string(&j, "text", text);
        lock_message_end(&j);
    } else {
        diag(p->o, "%s: given up to end a deadlock: %s", p->path,
             text ? participant_text_printable(text, safe, sizeof safe)
                  : "out of memory for the details");
    }
}

int lock_message_unauthorised(const struct run_plan *p)
{
    static const struct client_fault fault = {
        .text = "to queue there, a client must be allowed to create nodes below it and to read the "
                "node before its own (its --acl)",
        .err = CLAVE_ENOAUTH};
    return diag_fault(p->o, p->path, CLAVE_ENOAUTH, &fault);
}

void lock_message_nested(const struct run_plan *p, const clave_participant *outer)
{
    struct json j;
    char who[PARTICIPANT_TEXT_CAP], text[PARTICIPANT_TEXT_CAP + 128];
    snprintf(text, sizeof text,
             "held by the 'clave %s' that this one runs under, %s: it would wait forever",
             p->o->verb->name, participant_text_format(&outer->identity, who, sizeof who));
    if (p->o->json) {
        lock_message_begin(p, &j, "deadlock");
        clave__json_string(&j, "text", text);
        lock_message_end(&j);
    } else {
        diag(p->o, "%s: %s", p->path, text);
    }
}

void lock_message_acquired(const struct run_plan *p, const struct grant_facts *g, int64_t waited_ms)
{
    struct json j;
    char age[AGE_CAP];
    if (!p->o->json) {
        diag_note(p->o, "%s: %s after %s, token %" PRId64 ", session 0x%" PRIx64, p->path,
                  lock_message_words(p)->acquired, age_format(waited_ms, age), g->token,
                  (uint64_t)g->session_id);
        local_tell_acquired(p->o, p->path, p->elects, g->session_id);
        return;
    }
    lock_message_begin(p, &j, lock_message_words(p)->acquired);
    clave__json_int(&j, "token", g->token);
    clave__json_string(&j, "node", g->node);
    json_hex(&j, "session", g->session_id);
    clave__json_int(&j, "waited_ms", waited_ms);
    local_put(p->o, &j);
    lock_message_end(&j);
}

void lock_message_connection(const struct run_plan *p, bool up, int64_t left_ms)
{
    struct json j;
    char left[AGE_CAP];
    if (p->o->json) {
        lock_message_begin(p, &j, up ? "reconnected" : "suspended");
        if (!up)
            clave__json_int(&j, "left_ms", left_ms);
        lock_message_end(&j);
    } else if (up) {
        diag_note(p->o, "%s: reconnected, %s", p->path, lock_message_words(p)->still);
    } else {
        diag_note(p->o, "%s: connection lost; %s is certainly kept for %s more", p->path,
                  lock_message_words(p)->it, age_format(left_ms, left));
    }
}

/* Why it was lost, for a reader at a terminal. */
static const char *lock_message_reason(const struct run_plan *p, clave_err why)
{
    if (why == CLAVE_ENONODE)
        return "its node was deleted by another client";
    if (why == CLAVE_ECONNLOSS || why == CLAVE_ETIMEDOUT)
        return "no server confirmed the session in time";
    return diag_text(p->o, why);
}

void lock_message_lost(const struct run_plan *p, clave_err why)
{
    struct json j;
    if (!p->o->json) {
        diag(p->o, "%s: %s is lost: %s", p->path, lock_message_words(p)->it,
             lock_message_reason(p, why));
        return;
    }
    lock_message_begin(p, &j, "lost");
    clave__json_string(&j, "why", lock_message_reason(p, why));
    lock_message_end(&j);
}

void lock_message_asked(const struct run_plan *p)
{
    struct json j;
    if (!p->o->json) {
        diag(p->o, "%s: %s", p->path, lock_message_words(p)->asked);
        return;
    }
    lock_message_begin(p, &j, "asked");
    lock_message_end(&j);
}

static const char *lock_message_ending_text(const struct run_plan *p, enum kill_policy_cause cause,
                                            char *out, size_t cap)
{
    char parent[PARENT_WATCH_TEXT_CAP];
    switch (cause) {
    case CAUSE_NONE:
        return "the command has ended; ending the processes it left running";
    case CAUSE_DEADLINE:
        snprintf(out, cap,
                 "no server confirmed the session in time: ending the command before %s is "
                 "lost",
                 lock_message_words(p)->it);
        return out;
    case CAUSE_MAX_HOLD:
        snprintf(out, cap, "the maximum %s has been reached: ending the command",
                 lock_message_words(p)->hold);
        return out;
    case CAUSE_PARENT:
        snprintf(out, cap, "%s: ending the command", parent_watch_text(&p->parent, parent));
        return out;
    case CAUSE_SIGNAL:
        return "second signal: ending the command and all it has started";
    case CAUSE_LOST:
    case CAUSE_KILLED:
        break;
    }
    return "ending the command";
}

void lock_message_ending(const struct run_plan *p, enum kill_policy_cause cause)
{
    static const char *const names[] = {
        [CAUSE_NONE] = "left-behind",  [CAUSE_DEADLINE] = "deadline", [CAUSE_LOST] = "lost",
        [CAUSE_MAX_HOLD] = "max-hold", [CAUSE_KILLED] = "killed",     [CAUSE_SIGNAL] = "signal",
        [CAUSE_PARENT] = "parent"};
    struct json j;
    char text[128];
    if (p->o->json) {
        lock_message_begin(p, &j, "ending");
        clave__json_string(&j, "cause", names[cause]);
        lock_message_end(&j);
        return;
    }
    const char *what = lock_message_ending_text(p, cause, text, sizeof text);
    if (cause == CAUSE_NONE)
        diag_note(p->o, "%s: %s", p->path, what);
    else
        diag(p->o, "%s: %s", p->path, what);
}

/* What cannot be ended. `text`: the same as a sentence. */
static void lock_message_put_holdout(const struct run_plan *p, const char *event,
                                     const struct holdout *h, const char *text)
{
    struct json j;
    char user[HOLDOUT_NAME_CAP];
    if (!p->o->json) {
        diag(p->o, "%s: %s", p->path, text);
        return;
    }
    lock_message_begin(p, &j, event);
    clave__json_int(&j, "process", h->pid);
    clave__json_string(&j, "command", *h->name ? h->name : NULL);
    clave__json_string(&j, "user", h->uid == HOLDOUT_UNKNOWN ? NULL : holdout_user(h, user));
    clave__json_string(&j, "text", text);
    lock_message_end(&j);
}

void lock_message_holdout(const struct run_plan *p, const struct holdout *h)
{
    char who[HOLDOUT_TEXT_CAP], text[TEXT_CAP];
    snprintf(text, sizeof text,
             "clave may not end %s: if %s is lost, the next %s begins while it still runs. Run "
             "clave as that user or as root, or where it may create control groups (systemd: "
             "Delegate=yes)%s",
             holdout_text(h, who), lock_message_words(p)->it, lock_message_words(p)->next,
             p->same_user ? "" : "; --require-killable keeps commands from changing their user");
    lock_message_put_holdout(p, "unkillable", h, text);
}

void lock_message_stuck(const struct run_plan *p, const struct holdout *h, bool lost)
{
    char who[HOLDOUT_TEXT_CAP], text[TEXT_CAP], advice[64];
    snprintf(advice, sizeof advice, "; end it as root: kill -KILL %d", (int)h->pid);
    snprintf(text, sizeof text, "cannot end %s%s: %s %s%s", holdout_text(h, who),
             h->asleep ? ", which waits in the kernel for a disk or a file system (state D)" : "",
             lock_message_words(p)->it,
             lost ? "may be another's while it still runs" : "is not released before it has ended",
             h->asleep ? "" : advice);
    lock_message_put_holdout(p, "stuck", h, text);
}

void lock_message_denied(const struct run_plan *p, const struct holdout *h, int sig)
{
    char who[HOLDOUT_TEXT_CAP], text[TEXT_CAP];
    snprintf(text, sizeof text, "cannot pass signal %d (%s) on to %s", sig, strsignal(sig),
             holdout_text(h, who));
    lock_message_put_holdout(p, "denied", h, text);
}

void lock_message_delay(const struct run_plan *p, const clave_identity *who, int64_t delay_ms)
{
    struct json j;
    char age[AGE_CAP], text[PARTICIPANT_TEXT_CAP];
    if (p->o->json) {
        lock_message_begin(p, &j, "delayed");
        clave__json_int(&j, "delay_ms", delay_ms);
        lock_message_put_identity(&j, "lost", who);
        lock_message_end(&j);
    } else if (!p->quiet) {
        diag(p->o, "%s: %s, %s, lost it: starting the command in %s", p->path,
             lock_message_words(p)->before, participant_text_format(who, text, sizeof text),
             age_format(delay_ms, age));
    }
}

void lock_message_done(const struct run_plan *p, const clave_once_record *former)
{
    struct json j;
    char age[AGE_CAP], who[PARTICIPANT_TEXT_CAP];
    bool aged = former->age_ms >= 0, done = former->state == CLAVE_ONCE_DONE;
    if (p->o->json) {
        lock_message_begin(p, &j, "done");
        clave__json_string(&j, "key", p->stages.once);
        clave__json_bool(&j, "succeeded", done);
        clave__json_int(&j, "began_ms", former->began);
        if (aged)
            clave__json_int(&j, "age_ms", former->age_ms);
        lock_message_put_identity(&j, "by", &former->identity);
        lock_message_end(&j);
    } else if (!p->quiet) {
        diag(p->o, "%s: '%s' was %s already, started%s%s%s by %s", p->path, p->stages.once,
             done ? "done" : "tried", aged ? " " : "", aged ? age_format(former->age_ms, age) : "",
             aged ? " ago" : "", participant_text_format(&former->identity, who, sizeof who));
    }
}

void lock_message_resting(const struct run_plan *p, int64_t left_ms)
{
    struct json j;
    char left[AGE_CAP];
    if (!p->o->json) {
        diag_note(p->o, "%s: the command has ended; the minimum hold lasts for %s more", p->path,
                  age_format(left_ms, left));
        return;
    }
    lock_message_begin(p, &j, "resting");
    clave__json_int(&j, "left_ms", left_ms);
    lock_message_end(&j);
}

void lock_message_ended(const struct run_plan *p, int code, int64_t held_ms)
{
    struct json j;
    char age[AGE_CAP];
    if (!p->o->json) {
        diag_note(p->o, "%s: the command has ended after %s; exit code %d", p->path,
                  age_format(held_ms, age), code);
        return;
    }
    lock_message_begin(p, &j, "ended");
    clave__json_int(&j, "code", code);
    clave__json_int(&j, "held_ms", held_ms);
    lock_message_end(&j);
}
