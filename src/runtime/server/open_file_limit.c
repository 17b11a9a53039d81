/* open_file_limit.c - see open_file_limit.h. Called by uv_server.c and by the verbs. */
#include "runtime/server/open_file_limit.h"

#include <string.h>
#include <sys/resource.h>

#include "runtime/server/admin.h"
#include "runtime/server/uv_server.h"
#include "runtime/thread_start.h"

enum { RESERVED_FILES = 32 };
/* Without so many for the log, a snapshot and the first clients it does not start. */
enum { LEAST_FILES = 16 };

/* A gate in this process takes a quarter of them for HTTP, and both ends of its sessions are here.
 */
size_t clave__open_files_for_connections(const struct server_run_options *o)
{
    struct rlimit limit;
    size_t reserved = RESERVED_FILES;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    reserved += o->admin ? ADMIN_MAX_CONNECTIONS : 0;
    reserved += o->metrics ? ADMIN_MAX_CONNECTIONS : 0;
    size_t most = limit.rlim_cur > 2 * reserved ? limit.rlim_cur - reserved : limit.rlim_cur / 2;
    return o->gate ? (most - most / 4) / 2 : most;
}

clave_err clave__open_files_check(const struct fault *f)
{
    int fault = clave__files_check(LEAST_FILES);
    if (fault == 0)
        return CLAVE_OK;
    return clave__start_error(f, clave__err_of_errno(fault),
                              "no files are left for the log and for clients: %s", strerror(fault));
}

void clave__open_files_raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}
