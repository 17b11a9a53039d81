/* znode_long_poll.h - requests that wait until a znode changes, comes or goes, or until its
 * children do. Those of one path share a watch of the engine's own session. */
#ifndef CLAVE_WEB_API_ZNODES_ZNODE_LONG_POLL_H
#define CLAVE_WEB_API_ZNODES_ZNODE_LONG_POLL_H

#include "web/http/exchange.h"

/* Makes w->znode_polls. ENOMEM. */
clave_err clave__znode_polls_new(struct web *w);
/* After the engine's own client is freed. */
void clave__znode_polls_free(struct web *w);

/* The entity tag of an answer: of the data and its version, of a list of children, or of an access
 * list. `st` NULL: the node is not there. */
enum znode_tag { ZNODE_TAG_DATA, ZNODE_TAG_CHILDREN, ZNODE_TAG_ACL };
enum { ZNODE_TAG_CAP = 48 };
#define ZNODE_TAG_NONE "\"none\""
void clave__znode_tag(char out[ZNODE_TAG_CAP], enum znode_tag kind, const clave_stat *st);

struct znode_long_poll {
    struct list link;
    struct znode_watch *at;
    struct web_exchange *x;
    struct timer timer;
};

/* Handles the exchange again when the tag of its path (params[0]) is another one than its
 * If-None-Match knows, or at `until`; its `cancel` and `pending` are the poll's meanwhile. It is
 * answered when that cannot be found out. `p` is memory that lasts as long as the exchange. */
void clave__znode_long_poll_enter(struct znode_long_poll *p, struct web_exchange *x,
                                  enum znode_tag kind, int64_t until);

#endif
