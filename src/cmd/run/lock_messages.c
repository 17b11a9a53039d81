/* lock_messages.c - formats the messages and JSON events of lock_messages.h but for those of a wait
 * (lock_wait_messages.c). The runner, child.c and once_and_min_hold.c call it. Each event names the
 * path.
 */
#include "cmd/run/lock_messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cli/diag.h"
#include "cmd/cli/local_warning.h"
#include "cmd/cli/participant_json.h"
#include "cmd/cli/participant_text.h"
#include "cmd/run/lock_message_json.h"

enum { TEXT_CAP = HOLDOUT_TEXT_CAP + 512 };

static void lock_message_put_identity(struct json *j, const char *key, const clave_identity *id)
{
    clave__json_open(j, key, '{');
    participant_json_identity(j, id);
    clave__json_close(j, '}');
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
