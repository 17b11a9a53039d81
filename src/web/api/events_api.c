/* events_api.c - see events_api.h and observe/event_stream.h. Called by routes.c. */
#include "web/api/events_api.h"

#include "web/api/observe_request.h"
#include "web/http/answer.h"
#include "web/http/problem.h"
#include "web/observe/event_stream.h"

void clave__web_get_events(struct web_exchange *x)
{
    struct observe *o = clave__observe_for(x);
    if (!o)
        return;
    struct event_stream_options options = {
        .prefix = clave__web_query(x, "prefix"),
        .path = clave__web_query(x, "path"),
        .last_id = clave__web_header(x, "Last-Event-ID"),
        .may = clave__observe_may_see,
    };
    /* Proxies that buffer would keep events back. */
    clave__web_set_header(x, "X-Accel-Buffering", "no");
    clave_err err = clave__event_stream_open(o, x, &options);
    if (err != CLAVE_OK)
        clave__web_problem_err(x, err, "follow", "/");
}
