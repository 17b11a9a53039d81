/* leader_resign.c - see leader_resign.h. resign.c and transfer.c call it. The leader is asked once,
 * after it has been seen, so that a later leader is never asked by mistake. */
#include "cmd/queues/leader_resign.h"

#include <assert.h>
#include <string.h>

#include "clave/uv.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/participant.h"
#include "cmd/queues/leader_follow.h"
#include "cmd/queues/queue_view.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)

const struct flag handover_flags[] = {
    {'w', "wait", "DURATION", "how long the leader has to resign [the --timeout]"},
    {0, NULL, NULL, NULL},
};

/* Looks at a new state of the election. Returns the exit code once the outcome is known, else
 * -1. */
static int leader_resign_judge(struct handover *h, struct leader_follow *f,
                               const struct leader_state *it)
{
    bool asks = h->former == 0;
    if (it->err != CLAVE_OK)
        return diag_err(h->o, h->path, it->err, f->session);
    if (asks && it->vacant)
        return no_queue_report(h->o, h->session, h->path)
                   ? EXIT_PATH
                   : diag_end(h->o, h->path, EXIT_PATH, "the election has no leader");
    if (asks) {
        h->former = it->stat.czxid;
        h->until = clave_now() + h->wait_ms;
        if (h->target[0] && strcmp(it->node, h->target) == 0)
            return EXIT_OK; /* the target leads already */
        leader_follow_transfer(f, h->target[0] ? h->target : NULL);
        return -1;
    }
    if (it->vacant || it->stat.czxid == h->former)
        return !it->vacant || h->target[0] ? -1 : EXIT_OK;
    if (!h->target[0] || strcmp(it->node, h->target) == 0)
        return EXIT_OK;
    char who[PARTICIPANT_TEXT_CAP];
    return diag_end(h->o, h->path, EXIT_PATH, "another candidate leads now: %s",
                    participant_text_column(it->id, true, who, sizeof who));
}

static int leader_resign_report_late(struct handover *h)
{
    return diag_end(h->o, h->path, EXIT_TIMEOUT,
                    "asked, but the leader did not resign in time (only clave's leaders do)");
}

static bool leader_resign_is_answered(struct leader_follow *f)
{
    pthread_mutex_lock(&f->mutex);
    bool answered = f->answered;
    pthread_mutex_unlock(&f->mutex);
    return answered;
}

static int leader_resign_wait(struct handover *h, struct leader_follow *f)
{
    int code = -1, sig;
    clave_err why;
    while (code < 0) {
        struct leader_state *it = leader_follow_next(f, -1, h->until, &sig, &why);
        bool asked = leader_resign_is_answered(f);
        if (it)
            code = leader_resign_judge(h, f, it);
        else if (why != CLAVE_OK)
            code = diag_err(h->o, h->path, why, f->session);
        else
            code = asked ? leader_resign_report_late(h)
                         : diag_err(h->o, h->path, CLAVE_ETIMEDOUT, f->session);
        leader_follow_free(it);
    }
    return code;
}

bool handover_begin(struct handover *h, struct options *o, int argc, char **argv, int nargs,
                    int *code)
{
    int id;
    *h = (struct handover){.o = o};
    *code = EXIT_USAGE;
    while ((id = options_next(o, argc, argv)) > 0)
        if (id == 'w' && !options_duration(o, "wait", 1, DAY_MS, &h->wait_ms))
            return false;
    if (id == OPTIONS_STOP) {
        *code = o->status;
        return false;
    }
    if (!options_args(o, nargs, nargs))
        return false;
    if (h->wait_ms == 0)
        h->wait_ms = o->timeout_ms;
    h->path = o->argv[0];
    *code = EXIT_PATH;
    if (!connect_path_ok(o, h->path))
        return false;
    *code = connect_open(o, NULL, &h->session);
    return *code == EXIT_OK;
}

int handover_run(struct handover *h)
{
    assert(h->session && h->former == 0);
    struct leader_follow s;
    h->until = clave_now() + h->o->timeout_ms;
    int code = leader_follow_open(&s, h->session, h->path, h->o);
    if (code == EXIT_OK)
        code = leader_resign_wait(h, &s);
    leader_follow_close(&s);
    return code;
}
