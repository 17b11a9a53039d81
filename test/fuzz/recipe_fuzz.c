/* recipe_fuzz.c - locks, leases, slots, elections, jobs and questions about them, beside other
 * clients that make, write and remove nodes of any name among theirs, at a server whose answers may
 * be anybody's. What is asked for is answered once, never inside the call that asked; and at an
 * honest server a lock that is valid excludes, and no more slots are taken than there are. */
#include <string.h>

#include "clave/async/deadlock.h"
#include "clave/async/latch.h"
#include "clave/async/leader.h"
#include "clave/async/lock_delay.h"
#include "clave/async/multilock.h"
#include "clave/async/once.h"
#include "clave/async/rwlock.h"
#include "clave/async/semaphore.h"
#include "clave/async/slots.h"
#include "fuzz/foreign_client.h"
#include "fuzz/fuzz_link.h"
#include "lib/async_grants.h"

enum { MUTEXES = 4, OWNERS = 3, LEASES = 4, SLOT_IDS = 4, MOST_SLOTS = 2 };

/* An id that takes slots. */
struct slot_owner {
    struct play *p;
    const char *id;
    int64_t token;    /* of the slot that it took and has not begun to give back; 0: none */
    unsigned ngiving; /* gives and breaks under way */
};

struct play {
    struct memserver d;
    struct fuzz_link line;
    clave_async_client *c;
    clave_async_mutex *mutex[MUTEXES]; /* two on one path, a read and a write side */
    clave_async_rwlock *rw;
    clave_async_semaphore *s;
    clave_async_lease *leases[LEASES];
    clave_async_slots *slots;
    struct slot_owner slot_owners[SLOT_IDS];
    clave_async_multilock *ml;
    clave_async_latch *latch;
    clave_async_leader_watch *watch;
    clave_async_once *once;
    clave_async_delay *delay;
    struct memserver_conn foreign;
    bool honest; /* nothing of the server's was changed, and no node removed by the stranger */
    bool starting, closing;
    uint64_t asked, answered;
};

/* ---- what is heard --------------------------------------------------------------------------- */

static void answer(struct play *p)
{
    must(!p->starting);
    p->answered++;
    must(p->answered <= p->asked);
}

static void on_acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    const struct play *p = arg;
    (void)m;
    (void)owner;
    answer(arg);
    must(err != CLAVE_OK || !p->closing);
}

static void on_departed(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m;
    (void)owner;
    (void)err;
    answer(arg);
}

static void on_mutex(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    const struct play *p = arg;
    struct grant_facts g;
    must(!p->starting);
    must(ev->kind != CLAVE_MUTEX_HELD || clave__mutex_held(m, ev->owner, &g));
    must(ev->kind != CLAVE_MUTEX_LOST || !clave__mutex_held(m, ev->owner, &g));
}

static void on_leases(clave_async_semaphore *s, clave_err err, clave_async_lease *const *leases,
                      size_t n, void *arg)
{
    struct play *p = arg;
    (void)s;
    answer(p);
    must((err == CLAVE_OK) == (n > 0));
    for (size_t i = 0, at = 0; i < n; i++) {
        while (at < LEASES && p->leases[at])
            at++;
        if (at < LEASES)
            p->leases[at] = leases[i];
        else
            clave_async_lease_release(leases[i], NULL, NULL);
    }
}

static void on_slot(clave_async_slots *s, clave_err err, const clave_slot *slot, bool taken,
                    void *arg)
{
    struct slot_owner *o = arg;
    clave_async_grant *g;
    answer(o->p);
    must((err == CLAVE_OK) == (slot != NULL) && (slot || !taken));
    must(err != CLAVE_OK || !o->p->closing);
    if (!slot)
        return;
    must(strcmp(slot->id, o->id) == 0);
    must(clave_async_slots_grant(s, slot, &g) == CLAVE_OK);
    clave_async_grant_free(g);
    if (taken && o->ngiving == 0)
        o->token = slot->token;
}

