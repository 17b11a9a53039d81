/* event_stream.h - server-sent events for one reader: from an event that it has seen already, or
 * after the state of all locks.
 *
 *     id: EPOCH-N
 *     event: lock
 *     data: {"path":"/jobs/nightly",...}
 *
 * A reader that has no id, or one of another run or too old, first gets `reset`, and each lock as a
 * `lock` event. A line ": " comes after 15 s without an event, so that both sides and all between
 * see that the other is there. A reader that is slower than the ring is long is cut off. */
#ifndef CLAVE_WEB_OBSERVE_EVENT_STREAM_H
#define CLAVE_WEB_OBSERVE_EVENT_STREAM_H

#include "web/observe/observe.h"

struct event_stream_options {
    const char *prefix;  /* only of this path and below; NULL: all */
    const char *path;    /* only of this one; NULL: all */
    const char *session; /* with the events of this HTTP session; NULL: none */
    const char *last_id; /* of the event that it saw last; NULL: none */
    /* The reader may see events of this path (NULL: those that are about no path). */
    bool (*may)(const struct web_exchange *x, const char *path);
};

/* Makes the exchange's answer a stream; the texts must last as long as it. ENOMEM: nothing was
 * answered. */
clave_err clave__event_stream_open(struct observe *o, struct web_exchange *x,
                                   const struct event_stream_options *options);

#endif
