/* gate_server_stats.c - see gate_server_stats.h. What must stay true: the mutex is held no longer
 * than a copy takes. */
#include "runtime/gate/gate_server_stats.h"

#include <pthread.h>

#include "clave/uv.h"
#include "web/web.h"

struct gate_server_stats {
    const struct clave_mem *mem;
    uv_async_t *told;
    pthread_mutex_t mutex;
    struct server_health health; /* under the mutex */
};

clave_err gate_server_stats_new(struct gate_server_stats **out, const struct clave_mem *mem,
                                uv_async_t *told)
{
    struct gate_server_stats *f = *out = clave__mem_zalloc(mem, sizeof *f);
    if (!f)
        return CLAVE_ENOMEM;
    f->mem = mem;
    f->told = told;
    pthread_mutex_init(&f->mutex, NULL);
    return CLAVE_OK;
}

void gate_server_stats_put(struct gate_server_stats *f, const struct server_health *health)
{
    pthread_mutex_lock(&f->mutex);
    f->health = *health;
    pthread_mutex_unlock(&f->mutex);
    uv_async_send(f->told);
}

void gate_server_stats_pass_on(struct gate_server_stats *f, struct web *w)
{
    pthread_mutex_lock(&f->mutex);
    const struct server_health h = f->health;
    pthread_mutex_unlock(&f->mutex);
    bool sizes = h.driver.snapshot_bytes >= 0 && h.driver.log_bytes >= 0;
    const int64_t figures[WEB_FIGURES] = {
        [WEB_UPTIME_MS] = h.uptime_ms,
        [WEB_SESSIONS] = h.sessions,
        [WEB_CONNECTIONS] = h.connections,
        [WEB_REQUESTS] = h.requests,
        [WEB_OUTSTANDING] = h.outstanding,
        [WEB_ZNODES] = h.nodes,
        [WEB_WATCHES] = h.watches,
        [WEB_DATA_BYTES] = h.data_bytes,
        [WEB_READ_MS] = h.read_ms,
        [WEB_WRITE_MS] = h.write_ms,
        [WEB_FSYNC_US] = h.fsync_us,
        [WEB_FILES_BYTES] = sizes ? h.driver.snapshot_bytes + h.driver.log_bytes : -1,
        [WEB_FREE_BYTES] = h.driver.free_bytes,
        [WEB_DISK_BYTES] = h.driver.total_bytes,
        [WEB_MEMORY_BYTES] = h.driver.resident_bytes,
        [WEB_SNAPSHOT_SECONDS] = h.driver.snapshot_seconds,
        [WEB_SNAPSHOT_BEHIND] = h.snapshot_behind,
        [WEB_QUIET_MS] = h.quiet_ms,
    };
    clave__web_take_figures(w, clave_now(), figures);
}

void gate_server_stats_free(struct gate_server_stats *f)
{
    if (!f)
        return;
    pthread_mutex_destroy(&f->mutex);
    clave__mem_free(f->mem, f);
}