static void on_given(clave_async_slots *s, clave_err err, const clave_slot *slot, void *arg)
{
    struct slot_owner *o = arg;
    (void)s;
    answer(o->p);
    must(o->ngiving-- > 0);
    must(err == CLAVE_OK || !slot);
    must(!slot || strcmp(slot->id, o->id) == 0);
}

static void on_slots_limit(clave_async_slots *s, clave_err err, void *arg)
{
    (void)s;
    (void)err;
    answer(arg);
}

static void on_slots(clave_async_client *c, clave_err err, const clave_slots_view *view, void *arg)
{
    (void)c;
    answer(arg);
    must((err == CLAVE_OK) == (view != NULL));
    for (size_t i = 0; view && i < view->n; i++) {
        must(view->slots[i].node && (i == 0 || view->slots[i - 1].token <= view->slots[i].token));
        must(!view->slots[i].id || strlen(view->slots[i].id) > 0);
    }
}

static void on_locks(clave_async_multilock *ml, uint64_t owner, clave_err err, const char *failed,
                     void *arg)
{
    (void)ml;
    (void)owner;
    answer(arg);
    must(err == CLAVE_OK || failed == NULL || *failed == '/');
}

static void on_latch(clave_async_latch *l, clave_err err, void *arg)
{
    (void)l;
    (void)err;
    answer(arg);
}

static void on_candidate(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    const struct play *p = arg;
    (void)l;
    (void)ev;
    must(!p->starting);
}

static void on_news(clave_async_leader_watch *w, const clave_leader_news *news, void *arg)
{
    const struct play *p = arg;
    (void)w;
    must(!p->starting);
    must(!news->leader || *news->leader->node);
}

static void on_participants(clave_async_client *c, clave_err err, const clave_participant *list,
                            size_t n, void *arg)
{
    (void)c;
    answer(arg);
    must(err == CLAVE_OK || n == 0);
    for (size_t i = 0; i < n; i++)
        must(*list[i].node && list[i].priority >= 0);
}

static void on_deadlocks(clave_async_client *c, clave_err err, const clave_deadlock *list, size_t n,
                         void *arg)
{
    (void)c;
    answer(arg);
    must(err == CLAVE_OK || n == 0);
    for (size_t i = 0; i < n; i++)
        must(list[i].n > 0 && list[i].victim <= list[i].n && *list[i].text);
}

static void on_transfer(clave_async_client *c, clave_err err, void *arg)
{
    (void)c;
    (void)err;
    answer(arg);
}

static void on_result(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    (void)res;
    answer(arg);
}

static void on_once(clave_async_once *o, clave_err err, const clave_once_record *former, void *arg)
{
    const struct play *p = arg;
    (void)o;
    must(!p->starting && (err != CLAVE_EDONE || former->state != CLAVE_ONCE_NONE));
}

static void on_delay(clave_async_delay *d, clave_err err, void *arg)
{
    const struct play *p = arg;
    (void)d;
    (void)err;
    must(!p->starting);
}

/* ---- what is asked --------------------------------------------------------------------------- */

static int64_t deadline_of(const struct play *p, uint8_t how)
{
    return how % 3 == 0 ? CLAVE_TRY : how % 3 == 1 ? INT64_MAX : p->d.now + 100 * how;
}

static clave_err use_mutex(struct play *p, uint8_t how)
{
    clave_async_mutex *m = p->mutex[how % MUTEXES];
    uint64_t owner = how / MUTEXES % OWNERS + 1;
    switch (how / (MUTEXES * OWNERS) % 4) {
    case 0:
        (void)clave_async_mutex_cancel(m, owner);
        return CLAVE_EINVAL;
    case 1:
        return clave_async_mutex_release(m, owner, on_departed, p);
    default:
        return clave_async_mutex_acquire(m, owner, deadline_of(p, how), on_acquired, p);
    }
}

