#include "slot_user.h"

#include <stdio.h>
#include <stdlib.h>

#include "checker.h"

enum { HANDS = 2, CALLS_OUT = 6 };

struct slot_hand {
    struct slot_user *user;
    struct alarm alarm;
    bool due;
    bool waiting;
    unsigned id;
    unsigned take; /* its number */
    bool trying;
    struct slot_begun begun;
    int64_t started; /* true time */
    char name[LOG_WHO];
};

struct slot_user {
    struct workload *load;
    clave_async_slots *slots; /* NULL: put away */
    struct slot_hand hands[HANDS];
    unsigned calls_out;
    unsigned limits_out; /* of them, of the limit */
    int64_t apart_at;    /* when it most recently had no connection, as far as it was looked at */
};

/* A give or a break. */
struct slot_give_call {
    struct slot_user *user;
    unsigned id;
    int64_t token;
    struct slot_begun begun;
};

static struct slot_world *slot_world_of(const struct slot_user *u)
{
    return &u->load->checker->slots;
}

static struct world *slot_user_world(const struct slot_user *u)
{
    return u->load->host->w;
}

static void slot_hand_later(struct slot_hand *hand)
{
    struct slot_user *u = hand->user;
    struct world *w = slot_user_world(u);
    hand->due = false;
    world_set(w, &hand->alarm, w->now + world_wait(w, u->load->o->slot_rest_us));
}

static void slot_hand_on_alarm(struct alarm *alarm)
{
    struct slot_hand *hand = LIST_ENTRY(alarm, struct slot_hand, alarm);
    hand->due = true;
    host_wake(hand->user->load->host);
}

/* ---- answers ----------------------------------------------------------------------------------
 */

static void slot_user_answered(struct slot_user *u, const char *what, clave_err err)
{
    struct host *h = u->load->host;
    bool fine = err == CLAVE_OK || actor_is_late(err) || err == CLAVE_ECANCELED ||
                err == CLAVE_ECLOSED || clave_err_classify(err) == CLAVE_CLASS_UNKNOWN ||
                clave_err_classify(err) == CLAVE_CLASS_RETRY ||
                (err == CLAVE_ENOMEM && h->allocator.refused > 0);
    world_log(h->w, h->name, "%s: %s", what, clave_err_name(err));
    if (!fine)
        world_break(h->w, "each call ends as its header says", "%s: %s gives %s", h->name, what,
                    clave_err_name(err));
    if (u->calls_out == 0)
        world_break(h->w, "each request completes exactly once", "%s: %s again", h->name, what);
    else
        u->calls_out--;
}

static void slot_hand_on_take(clave_async_slots *s, clave_err err, const clave_slot *slot,
                              bool taken, void *arg)
{
    struct slot_hand *hand = arg;
    (void)s;
    hand->waiting = false;
    slot_user_answered(hand->user, "take", err);
    slot_world_answer(slot_world_of(hand->user), hand->take, err);
    if (err == CLAVE_EBUSY && hand->trying)
        slot_world_refused(slot_world_of(hand->user), hand->take, hand->started);
    if (!slot)
        return;
    hand->user->load->stats.slots_taken += taken;
    world_log(slot_user_world(hand->user), hand->name, "%s %s, token %lld",
              taken ? "has taken" : "finds", slot->id, (long long)slot->token);
    slot_world_owns(slot_world_of(hand->user), hand->id, slot, taken, &hand->begun);
}

static void slot_user_on_give(clave_async_slots *s, clave_err err, const clave_slot *slot,
                              void *arg)
{
    struct slot_give_call *call = arg;
    (void)s;
    slot_user_answered(call->user, "give", err);
    call->user->load->stats.slots_given += slot != NULL;
    slot_world_given(slot_world_of(call->user), call->id, call->token, err, slot, &call->begun);
    free(call);
}

static void slot_user_on_limit(clave_async_slots *s, clave_err err, void *arg)
{
    struct slot_user *u = arg;
    (void)s;
    slot_user_answered(u, "the limit of slots", err);
    u->limits_out--;
}

static void slot_user_on_list(clave_async_client *c, clave_err err, const clave_slots_view *view,
                              void *arg)
{
    struct slot_user *u = arg;
    (void)c;
    slot_user_answered(u, "the list of slots", err);
    for (size_t i = 1; err == CLAVE_OK && i < view->n; i++)
        if (view->slots[i - 1].token >= view->slots[i].token)
            world_break(slot_user_world(u), "slots are listed by age", "%s after %s",
                        view->slots[i].node, view->slots[i - 1].node);
}

