/* async/plain_layouts.h - the locks and elections that everybody writes first, with the layouts of
 * such programs: no protected prefix in the names, and a parent and names of your choice.
 *
 *  simple lock      <path>/<prefix><10 digits>  sequential: the first holds
 *  fair election    <path>/<prefix><10 digits>  likewise: the first leads
 *  unfair election  <node>                      its creator leads
 *
 * All nodes are ephemeral.
 *
 * For joining programs of that kind, and for learning. A program of your own is better off with
 * clave/async/mutex.h and clave/async/latch.h, whose nodes say by their names whose they are.
 *
 * These functions make a clave_async_mutex or a clave_async_latch: all calls, events, deadlines,
 * tokens and maximum holds are as described there. So a lock held longer than max_hold_ms has its
 * node deleted, is LOST(EMAXHOLD), and its release returns EMAXHOLD.
 *
 * The data of the nodes is yours, byte for byte: NULL is none. When the answer to a create is lost,
 * the node is found by its session and its czxid (CLAVE_CREATE_CERTAIN). So the same session must
 * not create nodes of these names in any other way.
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules. The blocking forms
 * are clave_mutex_new_simple, clave_latch_new_fair and clave_latch_new_unfair. */
#ifndef CLAVE_ASYNC_PLAIN_LAYOUTS_H
#define CLAVE_ASYNC_PLAIN_LAYOUTS_H

#include "clave/async/latch.h"
#include "clave/async/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a mutex, as clave_async_mutex_new, with the nodes of a simple lock. EINVAL also when the
 * prefix is empty, contains a slash, or consists of digits only. The order is that of the numbers;
 * children with other names count, as everywhere: those without the prefix by their whole name. */
CLAVE_MAKING clave_err clave_async_mutex_new_simple(clave_async_mutex **out, clave_async_client *c,
                                                    const char *path, const char *prefix,
                                                    const clave_mutex_options *o);

/* Makes a latch, as clave_async_latch_new, with the nodes of a fair election; the id is the node's
 * data. EINVAL as above, and for a priority, which would have to be in the name. */
CLAVE_MAKING clave_err clave_async_latch_new_fair(clave_async_latch **out, clave_async_client *c,
                                                  const char *path, const char *prefix,
                                                  const clave_latch_options *o);

/* Makes a latch, as clave_async_latch_new, with one node for all: its creator leads, the others
 * watch it, and all of them try to create it when it is deleted. That costs the server two requests
 * and an event for each candidate at each change of leaders (`clave bench herd` counts them), and
 * no candidate is certain ever to lead. A candidate that resigned, or whose term was over, begins
 * to try a tenth of a second later than the others. Waiting candidates get QUEUED and NEXT, with 1
 * ahead: the leader.
 *
 * The node's name does not say whose it is. If an operator deletes the leader's node and another
 * candidate creates it, the server accepts a guarded write of the former leader until that leader
 * is notified, which is at once; a leader that resigns in that moment deletes the other's node, and
 * the other gets NOT_LEADER; and nothing can be published (EINVAL). EPATH: `node` is the root.
 * EINVAL for a priority. */
CLAVE_MAKING clave_err clave_async_latch_new_unfair(clave_async_latch **out, clave_async_client *c,
                                                    const char *node, const clave_latch_options *o);

#ifdef __cplusplus
}
#endif
#endif
