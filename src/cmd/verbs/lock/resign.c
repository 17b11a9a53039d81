/* resign.c - `clave resign` and `clave transfer`: a leader is asked to go, by whoever may write
 * to the election's path; and the wait until it has. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "clave/participants.h"
#include "clave/uv.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/options.h"
#include "cmd/queue/leader_follow.h"
#include "cmd/queue/participant_text.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)

struct handover {
    struct options *o;
    const char *path;
    int64_t wait_ms; /* for the leader to go, once asked */
    int64_t until;   /* of what is waited for now */
    char target[256];
    int64_t former; /* token of who leads at the beginning; 0: not seen yet */
};

/* -1: not yet; else the exit code. */
static int resign_judge(struct handover *h, struct leader_follow *s, const struct sighting *it)
{
    bool asks = h->former == 0;
    if (it->err != CLAVE_OK)
        return diag_err(h->o, h->path, it->err, s->session);
    if (asks && it->vacant) {
        diag(h->o, "%s: nobody leads", h->path);
        return EXIT_PATH;
    }
    if (asks) {
        h->former = it->stat.czxid;
        h->until = clave_now() + h->wait_ms;
        if (h->target[0] && strcmp(it->node, h->target) == 0)
            return EXIT_OK; /* leads already */
        leader_follow_transfer(s, h->target[0] ? h->target : NULL);
        return -1;
    }
    if (it->vacant || it->stat.czxid == h->former)
        return !it->vacant || h->target[0] ? -1 : EXIT_OK;
    if (!h->target[0] || strcmp(it->node, h->target) == 0)
        return EXIT_OK;
    char who[WHO_CAP];
    diag(h->o, "%s: another leads now: %s", h->path, who_column(it->id, true, who, sizeof who));
    return EXIT_PATH;
}

static int tell_not_yet(struct handover *h)
{
    diag(h->o, "%s: asked, but the leader has not resigned in time (only those of clave do)",
         h->path);
    return EXIT_TIMEOUT;
}

static bool is_answered(struct leader_follow *s)
{
    pthread_mutex_lock(&s->mutex);
    bool answered = s->answered;
    pthread_mutex_unlock(&s->mutex);
    return answered;
}

static int resign_hand_over(struct handover *h, struct leader_follow *s)
{
    int code = -1, sig;
    clave_err why;
    while (code < 0) {
        struct sighting *it = leader_follow_next(s, -1, h->until, &sig, &why);
        bool asked = is_answered(s);
        if (it)
            code = resign_judge(h, s, it);
        else if (why != CLAVE_OK)
            code = diag_err(h->o, h->path, why, s->session);
        else
            code = asked ? tell_not_yet(h) : diag_err(h->o, h->path, CLAVE_ETIMEDOUT, s->session);
        leader_follow_free(it);
    }
    return code;
}

/* The node of the candidate with this id, or of this name. EXIT_OK, or told. */
static int find_target(struct handover *h, clave_client *s, const char *id)
{
    clave_participant_list *roll;
    size_t found = 0;
    int32_t priority = 0, highest = 0; /* of the target; of those who wait besides */
    clave_err err =
        clave_participants(s, clave_async_latch_participants, h->path, h->o->timeout_ms, &roll);
    for (size_t i = 0; roll && i < roll->n; i++) {
        const clave_participant *p = &roll->list[i];
        bool same =
            (p->identity.text && strcmp(p->identity.text, id) == 0) || strcmp(p->node, id) == 0;
        if (same && found++ == 0) {
            strncpy(h->target, p->node, sizeof h->target - 1);
            priority = i > 0 ? p->priority : 0;
        } else if (i > 0 && p->priority > highest) {
            highest = p->priority;
        }
    }
    clave_participant_list_free(roll);
    if (err != CLAVE_OK)
        return diag_err(h->o, h->path, err, s);
    if (found == 1 && (priority == 0 || priority >= highest))
        return EXIT_OK;
    if (found == 1) {
        diag(h->o, "%s: '%s' has priority %d and would hand on at once to one with %d", h->path, id,
             (int)priority, (int)highest);
        return EXIT_PATH;
    }
    diag(h->o,
         found ? "%s: several candidates have the id '%s': give the name of the node"
               : "%s: no candidate has the id '%s' ('clave candidates' tells who stands)",
         h->path, id);
    return EXIT_PATH;
}

static int resign_run(struct options *o, int argc, char **argv, int nargs)
{
    struct handover h = {.o = o};
    clave_client *session;
    struct leader_follow s;
    int id;
    while ((id = options_next(o, argc, argv)) > 0)
        if (id == 'w' && !options_duration(o, "wait", 1, DAY_MS, &h.wait_ms))
            return EXIT_USAGE;
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, nargs, nargs))
        return EXIT_USAGE;
    if (h.wait_ms == 0)
        h.wait_ms = o->timeout_ms;
    h.path = o->argv[0];
    if (!connect_path_ok(o, h.path))
        return EXIT_PATH;
    int code = connect_open(o, NULL, &session);
    if (code != EXIT_OK)
        return code;
    if (nargs == 2)
        code = find_target(&h, session, o->argv[1]);
    if (code != EXIT_OK) {
        connect_close(session);
        return code;
    }
    h.until = clave_now() + o->timeout_ms;
    code = leader_follow_open(&s, session, h.path, o);
    if (code == EXIT_OK)
        code = resign_hand_over(&h, &s);
    leader_follow_close(&s);
    return code;
}

static int run_resign(struct options *o, int argc, char **argv)
{
    return resign_run(o, argc, argv, 1);
}

static int run_transfer(struct options *o, int argc, char **argv)
{
    return resign_run(o, argc, argv, 2);
}

static const struct flag flags[] = {
    {'w', "wait", "DURATION", "for the leader to go [the --timeout]"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_resign = {
    .name = "resign",
    .args = "PATH",
    .summary = "Ask the leader of an election to resign, and wait until it has",
    .text = "'clave elect' ends its command and goes; other programs of clave decide themselves;\n"
            "Curator's do not hear it. Exit code 75: not in time; 66: nobody leads.\n",
    .flags = flags,
    .elects = true,
    .max_args = -1,
    .run = run_resign,
};

const struct verb verb_transfer = {
    .name = "transfer",
    .args = "PATH ID",
    .summary = "Have a candidate lead next, and ask the leader to resign",
    .text = "ID is what 'clave candidates' shows, or the name of a node. Those that stand between\n"
            "the leader and the candidate go to the end of the queue, in one transaction. Waits\n"
            "until the candidate leads. Exit code 75: not in time; 66: no such candidate, or\n"
            "another leads now.\n",
    .flags = flags,
    .elects = true,
    .max_args = -1,
    .run = run_transfer,
};
