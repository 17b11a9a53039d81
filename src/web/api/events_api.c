/* events_api.c - see events_api.h and observe/event_stream.h. Called by routes.c. Invariant: a
 * stream does not count as a sign of its session's client: an event never extends a hold, and a
 * stream may be read late. */
#include "web/api/events_api.h"

#include <inttypes.h>
#include <string.h>

#include "web/api/observe_request.h"
#include "web/api/session_request.h"
#include "web/http/answer.h"
#include "web/http/problem.h"
#include "web/http/request_args.h"
#include "web/http/request_limits.h"
#include "web/observe/event_stream.h"

static void events_open(struct web_exchange *x, const char *session)
{
    struct event_stream_options options = {
        .prefix = clave__web_query(x, "prefix"),
        .path = clave__web_query(x, "path"),
        .session = session,
        .last_id = clave__web_header(x, "Last-Event-ID"),
        .may = clave__observe_may_see,
    };
    if (!clave__web_may_wait(x))
        return;
    /* Proxies that buffer would keep events back. */
    clave__web_set_header(x, "X-Accel-Buffering", "no");
    clave_err err = clave__event_stream_open(x->web->observe, x, &options);
    if (err != CLAVE_OK)
        clave__web_problem_err(x, err, "follow", "/");
}

static void events_on_session(struct session_request *k)
{
    struct web_exchange *x = k->x;
    const char *session = clave__web_sprintf(x, "%" PRId64, k->s->id);
    clave__session_request_done(k);
    if (session)
        events_open(x, session);
    else
        clave__web_problem_err(x, CLAVE_ENOMEM, "follow", "/");
}

void clave__web_get_events(struct web_exchange *x)
{
    if (!clave__observe_for(x) || !clave__query_path(x, "prefix") || !clave__query_path(x, "path"))
        return;
    if (clave__web_query(x, "claims"))
        clave__session_request(x, NULL, events_on_session);
    else
        events_open(x, NULL);
}
