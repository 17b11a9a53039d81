/* increment.c - what the lock is for: a counter, read and then written one higher, guarded. Its
 * version counts the writes, so an update that was lost shows. */
#include <stdio.h>
#include <stdlib.h>

#include "actor.h"
#include "checker.h"

static void on_written(clave_client *c, const clave_result *res, void *arg)
{
    struct actor *a = arg;
    struct workload_stats *st = &a->load->stats;
    clave_err_class class_ = clave_err_classify(res->err);
    (void)c;
    actor_answered(a, "write");
    if (res->err == CLAVE_OK) {
        world_must(res->stat != NULL);
        st->writes++;
        checker_written(a->load->checker, a, res->stat->version);
    } else if (res->err == CLAVE_ELOST) {
        st->refused++;
    } else if (class_ == CLAVE_CLASS_UNKNOWN || res->err == CLAVE_ECLOSED) {
        st->unknown++;
        checker_unknown(a->load->checker, a);
    } else if (res->err != CLAVE_EEXPIRED) {
        actor_unexpected(a, "guarded write", res->err);
    }
    world_tell(a->host->w, a->name, "its write of %lld: %s", (long long)a->value + 1,
               clave_err_name(res->err));
    actor_hold_on(a);
}

/* One that must fail as a whole: behind the write, a check of what is not there. */
static void on_futile(clave_client *c, const clave_result *res, void *arg)
{
    struct actor *a = arg;
    clave_err_class class_ = clave_err_classify(res->err);
    (void)c;
    actor_answered(a, "futile write");
    if (res->err != CLAVE_ENONODE && res->err != CLAVE_ELOST && res->err != CLAVE_ECLOSED &&
        res->err != CLAVE_EEXPIRED && class_ != CLAVE_CLASS_UNKNOWN)
        actor_unexpected(a, "futile write", res->err);
    actor_hold_on(a);
}

static clave_err submit_futile(struct actor *a, const char *text, size_t n)
{
    const clave_op ops[] = {
        {.kind = CLAVE_OP_SET,
         .path = workload_counter_path(a->lock),
         .data = text,
         .len = n,
         .version = -1},
        {.kind = CLAVE_OP_CHECK, .path = "/nowhere", .version = -1},
    };
    return clave_mutex_multi(a->mutex, a->owner, ops, 2, on_futile, a);
}

void increment_write(struct actor *a)
{
    char text[32];
    a->has_value = false;
    a->writes_left--;
    int n = snprintf(text, sizeof text, "%lld", (long long)a->value + 1);
    a->calling = true;
    clave_err err = world_chance(a->host->w, 50)
                        ? submit_futile(a, text, (size_t)n)
                        : clave_mutex_set(a->mutex, a->owner, workload_counter_path(a->lock), text,
                                          (size_t)n, -1, on_written, a);
    if (actor_started(a, err, "guarded write")) {
        a->state = ACTOR_WRITING;
        return;
    }
    if (err != CLAVE_ECLOSED && !(err == CLAVE_ELOST && a->lost))
        actor_unexpected(a, "guarded write", err);
    actor_hold_on(a);
}

static void on_founded(clave_client *c, const clave_result *res, void *arg)
{
    struct actor *a = arg;
    (void)c;
    (void)res; /* whatever it was: the next reading tells */
    actor_answered(a, "create");
    actor_hold_on(a);
}

static void on_read(clave_client *c, const clave_result *res, void *arg)
{
    static const clave_create_options o = {.size = sizeof o, .flags = CLAVE_CREATE_PARENTS};
    struct actor *a = arg;
    actor_answered(a, "read");
    if (a->state != ACTOR_READING || a->load->ending) {
        actor_hold_on(a);
    } else if (res->err == CLAVE_ENONODE) {
        a->calling = true;
        clave_err err = clave_create(c, workload_counter_path(a->lock), "0", 1, &o, on_founded, a);
        if (!actor_started(a, err, "create"))
            actor_hold_on(a);
    } else if (res->err == CLAVE_OK) {
        char text[32];
        snprintf(text, sizeof text, "%.*s", (int)res->len, (const char *)res->data);
        a->value = atoll(text);
        a->has_value = true;
        actor_hold_on(a);
    } else {
        actor_hold_on(a);
    }
}

void increment_read(struct actor *a)
{
    a->calling = true;
    clave_err err = clave_get(a->host->client, workload_counter_path(a->lock), NULL, on_read, a);
    if (actor_started(a, err, "read"))
        a->state = ACTOR_READING;
    else
        actor_release(a);
}
