/* snapshot_load.h - what is in a snapshot file, in its order: header, sessions, the map of access
 * lists, nodes, and up to three parts that each end in a seal (a checksum of everything before).
 * The loader makes a tree of it; the history of locks takes from it what it needs, without a tree.
 *
 * That a file is whole is known at its end only, so what a visitor was shown before may be wrong.
 */
#ifndef CLAVE_SERVER_STORE_SNAPSHOT_LOAD_H
#define CLAVE_SERVER_STORE_SNAPSHOT_LOAD_H

#include <stdbool.h>

#include "clave/err.h"
#include "server/tree/node.h"
#include "wire/jute.h"

struct snapshot_node {
    struct jbytes path; /* "" is the root */
    struct jbytes data;
    int64_t acl_key;
    struct node_stat stat; /* without num_children, which no file has */
};

/* Any other result than CLAVE_OK ends the reading. `arg` is that of the reader. */
struct snapshot_visitor {
    /* timeout_ms 0: no session, but the id that the next one gets. NULL: none is wanted. */
    clave_err (*session)(void *arg, int64_t id, int32_t timeout_ms);
    /* Before the first list: so many follow. NULL, and list too: none is wanted. */
    clave_err (*lists)(void *arg, size_t n);
    clave_err (*list)(void *arg, int64_t key, struct jvec entries);
    clave_err (*node)(void *arg, const struct snapshot_node *n);
};

struct snapshot_reader {
    const struct snapshot_visitor *visitor;
    void *arg;
    const uint8_t *begin;
    struct jreader r;
    char *fault; /* cap bytes */
    size_t cap;
    /* After the reading: */
    int64_t newest; /* zxid of anything in the file */
    bool has_digest;
    int64_t digest_zxid;
    uint64_t digest;
};

/* Reads all of a file. ECORRUPT: `fault` says what is wrong and at which offset. */
clave_err clave__snapshot_read(struct snapshot_reader *in, const void *p, size_t n);

#endif
