/* observe_feed.h - feeds struct observe from a cache of the whole tree on the engine's own client.
 * It starts with the engine (struct web_options: observe), or with the first request that needs it.
 */
#ifndef CLAVE_WEB_OBSERVE_OBSERVE_FEED_H
#define CLAVE_WEB_OBSERVE_OBSERVE_FEED_H

#include "web/observe/observe.h"

/* Does nothing if it runs. Without memory it tries again later. */
void clave__observe_feed_start(struct observe *o);
/* The node at `path` or next above it that is known, if it may not be read: what is below it is not
 * known. Cuts `path` there, and returns it; NULL: the node may be read. */
const char *clave__observe_feed_unreadable(const struct observe_feed *f, char *path);
/* Before the engine's own client is freed. NULL is ignored. */
void clave__observe_feed_stop(struct observe *o);

#endif
