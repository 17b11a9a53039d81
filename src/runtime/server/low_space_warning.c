/* low_space_warning.c - warns before the disk is full and the server ends. */
#include "runtime/server/uv_server_internal.h"

/* Below a tenth, until there is an eighth again. */
static bool is_low_space(const struct disk_space *s, bool was_low)
{
    return s->free_bytes < s->total_bytes / (was_low ? 8 : 10);
}

void clave__run_warn_of_low_space(struct server_run *r, const struct disk_space *s)
{
    if (s->free_bytes < 0)
        return; /* not known: it may still be low */
    const long long left = (long long)s->free_bytes >> 20, all = (long long)s->total_bytes >> 20;
    const struct log_about about = {.path = r->dir.path};
    const bool low = is_low_space(s, r->is_low);
    if (low && !r->is_low)
        clave__log_about(
            &r->log, CLAVE_LOG_WARN, &about,
            "the disk of %s has %lld MiB of %lld MiB left, less than a tenth: free some "
            "space, because the server ends when it is full",
            r->dir.path, left, all);
    if (!low && r->is_low)
        clave__log_about(&r->log, CLAVE_LOG_INFO, &about,
                         "the disk of %s has %lld MiB of %lld MiB left again", r->dir.path, left,
                         all);
    r->is_low = low;
}
