#include "lib/semaphore_user.h"

#include "lib/async_grants.h"
#include "lib/unit.h"

static void on_event(clave_async_semaphore *s, const clave_lease_event *ev, void *arg)
{
    struct semaphore_user *a = arg;
    struct grant_facts g;
    assert_ptr_equal(s, a->s);
    a->ahead = ev->ahead;
    if (ev->kind == CLAVE_LEASE_QUEUED) {
        a->queued++;
        return;
    }
    bool lost = ev->kind == CLAVE_LEASE_LOST;
    assert_int_equal(clave__lease_held(ev->lease, &g), !lost);
    a->lost += lost;
    a->asked += !lost;
    a->why = ev->why;
}

clave_err semaphore_user_open_with(struct semaphore_user *a, struct memnet *p, size_t client,
                                   clave_semaphore_options o)
{
    *a = (struct semaphore_user){.p = p, .client = client};
    o.size = sizeof o;
    o.event_cb = on_event;
    o.event_arg = a;
    return clave_async_semaphore_new(&a->s, p->clients[client].c, "/s", &o);
}

void semaphore_user_open(struct semaphore_user *a, struct memnet *p, size_t client, uint32_t limit)
{
    clave_semaphore_options o = {.limit = limit};
    assert_int_equal(semaphore_user_open_with(a, p, client, o), CLAVE_OK);
}

void semaphore_user_close(struct semaphore_user *a)
{
    clave_async_semaphore_free(a->s);
    a->s = NULL;
    a->n = 0;
    memnet_settle(a->p);
}

static void on_leases(clave_async_semaphore *s, clave_err err, clave_async_lease *const *leases,
                      size_t n, void *arg)
{
    struct semaphore_user *a = arg;
    (void)s;
    a->answers++;
    a->err = err;
    assert_int_equal(err == CLAVE_OK, n > 0);
    for (size_t i = 0; i < n; i++)
        a->held[a->n++] = leases[i];
}

clave_err semaphore_user_begin_acquire(struct semaphore_user *a, uint64_t request, size_t n,
                                       int64_t within_ms)
{
    int64_t deadline = within_ms == OWNER_TRY       ? CLAVE_TRY
                       : within_ms == OWNER_FOREVER ? CLAVE_NEVER
                                                    : a->p->now + within_ms;
    return clave_async_semaphore_acquire(a->s, request, n, deadline, on_leases, a);
}

clave_err semaphore_user_acquire(struct semaphore_user *a, size_t n, int64_t within_ms)
{
    clave_err err = semaphore_user_begin_acquire(a, 0, n, within_ms);
    memnet_settle(a->p);
    return err;
}

static void on_left(clave_async_semaphore *s, clave_err err, void *arg)
{
    (void)s;
    struct semaphore_user *a = arg;
    a->departures++;
    a->left = err;
}

static clave_err release(struct semaphore_user *a, clave_async_lease_left_cb *cb)
{
    clave_err err = clave_async_lease_release(a->held[0], cb, a);
    memmove(a->held, a->held + 1, --a->n * sizeof a->held[0]);
    memnet_settle(a->p);
    return err;
}

clave_err semaphore_user_release(struct semaphore_user *a)
{
    return release(a, NULL);
}

clave_err semaphore_user_release_confirmed(struct semaphore_user *a)
{
    return release(a, on_left);
}

size_t semaphore_user_leases_at_server(struct memnet *p)
{
    return memnet_list(p, 0, "/s/leases", NULL, 0);
}
