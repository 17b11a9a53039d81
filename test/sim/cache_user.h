/* cache_user.h - a process that follows a tree with a cache. What its events say is checked one by
 * one (test/lib/cache_mirror.h), and in the end it has to be what the server has. */
#ifndef CLAVE_SIM_CACHE_USER_H
#define CLAVE_SIM_CACHE_USER_H

#include "workload.h"

/* A cache of the process, of a kind that is drawn. */
void cache_user_begin(struct workload *l);
void cache_user_end(struct workload *l);
/* The process acts: if it has a mirror of the tree on a disk, some of that is done. */
void cache_user_act(struct workload *l);
/* It is current, and equals the server's tree; or there is none. */
bool cache_user_is_right(const struct workload *l);
/* Why it is not so; "" when it is. */
void cache_user_tell(const struct workload *l, char *out, size_t cap);

#endif
