/* gate_limits.c - how much of the gate's connections and files its clients may use, and of what the
 * servers take from the gate's address. */
#include <sys/resource.h>

#include "client/hosts.h"
#include "runtime/gate/gate_internal.h"

enum { RESERVED_FILES = 64 };
/* The connections that a server takes from one address (maxClientCnxns, --max-connections), as far
 * as a gate can know: the default of Apache's and ours. */
enum { OF_ADDRESS = 60 };

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

/* One sender's sessions must not use up what the servers take from this address: nobody else could
 * make a session then. Four fifths of what half of the servers take, since the others may be down,
 * less the gate's own session. 0: the servers do not count this gate, and four fifths of all do. */
size_t gate_default_sender_sessions(const struct gate *g, const struct gate_options *o)
{
    struct hosts hosts;
    if (o->in_server || clave__hosts_init(&hosts, &g->mem, o->hosts) != CLAVE_OK)
        return 0;
    size_t servers = (hosts.count + 1) / 2;
    bool counted = true;
    for (size_t i = 0; i < hosts.count; i++)
        counted = counted && hosts.list[i].port != 0; /* not a Unix socket */
    clave__hosts_fini(&hosts);
    return counted ? (servers * OF_ADDRESS - 1) * 4 / 5 : 0;
}

size_t gate_max_sender_sessions(const struct gate *g, const struct gate_limits *limits)
{
    return limits->max_sender_sessions > 0 ? limits->max_sender_sessions : g->sender_sessions;
}

/* A waiting request must not use up the connection that renewals and releases need. */
size_t gate_max_waiting(const struct gate *g, const struct gate_limits *limits)
{
    size_t connections = gate_max_connections(g, limits);
    return limits->max_waiting > 0 ? limits->max_waiting : connections - connections / 4;
}
