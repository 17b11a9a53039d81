/* grants.h - one question or one write of the present holder, blocking, without a grant to keep. */
#ifndef CLAVE_TEST_LIB_GRANTS_H
#define CLAVE_TEST_LIB_GRANTS_H

#include "clave/latch.h"
#include "clave/mutex.h"
#include "clave/selector.h"
#include "clave/semaphore.h"
#include "clave/uv.h"

/* What a holder answered when it was asked for its grant. */
struct held {
    clave_err err;
    clave_grant *grant;
};

static inline struct held by_mutex(clave_mutex *l)
{
    struct held h;
    h.err = clave_mutex_grant(l, &h.grant);
    return h;
}

static inline struct held by_lease(clave_lease *l)
{
    struct held h;
    h.err = clave_lease_grant(l, &h.grant);
    return h;
}

static inline struct held by_latch(clave_latch *l)
{
    struct held h;
    h.err = clave_latch_grant(l, &h.grant);
    return h;
}

static inline struct held by_selector(clave_selector *s)
{
    struct held h;
    h.err = clave_selector_grant(s, &h.grant);
    return h;
}

/* 0: nothing is held. */
static inline int64_t token_held(struct held h)
{
    int64_t token = h.grant ? clave_grant_token(h.grant) : 0;
    clave_grant_free(h.grant);
    return token;
}

static inline int64_t deadline_held(struct held h)
{
    int64_t deadline = h.grant ? clave_grant_deadline(h.grant) : INT64_MIN;
    clave_grant_free(h.grant);
    return deadline;
}

static inline bool held_for(struct held h, int64_t ms)
{
    bool valid = h.grant && clave_grant_valid_for(h.grant, ms);
    clave_grant_free(h.grant);
    return valid;
}

static inline clave_err create_held(struct held h, const char *path, const void *data, size_t len,
                                    clave_create_mode mode, int64_t timeout_ms, clave_reply **out)
{
    if (h.grant)
        h.err = clave_grant_create(h.grant, path, data, len, mode, timeout_ms, out);
    clave_grant_free(h.grant);
    return h.err;
}

static inline clave_err set_held(struct held h, const char *path, const void *data, size_t len,
                                 int32_t version, int64_t timeout_ms)
{
    if (h.grant)
        h.err = clave_grant_set(h.grant, path, data, len, version, timeout_ms);
    clave_grant_free(h.grant);
    return h.err;
}

static inline clave_err delete_held(struct held h, const char *path, int32_t version,
                                    int64_t timeout_ms)
{
    if (h.grant)
        h.err = clave_grant_delete(h.grant, path, version, timeout_ms);
    clave_grant_free(h.grant);
    return h.err;
}

static inline clave_err multi_held(struct held h, const clave_op *ops, size_t nops,
                                   int64_t timeout_ms, clave_reply **out)
{
    if (h.grant)
        h.err = clave_grant_multi(&h.grant, 1, ops, nops, timeout_ms, out);
    clave_grant_free(h.grant);
    return h.err;
}

#endif
