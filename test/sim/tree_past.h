/* tree_past.h - what a few znodes were as of each transaction: the truth that witnesses hold the
 * answers of a server against. It is read from the records that go to the disk, not from the
 * server's tree, and forgets with the disk what a crash has undone. */
#ifndef CLAVE_SIM_TREE_PAST_H
#define CLAVE_SIM_TREE_PAST_H

#include "server_host.h"

/* The znodes: one, four below it and one below one of these. */
enum { PAST_TOP, PAST_A, PAST_BELOW_A, PAST_B, PAST_C, PAST_NODES };
extern const char *const past_paths[PAST_NODES];

/* From this transaction on, until the next state. */
struct past_state {
    int64_t zxid;
    bool exists;
    bool readable;
    int64_t mzxid;
    int64_t pzxid;
    int64_t owner;
    int32_t version;
    int32_t aversion;
    int32_t children;
    int64_t value;
};

struct past_node {
    struct past_state *states;
    size_t n, cap;
};

struct past_session_end {
    int64_t zxid;
    int64_t session;
};

struct tree_past {
    struct world *w;
    struct past_node nodes[PAST_NODES];
    struct past_session_end *ends;
    size_t nends, ends_cap;
    int64_t durable; /* as the disk knows it, which tells the server later */
    int64_t shown;   /* the newest transaction of which anybody was told */
};

/* Of a server that stands alone. */
void tree_past_init(struct tree_past *p, struct server_host *h);
void tree_past_fini(struct tree_past *p);

const struct past_state *tree_past_at(const struct tree_past *p, unsigned node, int64_t zxid);
/* A client was told of a transaction, which has to be on the disk. */
void tree_past_note_shown(struct tree_past *p, const char *who, int64_t zxid);
/* The session's end is on the disk. */
bool tree_past_has_ended(const struct tree_past *p, int64_t session);

#endif
