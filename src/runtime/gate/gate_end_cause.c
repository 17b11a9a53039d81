/* gate_end_cause.c - see gate_end_cause.h. What must stay true: the mutex is held no longer than a
 * copy takes, so that the gate never holds up the server. */
#include "runtime/gate/gate_end_cause.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "observe/lock_history.h"
#include "web/web.h"

enum { MOST_ENDS = 4096 };

struct gate_end {
    int64_t czxid;
    enum server_gone how;
};

struct gate_end_causes {
    const struct clave_mem *mem;
    uv_async_t *told;
    pthread_mutex_t mutex;
    size_t n; /* this and `list` are under the mutex */
    struct gate_end list[MOST_ENDS];
    struct gate_end taken[MOST_ENDS]; /* belongs to the gate's thread */
};

clave_err gate_end_cause_new(struct gate_end_causes **out, const struct clave_mem *mem,
                             uv_async_t *told)
{
    struct gate_end_causes *e = *out = clave__mem_zalloc(mem, sizeof *e);
    if (!e)
        return CLAVE_ENOMEM;
    e->mem = mem;
    e->told = told;
    pthread_mutex_init(&e->mutex, NULL);
    return CLAVE_OK;
}

void gate_end_cause_put(struct gate_end_causes *e, int64_t czxid, enum server_gone how)
{
    assert(how <= GONE_SESSION_EXPIRED);
    pthread_mutex_lock(&e->mutex);
    if (e->n < MOST_ENDS)
        e->list[e->n++] = (struct gate_end){czxid, how};
    pthread_mutex_unlock(&e->mutex);
    uv_async_send(e->told);
}

void gate_end_cause_pass_on(struct gate_end_causes *e, struct web *w)
{
    static const enum lock_cause causes[] = {
        [GONE_DELETED] = LOCK_RELEASED,
        [GONE_DELETED_BY_OTHER] = LOCK_BROKEN,
        [GONE_SESSION_CLOSED] = LOCK_CLOSED,
        [GONE_SESSION_EXPIRED] = LOCK_EXPIRED,
    };
    pthread_mutex_lock(&e->mutex);
    size_t n = e->n;
    memcpy(e->taken, e->list, n * sizeof *e->list);
    e->n = 0;
    pthread_mutex_unlock(&e->mutex);
    for (size_t i = 0; i < n; i++)
        clave__web_tell_cause(w, e->taken[i].czxid, causes[e->taken[i].how]);
}

void gate_end_cause_free(struct gate_end_causes *e)
{
    if (!e)
        return;
    pthread_mutex_destroy(&e->mutex);
    clave__mem_free(e->mem, e);
}
