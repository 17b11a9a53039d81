/* slot_take.c - `clave slot take` (slot.h). A signal ends a take that waits: its place in the
 * queue goes at once, not when the session times out. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "cmd/cli/time_text.h"
#include "cmd/run/run_flags.h"
#include "cmd/verbs/lock/slot.h"
#include "runtime/blocking/call.h"

/* ---- signals -------------------------------------------------------------------------------- */

/* Reads one in a thread, since the take waits in this one. One that comes before the take is found
 * when it has to wait. */
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

/* false: there is no thread, and signals have no effect on the take. */
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

int slot_take(struct slot_command *s)
{
    clave_client *c;
    int code = slot_session_open(s, &c);
    if (code != EXIT_OK)
        return code;
    code = slot_take_on(s, c);
    slot_session_close(s, c);
    return code;
}