static clave_err use_semaphore(struct play *p, uint8_t how)
{
    clave_async_lease **l = &p->leases[how % LEASES];
    switch (how / LEASES % 5) {
    case 0:
        return clave_async_semaphore_set_limit(p->s, how / 16 + 1, on_result, p);
    case 1:
        clave_async_semaphore_cancel(p->s, how % 2 + 1);
        return CLAVE_EINVAL;
    case 2:
        if (*l)
            clave_async_lease_release(*l, NULL, NULL);
        *l = NULL;
        return CLAVE_EINVAL;
    default:
        return clave_async_semaphore_acquire(p->s, how % 2 + 1, how / 64 + 1, deadline_of(p, how),
                                             on_leases, p);
    }
}

/* A give has begun when it is asked for: from then on the slot may be somebody else's. */
static clave_err give_slot(struct play *p, struct slot_owner *o, uint8_t how)
{
    const clave_slot which = {.id = o->id, .by = "op", .reason = "why", .token = o->token};
    clave_err err;
    if (how % 2)
        err = clave_async_slots_break(p->slots, &which, CLAVE_NEVER, on_given, o);
    else
        err = clave_async_slots_give(p->slots, o->id, how & 2 ? o->token : 0, CLAVE_NEVER, on_given,
                                     o);
    if (err == CLAVE_OK) {
        o->ngiving++;
        o->token = 0;
    }
    return err;
}

static clave_err use_slots(struct play *p, uint8_t how)
{
    struct slot_owner *o = &p->slot_owners[how % SLOT_IDS];
    const clave_slot as = {.id = o->id, .host = "h", .reason = how & 64 ? "update" : NULL};
    switch (how / SLOT_IDS % 8) {
    case 0:
        (void)clave_async_slots_cancel(p->slots, how % SLOT_IDS);
        return CLAVE_EINVAL;
    case 1:
    case 2:
        return give_slot(p, o, how / (SLOT_IDS * 8));
    case 3:
        return clave_async_slots_set_limit(p->slots, how / 32 % (MOST_SLOTS + 1), on_slots_limit,
                                           p);
    case 4:
        return clave_async_slots_list(p->c, "/slots", on_slots, p);
    default:
        return clave_async_slots_take(p->slots, how % SLOT_IDS, &as, deadline_of(p, how), on_slot,
                                      o);
    }
}

static clave_err use_latch(struct play *p, uint8_t how)
{
    switch (how % 8) {
    case 0:
        clave_async_latch_start(p->latch);
        return CLAVE_EINVAL;
    case 1:
        clave_async_latch_resign(p->latch);
        return CLAVE_EINVAL;
    case 2:
        return clave_async_latch_await(p->latch, deadline_of(p, how), on_latch, p);
    case 3:
        return clave_async_latch_publish(p->latch, "here", 4, on_result, p);
    case 4:
        return clave_async_leader_transfer(p->c, "/e", NULL, on_transfer, p);
    case 5:
        return clave_async_latch_participants(p->c, "/e", on_participants, p);
    case 6:
        return clave_async_latch_leader(p->c, "/e", on_participants, p);
    default:
        return how < 64 ? clave_async_latch_close(p->latch, how < 32, on_latch, p) : CLAVE_EINVAL;
    }
}

static clave_err use_several(struct play *p, uint8_t how)
{
    uint64_t owner = how / 4 % OWNERS + 1;
    switch (how % 4) {
    case 0:
        (void)clave_async_multilock_release(p->ml, owner, NULL, NULL);
        return CLAVE_EINVAL;
    case 1:
        clave_async_multilock_cancel(p->ml, owner);
        return CLAVE_EINVAL;
    default:
        return clave_async_multilock_acquire(p->ml, owner, deadline_of(p, how), on_locks, p);
    }
}

static clave_err look(struct play *p, uint8_t how)
{
    static const char *const roots[] = {"/l", "/rw", "/s"};
    switch (how % 5) {
    case 0:
        return clave_async_participants(p->c, "/l", on_participants, p);
    case 1:
        return clave_async_rwlock_participants(p->c, "/rw", CLAVE_RWLOCK_BOTH, on_participants, p);
    case 2:
        return clave_async_semaphore_participants(p->c, "/s", on_participants, p);
    case 3:
        return clave_async_revoke(p->c, "/l/lock-0000000000", on_result, p);
    default:
        return clave_async_deadlocks_find(p->c, roots, 3, on_deadlocks, p);
    }
}