/* ---- calls ------------------------------------------------------------------------------------
 */

static void slot_hand_take(struct slot_hand *hand)
{
    struct slot_user *u = hand->user;
    struct world *w = slot_user_world(u);
    char reason[32];
    hand->take = slot_world_ask(slot_world_of(u), hand->id);
    hand->begun = slot_world_begin(slot_world_of(u), hand->id);
    snprintf(reason, sizeof reason, "take %u", hand->take);
    const clave_slot as = {
        .id = slot_world_id(hand->id), .host = u->load->host->name, .reason = reason};
    int64_t deadline = CLAVE_NEVER;
    if (world_chance(w, 500))
        deadline = world_chance(w, 400)
                       ? CLAVE_TRY
                       : host_clock(u->load->host) +
                             world_between(w, 1, 2 * u->load->o->slot_rest_us / MS);
    uint64_t request = (uint64_t)(hand - u->hands);
    hand->trying = deadline == CLAVE_TRY;
    hand->waiting = true;
    hand->started = w->now;
    u->calls_out++;
    world_log(w, hand->name, "takes %s (take %u)", as.id, hand->take);
    clave_err err =
        clave_async_slots_take(u->slots, request, &as, deadline, slot_hand_on_take, hand);
    if (err == CLAVE_OK)
        return;
    u->calls_out--;
    hand->waiting = false;
    slot_world_answer(slot_world_of(u), hand->take, err);
}

/* Of any token, of the newest, or of one long gone. */
static int64_t slot_user_draw_token(struct slot_user *u, unsigned id)
{
    const struct slot_owner *o = &slot_world_of(u)->owners[id];
    struct world *w = slot_user_world(u);
    if (world_chance(w, 400))
        return 0;
    return world_chance(w, 700) ? o->newest : o->given_upto > 1 ? o->given_upto - 1 : 0;
}

static void slot_user_give(struct slot_user *u, unsigned id, bool breaks)
{
    struct slot_give_call *call = world_alloc(sizeof *call);
    *call = (struct slot_give_call){u, id, slot_user_draw_token(u, id),
                                    slot_world_begin(slot_world_of(u), id)};
    slot_world_give(slot_world_of(u), id, call->token);
    u->calls_out++;
    world_log(slot_user_world(u), u->load->host->name, "%s %s of token %lld",
              breaks ? "breaks" : "gives", slot_world_id(id), (long long)call->token);
    const char *name = slot_world_id(id);
    const clave_slot broken = {.id = name, .token = call->token, .reason = "broken"};
    int64_t deadline = CLAVE_NEVER;
    if (world_chance(slot_user_world(u), 300))
        deadline = host_clock(u->load->host) +
                   world_between(slot_user_world(u), 1, u->load->o->slot_rest_us / MS);
    clave_err err =
        breaks ? clave_async_slots_break(u->slots, &broken, deadline, slot_user_on_give, call)
               : clave_async_slots_give(u->slots, name, call->token, deadline, slot_user_on_give,
                                        call);
    if (err == CLAVE_OK)
        return;
    u->calls_out--;
    slot_world_given(slot_world_of(u), id, call->token, err, NULL, &call->begun);
    free(call);
}

static void slot_user_set_limit(struct slot_user *u, uint32_t limit)
{
    u->calls_out++;
    u->limits_out++;
    world_log(slot_user_world(u), u->load->host->name, "sets the limit of slots to %u",
              (unsigned)limit);
    if (clave_async_slots_set_limit(u->slots, limit, slot_user_on_limit, u) == CLAVE_OK)
        return;
    u->calls_out--;
    u->limits_out--;
}

static void slot_user_list(struct slot_user *u)
{
    u->calls_out++;
    if (clave_async_slots_list(u->load->host->client, SLOTS_PATH, slot_user_on_list, u) != CLAVE_OK)
        u->calls_out--;
}

/* ---- what a hand does -------------------------------------------------------------------------
 */

