/* metrics_api.c - see metrics_api.h and observe/lock_metrics.h. Called by routes.c. Invariant:
 * the page is made while it is read, one piece a turn of the driver. */
#include "web/api/metrics_api.h"

#include "base/prometheus.h"
#include "web/api/observe_request.h"
#include "web/http/answer.h"
#include "web/http/http_metrics.h"
#include "web/http/problem.h"
#include "web/observe/lock_metrics.h"
#include "web/observe/observe_feed.h"

struct metrics_answer {
    struct web_exchange *x;
    struct metrics_page page;
    bool own_written;
};

static void metrics_answer_end(void *arg)
{
    struct metrics_answer *a = arg;
    clave__lock_metrics_fini(&a->page);
}

static clave_err metrics_answer_more(void *arg, struct buf *out, bool *done)
{
    struct metrics_answer *a = arg;
    size_t before = clave__buf_len(out);
    if (!a->own_written) {
        a->own_written = true;
        a->page.p.out = out;
        clave__http_metrics_put(a->x->web, &a->page.p);
        return a->page.p.err;
    }
    clave_err err = clave__lock_metrics_piece(&a->page, out, done);
    if (*done)
        clave__prometheus_end(&a->page.p);
    else if (clave__buf_len(out) == before) /* a piece of locks that all count as "other" */
        clave__web_wake(a->x);
    return err == CLAVE_OK ? a->page.p.err : err;
}

/* It has paths and names from all of the tree, so it needs the right to read everything. */
void clave__web_get_metrics(struct web_exchange *x)
{
    const struct web_options *o = &x->web->o;
    struct metrics_labels labels = {o->metric_paths, o->nmetric_paths, o->max_metric_paths};
    enum prometheus_format format = clave__prometheus_accepted(clave__web_header(x, "Accept"));
    if (!clave__observe_may_see(x, NULL)) {
        clave__web_problem(x, &(struct problem){.status = 403, .err = CLAVE_ENOAUTH},
                           "metrics need the role read on /");
        return;
    }
    struct metrics_answer *a = clave__web_alloc(x, sizeof *a);
    if (!a) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "show", "/metrics");
        return;
    }
    clave__observe_feed_start(x->web->observe);
    *a = (struct metrics_answer){.x = x};
    clave__lock_metrics_init(&a->page, x->web->observe, &labels, format);
    x->answer.more = metrics_answer_more;
    x->answer.end = metrics_answer_end;
    x->answer.arg = a;
    clave__web_answer_stream(x, 200, clave__prometheus_content_type(format));
}
