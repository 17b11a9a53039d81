/* increment.c - what the lock is for: a counter, read and then written one higher, guarded. Its
 * version counts the writes, so an update that was lost shows. */
#include <stdio.h>
#include <stdlib.h>

#include "actor.h"
#include "checker.h"

static unsigned nth_of(const struct actor *a)
{
    return a->recipe == &recipe_multilock ? a->lock : 0;
}

static int64_t token_of(const struct actor *a)
{
    return a->holds[nth_of(a)].token;
}

static const char *counter_of(const struct actor *a)
{
    const struct lock_layout *s = workload_layout(a->load, a->lock);
    return a->unguarded ? s->unguarded : s->counter;
}

static void on_written(clave_async_client *c, const clave_result *res, void *arg)
{
    struct actor *a = arg;
    struct workload_stats *st = &a->load->stats;
    clave_err_class class_ = clave_err_classify(res->err);
    (void)c;
    actor_answered(a, "write");
    if (res->err == CLAVE_OK) {
        const clave_stat *stat = res->nops ? res->ops[0].stat : res->stat;
        world_must(stat != NULL);
        st->writes++;
        checker_written(a->load->checker, a, stat->version);
    } else if (res->err == CLAVE_ELOST) {
        st->refused++;
    } else if (class_ == CLAVE_CLASS_UNKNOWN || res->err == CLAVE_ECLOSED) {
        st->unknown++;
        checker_unknown(a->load->checker, a);
    } else if (res->err != CLAVE_EEXPIRED) {
        actor_unexpected(a, "guarded write", res->err);
    }
    world_log(a->host->w, a->name, "its write of %lld: %s", (long long)a->value + 1,
              clave_err_name(res->err));
    actor_hold_go_on(a);
}

/* One that must fail as a whole: after the write, a check of what is not there. */
static void on_futile(clave_async_client *c, const clave_result *res, void *arg)
{
    struct actor *a = arg;
    clave_err_class class_ = clave_err_classify(res->err);
    (void)c;
    actor_answered(a, "futile write");
    if (res->err != CLAVE_ENONODE && res->err != CLAVE_ELOST && res->err != CLAVE_ECLOSED &&
        res->err != CLAVE_EEXPIRED && class_ != CLAVE_CLASS_UNKNOWN)
        actor_unexpected(a, "futile write", res->err);
    actor_hold_go_on(a);
}

/* ---- without a guard ------------------------------------------------------------------- */

static void on_written_unguarded(clave_async_client *c, const clave_result *res, void *arg)
{
    struct actor *a = arg;
    struct checker *checker = a->load->checker;
    (void)c;
    actor_answered(a, "unguarded write");
    if (res->err == CLAVE_OK)
        unguarded_made(&checker->locks[a->lock].unguarded, a->write, res->stat->version);
    else if (clave_err_classify(res->err) == CLAVE_CLASS_UNKNOWN)
        a->load->unsure = true;
    world_log(a->host->w, a->name, "its unguarded write of %lld: %s", (long long)a->value + 1,
              clave_err_name(res->err));
    actor_hold_go_on(a);
}

static size_t announce_write(struct actor *a)
{
    struct checker *c = a->load->checker;
    const struct hold *h = &a->holds[nth_of(a)];
    struct unguarded_write w = {
        .token = a->read_token,
        .value = a->value + 1,
        .base = a->version,
        .late = h->token != a->read_token || !actor_is_valid(a, nth_of(a)) ||
                checker_was_taken(c, h->node),
    };
    snprintf(w.node, sizeof w.node, "%s", h->node);
    a->load->stats.unguarded++;
    a->load->stats.late += w.late;
    return unguarded_add(&c->locks[a->lock].unguarded, &w);
}

static void write_unguarded(struct actor *a)
{
    char text[64];
    a->write = announce_write(a);
    int n = snprintf(text, sizeof text, "%lld %zu", (long long)a->value + 1, a->write);
    actor_call(a);
    clave_err err = clave_async_set(a->host->client, counter_of(a), text, (size_t)n, -1,
                                    on_written_unguarded, a);
    if (actor_started(a, err, "unguarded write"))
        a->state = ACTOR_WRITING;
    else
        actor_hold_go_on(a);
}

/* A careful actor checks once more that it still holds the lock. A careless one may fall asleep
 * over it, while the session goes its own way. */
static void increment_unguarded(struct actor *a)
{
    const struct workload_options *o = a->load->o;
    bool careless = world_chance(a->host->w, o->careless);
    if (careless && a->state != ACTOR_DOZING && world_chance(a->host->w, 500)) {
        a->state = ACTOR_DOZING;
        actor_later(a, o->sleep_us / 4);
        return;
    }
    bool minds = !careless && a->state != ACTOR_DOZING;
    a->has_value = false;
    a->writes_left -= a->writes_left > 0;
    if (minds && !actor_is_valid(a, nth_of(a)))
        actor_hold_go_on(a);
    else
        write_unguarded(a);
}

/* ---- with it --------------------------------------------------------------------------- */

/* One that holds several locks writes under all of them: none may be lost. */
static bool guards_with_all(const struct actor *a)
{
    return a->recipe == &recipe_multilock || a->recipe == &recipe_semaphore;
}

