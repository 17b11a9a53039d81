/* inspector.h - looks into a server's engine: the truth that clients are held against. As
 * applied, which the disk may not know yet. The server runs. */
#ifndef CLAVE_SIM_INSPECTOR_H
#define CLAVE_SIM_INSPECTOR_H

#include "clave/async/cache.h"
#include "server_host.h"

struct node;

/* Owned by `session` (0: by anybody). */
bool inspector_has_node(const struct server_host *h, const char *path, int64_t session);
bool inspector_has_session(const struct server_host *h, int64_t session);
/* A node's data as a number, and its version; false: no such node. */
bool inspector_read(const struct server_host *h, const char *path, int64_t *value,
                    int32_t *version);
/* The token in the mark of a holder; 0: there is none. */
int64_t inspector_mark_token(const struct server_host *h, const char *path);
/* The nth child in the tree's order; NULL: there are fewer. */
struct node *inspector_child(const struct server_host *h, const char *path, size_t nth);
/* The child that was made first, "" when there is none; and the session it belongs to
 * (0: none). */
int64_t inspector_first_child(const struct server_host *h, const char *path, char *out, size_t cap);
/* Of the newest transaction: what stands where has not changed since. */
int64_t inspector_zxid(const struct server_host *h);
struct server_stats inspector_stats(const struct server_host *h);
/* Says in what a cache of the tree at `path` differs from the server's; "": in nothing. */
void inspector_compare(const struct server_host *h, const clave_async_cache *cache,
                       const char *path, const clave_cache_options *o, char *out, size_t cap);
/* The snapshot of this name was just loaded: it shows the tree as it was at its zxid. */
void inspector_check_snapshot(const struct server_host *h, int64_t zxid);

#endif
