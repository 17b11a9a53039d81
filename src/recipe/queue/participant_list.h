/* participant_list.h - lists who is in a queue, whatever its rule. */
#ifndef CLAVE_RECIPE_QUEUE_PARTICIPANT_LIST_H
#define CLAVE_RECIPE_QUEUE_PARTICIPANT_LIST_H

#include "clave/async/mutex.h"
#include "recipe/queue/queue_order.h"

/* clave_async_participants, in the order of the rule. `own_kind`: only nodes of the rule's own
 * kind, as in Curator's getParticipantNodes. */
clave_err clave__participant_list(clave_async_client *c, const char *path,
                                  const struct queue_order_rule *rule, bool own_kind,
                                  clave_async_participants_cb *cb, void *arg);

/* Decides who is listed (a queue_nodes_filter). Children that are not places are left out, unless
 * none of the children is a place: then all are listed, since they may be the nodes of a program
 * written by hand. */
bool clave__participant_is_own_kind(const struct queue_order_rule *rule, const char *name,
                                    const char *first);
bool clave__participant_takes_part(const struct queue_order_rule *rule, const char *name,
                                   const char *first);

#endif
