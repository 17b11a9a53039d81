/* replica.h - what one member of an ensemble knows: a copy of the leader's tree and sessions
 * that follows it record by record, answers reads from what has come so far, and tells those
 * who watch when it comes. The engine as shipped, which here writes nothing of its own. */
#ifndef CLAVE_SIM_REPLICA_H
#define CLAVE_SIM_REPLICA_H

#include "allocator.h"
#include "server/server.h"
#include "world.h"

/* In place of the clients' own timeouts: the leader's tracker ends sessions, no engine does. So it
 * is longer than any world lasts. */
enum { ENGINE_TIMEOUT_MS = 10 * 24 * 3600 * 1000 };

/* A record of the leader's log, as it stands there. */
struct log_entry {
    int64_t zxid;
    size_t at;
    size_t n;
};

struct replica {
    struct world *w;
    struct server *server; /* NULL: its process is down */
    struct allocator allocator;
};

void replica_init(struct replica *r, struct world *w);
void replica_fini(struct replica *r);

/* With an empty tree, and this in /zookeeper/config. */
void replica_start(struct replica *r, const struct server_options *o, const char *config);
void replica_end(struct replica *r);
/* The next record; bytes are the entry's own. */
void replica_apply(struct replica *r, const struct log_entry *e, const void *bytes);
/* It follows the leader of this epoch: what it shows from now on is of it. */
void replica_enter(struct replica *r, int64_t epoch);
int64_t replica_zxid(const struct replica *r);
bool replica_knows(const struct replica *r, int64_t session);
/* A client's connection. Its session has passed the leader, or is known here; NULL: it is
 * not. What the engine has answered to the handshake is in its output. */
struct server_conn *replica_attach(struct replica *r, int64_t session, void *user);

/* It is gone. Its watches go with it, also if they are many. */
void replica_detach(struct replica *r, struct server_conn *c);

#endif
