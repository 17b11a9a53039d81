/* znode_client.h - the part of a process that reads and writes a few plain znodes, without locks,
 * several calls under way at a time. What comes of it is checked as a history, when the server
 * stands alone: one process, of which reads are linearizable, too. */
#ifndef CLAVE_SIM_ZNODE_CLIENT_H
#define CLAVE_SIM_ZNODE_CLIENT_H

#include "host.h"
#include "znode_history.h"

enum { ZNODES = 2, ZNODE_CALLS = 4 };

extern const char *const znode_paths[ZNODES];

/* What all processes of a world share. */
struct znode_world {
    struct znode_history history;
    int64_t values;          /* written so far: each is another */
    int32_t version[ZNODES]; /* that was seen last: what others may ask for */
};

struct znode_client {
    struct host *host;
    struct znode_world *world;
    int64_t rest_us; /* mean, between calls */
    unsigned left;   /* calls that it may begin */
    struct alarm alarm;
    bool due;
    struct znode_slot {
        struct znode_client *owner;
        bool busy;
        size_t call; /* in the history */
    } slots[ZNODE_CALLS];
};

void znode_client_init(struct znode_client *z, struct host *h, struct znode_world *w,
                       unsigned calls, int64_t rest_us);
/* Of its process: it begins, has something to do, is about to end. */
void znode_client_start(struct znode_client *z);
void znode_client_act(struct znode_client *z);
void znode_client_end(struct znode_client *z);
/* Nothing new from here on. */
void znode_client_finish(struct znode_client *z);
bool znode_client_is_idle(const struct znode_client *z);

#endif