/* A job under the first mutex, one at a time: its callbacks end with it. */
static clave_err use_job(struct play *p, uint8_t how)
{
    const clave_once_options once = {.size = sizeof once, .path = "/done", .period_ms = how};
    const clave_delay_options delay = {.size = sizeof delay, .path = "/mark", .delay_ms = 10 * how};
    switch (how % 4) {
    case 0:
        if (!p->once)
            (void)once_begin_held(&p->once, of_mutex(p->mutex[0], 1), &once, on_once, p);
        break;
    case 1:
        if (!p->delay)
            (void)delay_begin_held(&p->delay, of_mutex(p->mutex[0], 1), &delay, on_delay, p);
        break;
    case 2:
        if (p->once && clave_async_once_end(p->once, how & 4, on_once, p) != CLAVE_OK) {
            clave_async_once_free(p->once);
            p->once = NULL;
        }
        break;
    default:
        if (p->delay && clave_async_delay_end(p->delay, on_delay, p) != CLAVE_OK) {
            clave_async_delay_free(p->delay);
            p->delay = NULL;
        }
    }
    return CLAVE_EINVAL;
}

static void ask(struct play *p, uint8_t what, uint8_t how)
{
    static clave_err (*const uses[])(struct play * p, uint8_t how) = {
        use_mutex, use_semaphore, use_latch, use_several, look, use_job, use_slots,
    };
    p->starting = true;
    p->asked++;
    if (uses[what % (sizeof uses / sizeof *uses)](p, how) != CLAVE_OK)
        p->asked--; /* no answer will come */
    p->starting = false;
}

/* ---- the play -------------------------------------------------------------------------------- */

static void open_slots(struct play *p, uint8_t how)
{
    static const char *const ids[SLOT_IDS] = {"a", "b/%", "\xc3\xbc", "c-lock-0000000001"};
    const clave_slots_options o = {.size = sizeof o, .limit = how & 1 ? 1 : MOST_SLOTS};
    must(clave_async_slots_new(&p->slots, p->c, "/slots", &o) == CLAVE_OK);
    for (int i = 0; i < SLOT_IDS; i++)
        p->slot_owners[i] = (struct slot_owner){.p = p, .id = ids[i]};
}

static void open_all(struct play *p, uint8_t how)
{
    const clave_mutex_options each = {.size = sizeof each,
                                      .revocable = how & 1,
                                      .strict = how & 2,
                                      .max_hold_ms = how & 4 ? 3000 : 0,
                                      .detect_deadlocks_ms = how & 8 ? 0 : 500,
                                      .event_cb = on_mutex,
                                      .event_arg = p};
    const clave_semaphore_options lease = {.size = sizeof lease,
                                           .limit = 2,
                                           .limit_path = how & 16 ? "/limit" : NULL,
                                           .detect_deadlocks_ms = 500,
                                           .revocable = how & 1};
    const clave_latch_options latch = {.size = sizeof latch,
                                       .id = "id",
                                       .priority = how & 32 ? 5 : 0,
                                       .preempt = how & 32,
                                       .revocable = how & 1,
                                       .policy =
                                           how & 64 ? CLAVE_POLICY_SESSION : CLAVE_POLICY_STANDARD,
                                       .event_cb = on_candidate,
                                       .event_arg = p};
    const clave_multilock_part parts[] = {{"/l", CLAVE_MULTILOCK_MUTEX},
                                          {"/rw", CLAVE_MULTILOCK_READ}};
    must(clave_async_mutex_new(&p->mutex[0], p->c, "/l", &each) == CLAVE_OK);
    must(clave_async_mutex_new(&p->mutex[1], p->c, "/l", NULL) == CLAVE_OK);
    must(clave_async_rwlock_new(&p->rw, p->c, "/rw", &each) == CLAVE_OK);
    p->mutex[2] = clave_async_rwlock_read(p->rw);
    p->mutex[3] = clave_async_rwlock_write(p->rw);
    must(clave_async_semaphore_new(&p->s, p->c, "/s", &lease) == CLAVE_OK);
    open_slots(p, how);
    must(clave_async_latch_new(&p->latch, p->c, "/e", &latch) == CLAVE_OK);
    must(clave_async_multilock_new(&p->ml, p->c, parts, 2, NULL) == CLAVE_OK);
    must(clave_async_leader_watch_new(&p->watch, p->c, "/e", on_news, p) == CLAVE_OK);
}

