/* gate_limits.c - how much of the gate's connections and files its clients may use. */
#include <sys/resource.h>

#include "runtime/gate/gate_internal.h"

enum { RESERVED_FILES = 64 };

size_t gate_files(const struct gate_options *o, size_t part, size_t most)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY)
        return most;
    size_t room =
        files.rlim_cur > 2 * RESERVED_FILES ? files.rlim_cur - RESERVED_FILES : files.rlim_cur / 2;
    room = (o->in_server ? room / 4 : room) / part;
    return most < room ? most : room;
}

size_t gate_file_connections(const struct gate_options *o)
{
    return gate_files(o, 1, GATE_MOST_CONNECTIONS);
}

unsigned gate_max_connections(const struct gate *g, const struct gate_limits *limits)
{
    size_t most = limits->max_connections > 0 ? limits->max_connections : GATE_CONNECTIONS;
    return (unsigned)(most < g->file_connections ? most : g->file_connections);
}

/* A waiting request must not use up the connection that renewals and releases need. */
size_t gate_max_waiting(const struct gate *g, const struct gate_limits *limits)
{
    size_t connections = gate_max_connections(g, limits);
    return limits->max_waiting > 0 ? limits->max_waiting : connections - connections / 4;
}
