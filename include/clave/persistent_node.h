/* persistent_node.h - a node that stays as long as its owner does, blocking, for threads: Curator's
 * PersistentNode, PersistentTtlNode and GroupMember. The asynchronous form, which explains when a
 * node is created and what a conflict is, is clave/async/persistent_node.h.
 *
 *     clave_persistent_node_options o = CLAVE_PERSISTENT_NODE_OPTIONS_INIT;
 *     o.data = "up";
 *     o.len = 2;
 *     err = clave_persistent_node_new(&node, client, "/workers/a", &o);
 *     if (err == CLAVE_OK)
 *         err = clave_persistent_node_await(node, 5000);
 *     ...
 *     clave_persistent_node_free(node);
 *
 * Any thread may call anything here; on the loop's thread (in a callback) what waits returns
 * ELOOPTHREAD. Events come on the loop's thread. timeout_ms is in milliseconds; negative: no
 * limit. */
#ifndef CLAVE_PERSISTENT_NODE_H
#define CLAVE_PERSISTENT_NODE_H

#include "clave/async/persistent_node.h"
#include "clave/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_persistent_node clave_persistent_node; /* opaque */

/* Keeps a node at `path` from now on; does not wait for it. `o` may be NULL. On CLAVE_OK *out
 * belongs to the caller, who frees it with clave_persistent_node_free; on an error it is NULL. It
 * may outlive the session (see clave_client_close). EPATH: the path is not valid. EINVAL: the
 * options. ENOMEM. ECLOSED. */
CLAVE_MAKING clave_err clave_persistent_node_new(clave_persistent_node **out, clave_client *c,
                                                 const char *path,
                                                 const clave_persistent_node_options *o);
/* Waits until the node is there. EBUSY: not in time, since another owner has a node there.
 * ETIMEDOUT: not in time. ENOAUTH and others: the server refused. EINVAL: it was closed.
 * ELOOPTHREAD. ECLOSED. */
CLAVE_METHOD clave_err clave_persistent_node_await(clave_persistent_node *n, int64_t timeout_ms);
/* Changes the data, and waits until the node has them. ETIMEDOUT: not in time, and later it may
 * have them. Other errors as clave_async_persistent_node_set. ELOOPTHREAD. */
CLAVE_METHOD clave_err clave_persistent_node_set(clave_persistent_node *n, const void *data,
                                                 size_t len, int64_t timeout_ms);
/* Stops keeping the node, deletes it and waits until it is gone. Errors as
 * clave_async_persistent_node_close, ETIMEDOUT, ELOOPTHREAD. */
CLAVE_METHOD clave_err clave_persistent_node_close(clave_persistent_node *n, int64_t timeout_ms);
/* Stops keeping it and frees; does not wait. An ephemeral node is deleted, a persistent one stays.
 * NULL is ignored. */
CLAVE_EXPORT void clave_persistent_node_free(clave_persistent_node *n);

/* True while the node is there, as far as is known here. Answered from memory. */
CLAVE_METHOD bool clave_persistent_node_is_present(clave_persistent_node *n);
/* Copies the node's path, with the number of a sequential one, into `out` and NUL-terminates it;
 * returns its length, as snprintf does. */
CLAVE_METHOD size_t clave_persistent_node_path(clave_persistent_node *n, char *out, size_t cap);

#ifdef __cplusplus
}
#endif
#endif
