/* async/persistent_node.h - a node that stays as long as its owner does: Curator's PersistentNode,
 * PersistentTtlNode and, with one node a member below a group's path, GroupMember.
 *
 * The owner says once what node there is to be. It is created, with missing parents, and created
 * again whenever somebody has deleted it and in each new session. What Curator does not do:
 *
 * An ephemeral node of another session is never adopted: it would vanish with that session. If an
 * earlier session of this very object made it, one transaction deletes it and creates the new node,
 * so that there is no moment without one.
 *
 * If another owner's node is in the way, that is told (CONFLICT), and the node is created when the
 * other one is gone. With `replace`, it takes the place at the start instead: the last to come has
 * it, and the former owner is told of the conflict.
 *
 * An answer that was lost makes neither a second node nor an unknown outcome.
 *
 * A server refuses for good (ENOAUTH, for instance): FAILED tells, and it is tried again on the
 * next connection, not in a loop.
 *
 * Nothing excludes two owners with the same path on one client: give each its own path.
 *
 * What others write to the node stays until its owner sets data again. ZooKeeper can make a write
 * depend on a version but not on which node it is: if the node of one owner is deleted while its
 * write is under way, and another owner's node of the same version has taken the place, that node
 * gets the data. The writer is not told OK then, but the other owner's data are overwritten.
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules. The blocking form
 * is clave/persistent_node.h. */
#ifndef CLAVE_ASYNC_PERSISTENT_NODE_H
#define CLAVE_ASYNC_PERSISTENT_NODE_H

#include "clave/async/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_persistent_node clave_async_persistent_node; /* opaque */

typedef enum clave_persistent_node_kind {
    CLAVE_KEPT_EPHEMERAL, /* gone with the session, or when it is closed or freed */
    /* The same, and the server appends a number to the path when it is first created; from then on
     * it keeps that name. */
    CLAVE_KEPT_EPHEMERAL_SEQUENTIAL,
    CLAVE_KEPT_PERSISTENT, /* stays until it is closed; an existing persistent node is adopted, and
                              gets the data */
    /* Stays for `ttl_ms` after its owner has died or freed it, kept alive by a child `touch` that
     * is written every half of ttl_ms; otherwise as PERSISTENT. Needs a server with extended types.
     */
    CLAVE_KEPT_TTL,
} clave_persistent_node_kind;

typedef enum clave_persistent_node_event_type {
    CLAVE_PERSISTENT_NODE_PRESENT, /* it was created, or created again: `path`, `czxid` */
    /* It is gone: ENONODE, somebody deleted it, and it is being created again; EEXPIRED, the
     * session was lost; ECLOSED, the client was closed. */
    CLAVE_PERSISTENT_NODE_ABSENT,
    CLAVE_PERSISTENT_NODE_CONFLICT, /* another's node is there: `owner`; waits until it is gone */
    CLAVE_PERSISTENT_NODE_FAILED,   /* the server refused: `err`; tried again when connected anew */
} clave_persistent_node_event_type;

typedef struct clave_persistent_node_event {
    clave_persistent_node_event_type type;
    const char *path;
    int64_t czxid; /* PRESENT: of the node. It grows with each node that is created */
    int64_t owner; /* CONFLICT: the session that has the node; 0: it is not ephemeral */
    clave_err err; /* ABSENT and FAILED */
} clave_persistent_node_event;
/* What `ev` points to is valid during the call only. The callback may free the node. */
typedef void clave_persistent_node_event_cb(clave_async_persistent_node *n,
                                            const clave_persistent_node_event *ev, void *arg);
typedef void clave_async_persistent_node_cb(clave_async_persistent_node *n, clave_err err,
                                            void *arg);

typedef struct clave_persistent_node_options {
    size_t size; /* CLAVE_PERSISTENT_NODE_OPTIONS_INIT sets it: clave/options.h */
    clave_persistent_node_kind kind;
    bool replace;          /* whatever node is there at the start, unless it has children */
    int64_t ttl_ms;        /* for CLAVE_KEPT_TTL only */
    const void *data;      /* copied */
    size_t len;            /* in bytes */
    const clave_acl *acls; /* NULL: open; copied */
    size_t nacls;
    clave_persistent_node_event_cb *event_cb; /* may be NULL */
    void *event_arg;
} clave_persistent_node_options;
#define CLAVE_PERSISTENT_NODE_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_persistent_node_options)

/* Keeps a node at `path` from now on. `o` may be NULL. On CLAVE_OK *out belongs to the caller, who
 * frees it with clave_async_persistent_node_free; on an error it is NULL. EPATH: the path is not
 * valid. EINVAL: the options. ENOMEM. ECLOSED. */
CLAVE_MAKING clave_err clave_async_persistent_node_new(clave_async_persistent_node **out,
                                                       clave_async_client *c, const char *path,
                                                       const clave_persistent_node_options *o);
/* Stops keeping it and frees. An ephemeral node is deleted, also one whose creation is under way;
 * a persistent one stays. No callback follows. If there is no memory for the delete, the node goes
 * with its session. NULL is ignored. */
CLAVE_EXPORT void clave_async_persistent_node_free(clave_async_persistent_node *n);
/* Stops keeping the node and deletes it, whatever its kind; no event follows. cb (may be NULL) runs
 * once, later: CLAVE_OK: there is no node of this owner. ENOTEMPTY: it has children. ENOAUTH, and
 * others of clave_async_delete. EEXPIRED: the session was lost meanwhile, and an ephemeral node
 * with it. At once: EINVAL: it was closed before. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_async_persistent_node_close(clave_async_persistent_node *n,
                                                         clave_async_persistent_node_cb *cb,
                                                         void *arg);
/* Changes the data, now and of each node that is created later. cb (may be NULL) runs once, later,
 * unless the node is freed before: CLAVE_OK: the node has these data, or newer ones. ENOAUTH and
 * others of its class: the server refused. ECANCELED: it was closed first. ECLOSED. It waits for as
 * long as there is a conflict. At once: EINVAL: it was closed. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_async_persistent_node_set(clave_async_persistent_node *n,
                                                       const void *data, size_t len,
                                                       clave_async_persistent_node_cb *cb,
                                                       void *arg);
/* True from PRESENT to ABSENT, as far as is known here. */
CLAVE_METHOD bool clave_async_persistent_node_is_present(const clave_async_persistent_node *n);
/* The path of the node; that of a sequential one has its number once it has been PRESENT. Valid
 * until the node is freed. */
CLAVE_METHOD const char *clave_async_persistent_node_path(const clave_async_persistent_node *n);

#ifdef __cplusplus
}
#endif
#endif