static clave_err write_under_grants(struct actor *a, const clave_op *ops, size_t nops,
                                    clave_result_cb *cb)
{
    clave_async_grant *all[HOLDS] = {NULL};
    unsigned n = 0, wanted = guards_with_all(a) ? a->nholds : 1;
    clave_err err = CLAVE_OK;
    while (err == CLAVE_OK && n < wanted) {
        err = a->recipe->grant(a, n, &all[n]);
        n += err == CLAVE_OK;
    }
    if (err == CLAVE_OK && n == 1 && nops == 1)
        err = clave_async_grant_set(all[0], ops->path, ops->data, ops->len, ops->version, cb, a);
    else if (err == CLAVE_OK)
        err = clave_async_grant_multi(all, n, ops, nops, cb, a);
    if (n > 0)
        actor_hold_keep(a, all[0]);
    while (n > 0)
        clave_async_grant_free(all[--n]);
    return err;
}

void increment_write(struct actor *a)
{
    char text[32];
    if (a->unguarded) {
        increment_unguarded(a);
        return;
    }
    a->has_value = false;
    a->writes_left--;
    a->write_token = token_of(a);
    int n = snprintf(text, sizeof text, "%lld", (long long)a->value + 1);
    const clave_op ops[] = {
        {.kind = CLAVE_OP_SET,
         .path = counter_of(a),
         .data = text,
         .len = (size_t)n,
         .version = -1},
        {.kind = CLAVE_OP_CHECK, .path = "/nowhere", .version = -1},
    };
    bool futile = world_chance(a->host->w, 50);
    actor_call(a);
    clave_err err = write_under_grants(a, ops, futile ? 2 : 1, futile ? on_futile : on_written);
    if (actor_started(a, err, "guarded write")) {
        a->state = ACTOR_WRITING;
        return;
    }
    if (err != CLAVE_ECLOSED && !(a->lost && (err == CLAVE_ELOST || err == CLAVE_ENOTHELD)))
        actor_unexpected(a, "guarded write", err);
    actor_hold_go_on(a);
}

static void on_founded(clave_async_client *c, const clave_result *res, void *arg)
{
    struct actor *a = arg;
    (void)c;
    (void)res; /* whatever it was: the next reading tells */
    actor_answered(a, "create");
    actor_hold_go_on(a);
}

/* Under a read's hold nobody writes. */
static void take_value(struct actor *a, int64_t value)
{
    bool stays = a->shared && a->seen && actor_is_valid(a, 0) &&
                 !checker_was_taken(a->load->checker, a->holds[0].node);
    if (stays && a->value != value && !checker_is_beyond(a->load->checker))
        world_break(a->host->w, "nobody writes while others read", "%s read %lld and then %lld",
                    a->name, (long long)a->value, (long long)value);
    a->value = value;
    a->has_value = a->seen = true;
    if (a->shared)
        a->writes_left--;
}

static void on_read(clave_async_client *c, const clave_result *res, void *arg)
{
    static const clave_create_options o = {.size = sizeof o, .flags = CLAVE_CREATE_PARENTS};
    struct actor *a = arg;
    actor_answered(a, "read");
    if (a->state != ACTOR_READING || a->load->ending) {
        actor_hold_go_on(a);
    } else if (res->err == CLAVE_ENONODE) {
        actor_call(a);
        clave_err err = clave_async_create(c, counter_of(a), "0", 1, &o, on_founded, a);
        if (!actor_started(a, err, "create"))
            actor_hold_go_on(a);
    } else if (res->err == CLAVE_OK) {
        char text[32];
        snprintf(text, sizeof text, "%.*s", (int)res->len, (const char *)res->data);
        a->version = res->stat->version;
        if (token_of(a) == a->read_token) /* a leader may have another by now */
            take_value(a, atoll(text));
        actor_hold_go_on(a);
    } else {
        actor_hold_go_on(a);
    }
}

static bool submit_read(struct actor *a)
{
    a->read_token = token_of(a);
    actor_call(a);
    return actor_started(a, clave_async_get(a->host->client, counter_of(a), NULL, on_read, a),
                         "read");
}

static void on_synced(clave_async_client *c, const clave_result *res, void *arg)
{
    struct actor *a = arg;
    (void)c;
    actor_answered(a, "sync");
    if (res->err != CLAVE_OK || a->state != ACTOR_READING || a->load->ending || !submit_read(a))
        actor_hold_go_on(a);
}

/* A write of unknown outcome may have been done, and the member that one has moved to may not
 * know of it yet. */
static bool submit_sync(struct actor *a)
{
    actor_call(a);
    return actor_started(a, clave_async_sync(a->host->client, counter_of(a), on_synced, a), "sync");
}

void increment_read(struct actor *a)
{
    const struct workload_options *o = a->load->o;
    a->unguarded = o->unguarded > 0 && !a->shared &&
                   layout_is_exclusive(workload_layout(a->load, a->lock)) &&
                   world_chance(a->host->w, o->unguarded);
    bool unsure = a->load->unsure || a->load->stats.unknown > 0;
    if (unsure ? submit_sync(a) : submit_read(a))
        a->state = ACTOR_READING;
    else
        actor_hold_release(a);
}