/* The client goes last, and with it what has not been answered. */
static void close_all(struct play *p)
{
    p->closing = true;
    clave_async_once_free(p->once);
    clave_async_delay_free(p->delay);
    clave_async_leader_watch_free(p->watch);
    clave_async_multilock_free(p->ml);
    clave_async_latch_free(p->latch);
    clave_async_slots_free(p->slots);
    clave_async_semaphore_free(p->s);
    clave_async_rwlock_free(p->rw);
    clave_async_mutex_free(p->mutex[1]);
    clave_async_mutex_free(p->mutex[0]);
    clave_async_client_free(p->c);
}

/* Of the two on one path only one holds, as long as both are valid. */
static void check_exclusion(const struct play *p)
{
    size_t holders = 0;
    for (size_t m = 0; m < 2; m++) {
        bool held = false;
        for (uint64_t owner = 1; owner <= OWNERS; owner++)
            held = held || mutex_valid_for(p->mutex[m], owner, p->d.now, 0);
        holders += held;
    }
    must(!p->honest || holders <= 1);
}

static void check_slots(const struct play *p)
{
    int owned = 0;
    for (int i = 0; i < SLOT_IDS; i++)
        owned += p->slot_owners[i].token != 0;
    must(!p->honest || owned <= MOST_SLOTS);
}

static void step(struct play *p, struct input *in)
{
    switch ((enum recipe_step)(input_byte(in) % RECIPE_STEPS)) {
    case RECIPE_ASK: {
        uint8_t what = input_byte(in);
        ask(p, what, input_byte(in));
        break;
    }
    case RECIPE_RELAY:
        link_carry(&p->line, 0, 0);
        break;
    case RECIPE_DAMAGE: {
        size_t at = input_byte(in);
        p->honest = false;
        link_carry(&p->line, at, input_byte(in));
        break;
    }
    case RECIPE_FRAME:
        p->honest = false;
        link_send_frame(&p->line, input_part(in, input_byte(in)));
        break;
    case RECIPE_FOREIGN:
        p->honest = !foreign_client_act(&p->foreign, in) && p->honest;
        break;
    case RECIPE_TIME:
        link_advance(&p->line, 100 * input_byte(in));
        break;
    case RECIPE_HANG_UP:
        link_hang_up(&p->line);
        link_follow(&p->line);
        break;
    case RECIPE_CLOSE:
        if (input_byte(in) == 0)
            clave_async_client_close(p->c, p->d.now);
        link_follow(&p->line);
        break;
    case RECIPE_STEPS:
        break;
    }
    check_exclusion(p);
    check_slots(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct play p;
    clave_client_options o = {.size = sizeof o, .hosts = "a:1", .seed = 7};
    struct input in = {data, size};
    memset(&p, 0, sizeof p);
    p.honest = true;
    memserver_open(&p.d, NULL);
    memserver_connect(&p.foreign, &p.d, 40000);
    must(clave_async_client_new(&p.c, &o) == CLAVE_OK);
    p.line = (struct fuzz_link){.d = &p.d, .c = p.c};
    open_all(&p, input_byte(&in));
    clave_async_client_start(p.c, p.d.now);
    link_follow(&p.line);
    while (in.n > 0 && p.foreign.c)
        step(&p, &in);
    close_all(&p);
    must(p.answered == p.asked);
    if (p.line.linked)
        memserver_hang_up(&p.line.conn);
    memserver_hang_up(&p.foreign);
    memserver_close(&p.d);
    return 0;
}
