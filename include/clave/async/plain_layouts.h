/* async/plain_layouts.h - the locks and elections that everybody writes first, with the layouts of
 * the programs that were written so: no prefix in the names, a parent and names of your choice.
 *
 *     simple lock        <path>/<prefix><10 digits>   ephemeral, sequential: the first has it
 *     fair election      <path>/<prefix><10 digits>   likewise: the first leads
 *     unfair election    <node>                       ephemeral: who creates it leads
 *
 * For joining programs of that kind, and for learning. A program of your own is better off with
 * clave/async/mutex.h and clave/async/latch.h, whose nodes tell by their names whose they are.
 *
 * What is made here are a clave_async_mutex and a clave_async_latch: all their calls, events,
 * deadlines, tokens and maximum holds are as described there. So a lock that was held for longer
 * than max_hold_ms has its node deleted, is LOST(EMAXHOLD), and the release says EMAXHOLD.
 *
 * The data of the nodes are yours, byte for byte: NULL is none. When the answer to a create is
 * lost, the node is found by its session and its czxid (CLAVE_CREATE_CERTAIN). So beside these
 * the same session must not create nodes of these names in another way. */
#ifndef CLAVE_ASYNC_PLAIN_LAYOUTS_H
#define CLAVE_ASYNC_PLAIN_LAYOUTS_H

#include "clave/async/latch.h"
#include "clave/async/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As clave_async_mutex_new. EINVAL also: the prefix is empty, has a slash in it, or is made of
 * digits alone. The order is that of the numbers; children of other names count, as anywhere: those
 * without the prefix by their whole name. */
CLAVE_EXPORT clave_err clave_async_mutex_new_simple(clave_async_mutex **out, clave_async_client *c,
                                                    const char *path, const char *prefix,
                                                    const clave_mutex_options *o);

/* As clave_async_latch_new; the id is the node's data. EINVAL as above, and for a priority, which
 * would need a name of its own. */
CLAVE_EXPORT clave_err clave_async_latch_new_fair(clave_async_latch **out, clave_async_client *c,
                                                  const char *path, const char *prefix,
                                                  const clave_latch_options *o);

/* As clave_async_latch_new, with one node for all: who creates it leads, the others watch it, and
 * all of them try when it goes. That costs the server two requests and an event for each of them at
 * each change of leaders (`clave bench herd` counts them), and nobody's turn is certain to come.
 * Who resigns, or whose term is over, begins to try a tenth of a second later than the others.
 * To candidates who wait QUEUED and NEXT are told, with 1 ahead: the leader.
 *
 * The node's name says nothing of whose it is: where an operator deletes the leader's node and
 * another takes the name, the server lets a guarded write of the former leader pass until that
 * one is told, which is at once, and a leader that resigns just then deletes the node of the
 * other, who is told NOT_LEADER; and nothing can be published (EINVAL). EPATH: `node` is the root.
 * EINVAL for a priority. */
CLAVE_EXPORT clave_err clave_async_latch_new_unfair(clave_async_latch **out, clave_async_client *c,
                                                    const char *node, const clave_latch_options *o);

#ifdef __cplusplus
}
#endif
#endif