static void slot_hand_decide(struct slot_hand *hand)
{
    struct slot_user *u = hand->user;
    struct world *w = slot_user_world(u);
    int64_t rng = world_between(w, 0, 99);
    unsigned id = (unsigned)world_between(w, 0, SLOT_IDS - 1);
    if (u->load->day_is_over) { /* what waits is served */
        if (hand->waiting && slot_world_of(u)->limit < SLOT_IDS && u->limits_out == 0)
            slot_user_set_limit(u, SLOT_IDS);
    } else if (u->calls_out >= CALLS_OUT) {
        return; /* else they pile up at a member that lags */
    } else if (rng < 45 && !hand->waiting) {
        hand->id = id;
        slot_hand_take(hand);
    } else if (rng < 80) {
        slot_user_give(u, id, rng > 72);
    } else if (rng < 88) {
        slot_user_set_limit(u, (uint32_t)world_between(w, 0, u->load->o->slot_limit));
    } else if (rng < 92) {
        slot_user_list(u);
    } else if (hand->waiting) {
        (void)clave_async_slots_cancel(u->slots, (uint64_t)(hand - u->hands));
    }
}

static bool slot_user_is_through(const struct slot_user *u)
{
    return u->load->day_is_over && u->calls_out == 0;
}

void slot_user_act(struct workload *l)
{
    struct slot_user *u = l->slots;
    if (!u || !u->slots || l->host->closing || slot_user_is_through(u))
        return;
    for (unsigned i = 0; i < HANDS; i++)
        if (u->hands[i].due) {
            slot_hand_later(&u->hands[i]);
            slot_hand_decide(&u->hands[i]);
        }
}

void slot_user_look(const struct workload *l)
{
    struct slot_user *u = l->slots;
    clave_state state = l->host->state;
    if (u && state != CLAVE_STATE_CONNECTED && state != CLAVE_STATE_RECONNECTED)
        u->apart_at = l->host->w->now; /* it may pause between its attempts */
    for (unsigned i = 0; u && i < HANDS; i++) {
        const struct slot_hand *hand = &u->hands[i];
        int64_t calm = l->host->w->now - l->checker->calm_from; /* dead sessions have ended */
        int64_t connected = l->host->w->now - u->apart_at;
        int64_t waited = l->host->w->now - hand->started;
        int64_t unused = slot_world_unused_us(&l->checker->slots);
        int64_t most = l->checker->grace_us / 2 + SECOND;
        const struct slot_owner *own = &l->checker->slots.owners[hand->id];
        int64_t owned = own->node[0] ? l->host->w->now - own->known_at : 0;
        if (hand->waiting && waited > most && owned > most && calm > most && connected > most)
            world_break(l->host->w, "nobody waits for a slot that its id owns",
                        "%s waits for %lld ms, and %s owns one for %lld ms", hand->name,
                        (long long)(waited / MS), slot_world_id(hand->id), (long long)(owned / MS));
        if (hand->waiting && waited > most && unused > most && calm > most && connected > most)
            world_break(l->host->w, "nobody waits while a slot is free",
                        "%s waits for %lld ms, and there has been room for %lld ms", hand->name,
                        (long long)(waited / MS), (long long)(unused / MS));
    }
}

/* ---- life -------------------------------------------------------------------------------------
 */

void slot_user_begin(struct workload *l)
{
    if (l->o->slot_limit == 0)
        return;
    struct slot_user *u = world_alloc(sizeof *u);
    *u = (struct slot_user){.load = l};
    const clave_slots_options o = {.size = sizeof o, .limit = l->o->slot_limit};
    world_must(clave_async_slots_new(&u->slots, l->host->client, SLOTS_PATH, &o) == CLAVE_OK);
    l->slots = u;
    for (unsigned i = 0; i < HANDS; i++) {
        struct slot_hand *hand = &u->hands[i];
        hand->user = u;
        hand->alarm.fire = slot_hand_on_alarm;
        snprintf(hand->name, sizeof hand->name, "%.20s/slot%u", l->host->name, i);
        slot_hand_later(hand);
    }
}

void slot_user_put_away(struct workload *l)
{
    struct slot_user *u = l->slots;
    if (!u || !u->slots)
        return;
    for (unsigned i = 0; i < HANDS; i++)
        world_clear(l->host->w, &u->hands[i].alarm);
    clave_async_slots_free(u->slots);
    u->slots = NULL;
}

void slot_user_ended(struct workload *l)
{
    struct slot_user *u = l->slots;
    if (!u)
        return;
    if (u->calls_out > 0)
        world_break(l->host->w, "each request completes exactly once",
                    "%s is freed, and %u callbacks of slots have not run", l->host->name,
                    u->calls_out);
    l->slots = NULL;
    free(u);
}

bool slot_user_is_done(const struct workload *l)
{
    return !l->slots || slot_user_is_through(l->slots);
}
