/* async_grants.h - one question or one write of the present holder, without a grant to keep. */
#ifndef CLAVE_TEST_LIB_ASYNC_GRANTS_H
#define CLAVE_TEST_LIB_ASYNC_GRANTS_H

#include "base/deadline.h"
#include "clave/async/lock_delay.h"
#include "clave/async/once.h"
#include "recipe/grant_held.h"

static inline bool mutex_valid_for(const clave_async_mutex *m, uint64_t owner, int64_t now,
                                   int64_t ms)
{
    struct grant_facts f;
    return clave__mutex_held(m, owner, &f) && deadline_lasts(f.deadline, now, ms);
}

static inline bool lease_valid_for(const clave_async_lease *l, int64_t now, int64_t ms)
{
    struct grant_facts f;
    return clave__lease_held(l, &f) && deadline_lasts(f.deadline, now, ms);
}

static inline bool latch_valid_for(const clave_async_latch *l, int64_t now, int64_t ms)
{
    struct grant_facts f;
    return clave__latch_held(l, &f) && deadline_lasts(f.deadline, now, ms);
}

/* What a holder answered when it was asked for its grant. */
struct granted {
    clave_err err;
    clave_async_grant *grant;
};

static inline struct granted of_mutex(const clave_async_mutex *m, uint64_t owner)
{
    struct granted g;
    g.err = clave_async_mutex_grant(m, owner, &g.grant);
    return g;
}

static inline struct granted of_lease(const clave_async_lease *l)
{
    struct granted g;
    g.err = clave_async_lease_grant(l, &g.grant);
    return g;
}

static inline struct granted of_latch(const clave_async_latch *l)
{
    struct granted g;
    g.err = clave_async_latch_grant(l, &g.grant);
    return g;
}

static inline clave_err guarded_create(struct granted g, const char *path, const void *data,
                                       size_t len, clave_create_mode mode, clave_result_cb *cb,
                                       void *arg)
{
    if (g.err == CLAVE_OK)
        g.err = clave_async_grant_create(g.grant, path, data, len, mode, cb, arg);
    clave_async_grant_free(g.grant);
    return g.err;
}

static inline clave_err guarded_set(struct granted g, const char *path, const void *data,
                                    size_t len, int32_t version, clave_result_cb *cb, void *arg)
{
    if (g.err == CLAVE_OK)
        g.err = clave_async_grant_set(g.grant, path, data, len, version, cb, arg);
    clave_async_grant_free(g.grant);
    return g.err;
}

static inline clave_err guarded_delete(struct granted g, const char *path, int32_t version,
                                       clave_result_cb *cb, void *arg)
{
    if (g.err == CLAVE_OK)
        g.err = clave_async_grant_delete(g.grant, path, version, cb, arg);
    clave_async_grant_free(g.grant);
    return g.err;
}

static inline clave_err guarded_multi(struct granted g, const clave_op *ops, size_t nops,
                                      clave_result_cb *cb, void *arg)
{
    if (g.err == CLAVE_OK)
        g.err = clave_async_grant_multi(&g.grant, 1, ops, nops, cb, arg);
    clave_async_grant_free(g.grant);
    return g.err;
}

static inline clave_err once_begin_held(clave_async_once **out, struct granted g,
                                        const clave_once_options *o, clave_async_once_cb *cb,
                                        void *arg)
{
    *out = NULL;
    if (g.err == CLAVE_OK)
        g.err = clave_async_once_begin(out, g.grant, o, cb, arg);
    clave_async_grant_free(g.grant);
    return g.err;
}

static inline clave_err delay_begin_held(clave_async_delay **out, struct granted g,
                                         const clave_delay_options *o, clave_async_delay_cb *cb,
                                         void *arg)
{
    *out = NULL;
    if (g.err == CLAVE_OK)
        g.err = clave_async_delay_begin(out, g.grant, o, cb, arg);
    clave_async_grant_free(g.grant);
    return g.err;
}

#endif
