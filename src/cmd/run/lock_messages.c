/* lock_messages.c - the messages and JSON events of `clave lock` and the verbs like it
 * (lock_messages.h). The file has four parts: the wording and the frame of an event; messages about
 * a wait; the progress of a wait, which decides when to print them; messages about a held lock.
 * Every event names the path.
 *
 * What must stay true: standard output is the command's, so everything goes to standard error; an
 * event is written in one piece; the progress has at most one listing under way, and prints nothing
 * after lock_wait_end. */
#include "cmd/run/lock_messages.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/path.h"
#include "base/time_format.h"
#include "clave/version.h"
#include "client/client_for_recipes.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/format.h"
#include "cmd/cli/json.h"
#include "cmd/cli/local_warning.h"
#include "cmd/cli/participant.h"
#include "cmd/cli/shell_command.h"
#include "cmd/cli/standard_error.h"
#include "cmd/run/run_flags.h"
#include "recipe/queue/identity.h"
#include "recipe/queue/queue_nodes.h"
#include "recipe/queue/queue_order.h"
#include "runtime/clock.h"

/* ---- wording, and the frame of an event ------------------------------------------------------ */

/* The words that differ between a lock and a leadership. */
struct lock_message_words {
    const char *acquired, *not_acquired; /* names of events, and verbs in messages */
    const char *held_by, *still, *it, *who, *asked, *hold, *next, *before;
};

static const struct lock_message_words *lock_message_words(const struct run_plan *p)
{
    static const struct lock_message_words lock = {"acquired",
                                                   "not-acquired",
                                                   "held by",
                                                   "still held",
                                                   "the lock",
                                                   "locks",
                                                   "another participant asks for it",
                                                   "hold",
                                                   "holder",
                                                   "acquired; the previous holder"};
    static const struct lock_message_words leadership = {
        "elected",    "not-elected",     "led by", "still leading", "the leadership",
        "candidates", "asked to resign", "term",   "leader",        "elected; the previous leader"};
    return p->elects ? &leadership : &lock;
}

/* Begins an event. Locks the stream until lock_message_end. */
static void lock_message_begin(const struct run_plan *p, struct json *j, const char *event)
{
    FILE *out = standard_error();
    char when[TIME_TEXT_CAP];
    flockfile(out);
    json_begin(j, out);
    clave__json_string(j, "time", time_text(clave__clock_wall(), when));
    clave__json_string(j, "event", event);
    clave__json_string(j, "path", p->path);
}

static void lock_message_end(struct json *j)
{
    json_end(j);
    funlockfile(j->to);
}

/* ---- messages about a wait ------------------------------------------------------------------- */

enum { LACK_CAP = PARTICIPANT_TEXT_CAP + 128 };
enum {
    TRACE_AT = 3,
    TRACE_DIGITS = 32
}; /* of a traceparent: where the trace id begins, and its length */
enum { HOLDER_CAP = PARTICIPANT_TEXT_CAP + 64 };

static void lock_message_put_holder(const struct run_plan *p, struct json *j,
                                    const clave_participant *holder)
{
    clave__json_open(j, p->elects ? "leader" : "holder", '{');
    clave__json_int(j, "token", holder->stat.czxid);
    participant_json_identity(j, &holder->identity);
    clave__json_close(j, '}');
}

/* For example "held by web1 pid 4711 (nightly), trace 4bf9...". */
static const char *lock_message_holder_text(const struct run_plan *p,
                                            const clave_participant *holder, char out[HOLDER_CAP])
{
    char who[PARTICIPANT_TEXT_CAP];
    const char *trace = holder ? holder->identity.traceparent : NULL;
    snprintf(out, HOLDER_CAP, "%s %s%s%.*s", lock_message_words(p)->held_by,
             holder ? participant_text_format(&holder->identity, who, sizeof who) : "another",
             trace ? ", trace " : "", TRACE_DIGITS, trace ? trace + TRACE_AT : "");
    return out;
}

static void lock_message_put_left_over(const struct run_plan *p, struct json *j, const char *node)
{
    char command[HINT_CAP];
    const char *const words[] = {"locks", "break", p->path, node, NULL};
    clave__json_open(j, "left_over", '{');
    clave__json_string(j, "node", node);
    clave__json_string(j, "command", hint_command(p->o, words, command));
    clave__json_close(j, '}');
}

/* `holder` and `left_over` are as in struct lock_obstacle. */
static void lock_message_waiting(const struct run_plan *p, size_t ahead,
                                 const clave_participant *holder, const char *left_over)
{
    struct json j;
    char who[HOLDER_CAP], text[LEFT_OVER_CAP];
    if (p->o->json) {
        lock_message_begin(p, &j, "waiting");
        clave__json_int(&j, "ahead", (int64_t)ahead);
        if (left_over)
            lock_message_put_left_over(p, &j, left_over);
        else if (holder)
            lock_message_put_holder(p, &j, holder);
        lock_message_end(&j);
    } else if (left_over) {
        diag(p->o, "%s: waiting, %zu ahead; %s", p->path, ahead,
             participant_text_left_over(p->o, p->path, left_over, NULL, text));
    } else if (holder) {
        diag(p->o, "%s: waiting, %zu ahead; %s", p->path, ahead,
             lock_message_holder_text(p, holder, who));
    } else {
        diag(p->o, "%s: waiting, %zu ahead", p->path, ahead);
    }
}

static const char put_off_text[] =
    "the server gives nobody a place yet: it was restored from a backup, and grants nothing until "
    "the sessions from before have expired";

/* Why nobody gets a lease: the node that should hold the limit does not contain a number. */
static const char *lock_message_lack(const struct run_plan *p, char out[LACK_CAP])
{
    char path[PARTICIPANT_TEXT_CAP];
    snprintf(out, LACK_CAP,
             "%s does not hold a number of leases (four bytes, big-endian, as Curator's "
             "SharedCount)",
             participant_text_printable(p->limit_path, path, sizeof path));
    return out;
}

/* Nobody is granted a lease, because the node at `limit_path` does not contain a number. */
static void lock_message_no_limit(const struct run_plan *p, size_t ahead)
{
    struct json j;
    char why[LACK_CAP];
    if (p->o->json) {
        lock_message_begin(p, &j, "waiting");
        clave__json_int(&j, "ahead", (int64_t)ahead);
        clave__json_string(&j, "why", lock_message_lack(p, why));
        lock_message_end(&j);
    } else {
        diag(p->o, "%s: waiting: %s", p->path, lock_message_lack(p, why));
    }
}

/* The server answers every request for a place in the queue with an operation timeout. */
static void lock_message_put_off(const struct run_plan *p)
{
    struct json j;
    if (p->o->json) {
        lock_message_begin(p, &j, "waiting");
        clave__json_string(&j, "why", put_off_text);
        lock_message_end(&j);
    } else {
        diag(p->o, "%s: waiting: %s", p->path, put_off_text);
    }
}

/* No server has answered yet. Printed only with --json: the text version comes from
 * unreachable.h. */
static void lock_message_connecting(const struct run_plan *p, const char *fault)
{
    struct json j;
    lock_message_begin(p, &j, "connecting");
    clave__json_string(&j, "why", fault);
    lock_message_end(&j);
}

/* The connection is lost, and no server answers. */
static void lock_message_away(const struct run_plan *p, const char *fault)
{
    struct json j;
    if (p->o->json) {
        lock_message_begin(p, &j, "suspended");
        clave__json_string(&j, "why", fault);
        lock_message_end(&j);
    } else {
        diag(p->o, "%s: waiting, but no server is answering: %s", p->path, fault);
    }
}

/* In order of precedence. A server that gives nobody a place never looks at the number of leases,
 * so that comes last. */
static const char *lock_message_obstacle_text(const struct run_plan *p,
                                              const struct lock_obstacle *why, char out[LACK_CAP])
{
    if (why->unhealthy)
        return why->unhealthy;
    if (why->away)
        return why->away;
    if (why->put_off)
        return put_off_text;
    return why->limit_missing ? lock_message_lack(p, out) : NULL;
}

void lock_message_not_acquired(const struct run_plan *p, int64_t waited_ms,
                               const struct lock_obstacle *why)
{
    struct json j;
    char age[AGE_CAP], asked_for[DURATION_CAP], out[LACK_CAP], who[HOLDER_CAP], hint[HINT_CAP];
    char left_over[LEFT_OVER_CAP];
    const char *text = lock_message_obstacle_text(p, why, out);
    const char *within =
        p->wait_ms > 0 ? clave__duration_format(p->wait_ms, asked_for) : age_format(waited_ms, age);
    if (p->o->json) {
        lock_message_begin(p, &j, lock_message_words(p)->not_acquired);
        clave__json_int(&j, "waited_ms", waited_ms);
        if (text)
            clave__json_string(&j, "why", text);
        if (why->left_over)
            lock_message_put_left_over(p, &j, why->left_over);
        else if (why->holder)
            lock_message_put_holder(p, &j, why->holder);
        lock_message_end(&j);
    } else if (p->quiet) {
        return;
    } else if (why->left_over) {
        diag(p->o, "%s: not %s: %s", p->path, lock_message_words(p)->acquired,
             participant_text_left_over(p->o, p->path, why->left_over, NULL, left_over));
    } else if (text) {
        diag(p->o, "%s: not %s within %s%s: %s", p->path, lock_message_words(p)->acquired, within,
             why->away ? ", no server is answering" : "", text);
    } else if (p->wait_ms == LOCK_TRY) {
        diag(p->o, "%s: %s; to see the queue: %s", p->path,
             lock_message_holder_text(p, why->holder, who),
             hint_command(p->o, (const char *const[]){lock_message_words(p)->who, p->path, NULL},
                          hint));
    } else {
        diag(p->o, "%s: not %s within %s; %s; to see the queue: %s", p->path,
             lock_message_words(p)->acquired, within, lock_message_holder_text(p, why->holder, who),
             hint_command(p->o, (const char *const[]){lock_message_words(p)->who, p->path, NULL},
                          hint));
    }
}

void lock_message_unhealthy(const struct run_plan *p, bool holds, const char *why)
{
    struct json j;
    if (p->o->json) {
        lock_message_begin(p, &j, "unhealthy");
        clave__json_bool(&j, "holding", holds);
        clave__json_string(&j, "why", why);
        lock_message_end(&j);
    } else if (holds) {
        diag(p->o, "%s: the work is unhealthy: %s", p->path, why);
    } else if (!p->quiet) {
        diag(p->o,
             "%s: unhealthy, so it does not queue: %s (before the command runs, the check gets "
             "CLAVE_EVENT=waiting)",
             p->path, why);
    }
}

void lock_message_healthy(const struct run_plan *p)
{
    struct json j;
    if (p->o->json) {
        lock_message_begin(p, &j, "healthy");
        lock_message_end(&j);
    } else if (!p->quiet) {
        diag(p->o, "%s: healthy again: it queues", p->path);
    }
}

void lock_message_ailing(const struct run_plan *p, int n, const char *why)
{
    struct json j;
    if (p->o->json) {
        lock_message_begin(p, &j, "ailing");
        clave__json_int(&j, "failures", n);
        clave__json_int(&j, "of", p->health.terms.fails);
        clave__json_string(&j, "why", why);
        lock_message_end(&j);
    } else {
        diag_note(p->o, "%s: failure %d of %d: %s", p->path, n, p->health.terms.fails, why);
    }
}

void lock_message_ready(const struct run_plan *p, int64_t after_ms)
{
    struct json j;
    char age[AGE_CAP];
    if (p->o->json) {
        lock_message_begin(p, &j, "ready");
        clave__json_int(&j, "after_ms", after_ms);
        lock_message_end(&j);
    } else {
        diag_note(p->o, "%s: the command is ready after %s", p->path, age_format(after_ms, age));
    }
}

void lock_message_stopping(const struct run_plan *p)
{
    struct json j;
    if (p->o->json) {
        lock_message_begin(p, &j, "stopping");
        lock_message_end(&j);
    } else {
        diag_note(p->o, "%s: the command says that it is stopping", p->path);
    }
}

void lock_message_status(const struct run_plan *p, const char *status)
{
    struct json j;
    if (p->o->json) {
        lock_message_begin(p, &j, "status");
        clave__json_string(&j, "text", status);
        lock_message_end(&j);
    } else {
        diag_note(p->o, "%s: the command says: %s", p->path, status);
    }
}

/* ---- the progress of a wait ------------------------------------------------------------------ */

/* The first report comes so late that a short wait prints nothing. */
enum { LIVE_FIRST_MS = 300, LIVE_AGAIN_MS = 2000, LINES_FIRST_MS = 1000, LINES_AGAIN_MS = 15000 };

void lock_wait_init(struct lock_wait *p, const struct run_plan *plan, uv_loop_t *loop)
{
    const char *term = getenv("TERM");
    *p = (struct lock_wait){.plan = plan};
    p->live =
        isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0 && !plan->o->json &&
        plan->o->verbose == 0; /* with -v, log lines would run into the line that is redrawn */
    uv_timer_init(loop, &p->timer);
    p->timer.data = p;
}

/* ---- showing --------------------------------------------------------------------------------- */

static size_t lock_wait_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

static void lock_wait_draw(struct lock_wait *p, const char *what, const char *detail)
{
    char line[1024], waited[AGE_CAP];
    snprintf(line, sizeof line, "%s: waiting %s, %zu ahead%s%s", p->plan->path,
             age_format(clave_now() - p->began, waited), p->ahead, what, detail);
    fprintf(standard_error(), "\r%.*s\033[K", (int)(lock_wait_columns() - 1), line);
    fflush(standard_error());
    p->drawn = true;
}

const char *lock_wait_left_over(const struct lock_wait *p, const clave_participant *holder)
{
    if (holder && holder->left_over)
        return holder->node;
    return *p->left_over ? p->left_over : NULL;
}

/* The message that names the command to clean up does not fit in the line that is redrawn, so it is
 * printed once on a line of its own. */
static void lock_wait_show_left_over(struct lock_wait *p, const char *node, int64_t token)
{
    if (token != p->reported_holder || (!p->live && p->ahead != p->reported_ahead)) {
        lock_wait_clear(p);
        lock_message_waiting(p->plan, p->ahead, NULL, node);
        p->reported_holder = token;
        p->reported_ahead = p->ahead;
    }
    if (p->live)
        lock_wait_draw(p, "; left over: ", "no session owns the node ahead");
}

static void lock_wait_show(struct lock_wait *p, const clave_participant *holder)
{
    const char *left_over = lock_wait_left_over(p, holder);
    int64_t token = holder ? holder->stat.czxid : 0;
    char who[PARTICIPANT_TEXT_CAP];
    lock_wait_holder *found = p->found;
    p->found = NULL;
    if (found)
        found(p->found_arg, holder);
    if (!p->waiting)
        return;
    p->reported_disconnected = false;
    p->reported_limit_missing = false;
    if (left_over) {
        lock_wait_show_left_over(p, left_over, token);
    } else if (p->live && holder) {
        lock_wait_draw(p, p->plan->elects ? "; led by " : "; held by ",
                       participant_text_format(&holder->identity, who, sizeof who));
    } else if (p->live) {
        lock_wait_draw(p, "", "");
    } else if (token != p->reported_holder || p->ahead != p->reported_ahead) {
        lock_message_waiting(p->plan, p->ahead, holder, NULL);
        p->reported_holder = token;
        p->reported_ahead = p->ahead;
    }
}

/* ---- asking for the holder: lists the children, then reads the first ------------------------- */

/* Keeps the holder with its name and its data, in one block of memory. Without memory the holder
 * counts as unknown. */
static void lock_wait_keep_holder(struct lock_wait *p, const clave_result *res)
{
    const char *node = clave__path_name(res->path);
    size_t nnode = strlen(node) + 1;
    char *data = calloc(1, nnode + res->len + 1);
    if (!data)
        return;
    free(p->holder_data);
    p->holder_data = data;
    memcpy(data, node, nnode);
    if (res->len > 0)
        memcpy(data + nnode, res->data, res->len);
    p->holder = (clave_participant){
        .node = data, .stat = *res->stat, .left_over = clave__queue_node_is_left_over(res->stat)};
    clave__identity_parse(data + nnode, res->len, &p->holder.identity);
}

/* If several nodes are read, keeps the first answer, or the first node that is left over. */
static void lock_wait_on_holder(clave_async_client *c, const clave_result *res, void *arg)
{
    struct lock_wait *p = arg;
    assert(p->asking && p->pending > 0);
    (void)c;
    bool left_over = res->err == CLAVE_OK && clave__queue_node_is_left_over(res->stat);
    if (res->err == CLAVE_OK && (!p->holder_data || (left_over && !p->holder.left_over)))
        lock_wait_keep_holder(p, res);
    if (--p->pending > 0)
        return;
    p->asking = false;
    lock_wait_show(p, p->holder_data ? &p->holder : NULL);
    free(p->holder_data);
    p->holder_data = NULL;
}

static const struct queue_order_rule *lock_wait_rule(const struct lock_wait *p)
{
    static const struct queue_order_rule *const rules[] = {
        [KIND_MUTEX] = &clave__queue_order_mutex,
        [KIND_READ] = &clave__queue_order_read,
        [KIND_WRITE] = &clave__queue_order_write,
        [KIND_LEASE] = &clave__queue_order_lease,
    };
    return p->plan->elects ? &clave__queue_order_latch : rules[p->plan->kind];
}

/* Counts our place in this listing: right behind the node that was right before ours. */
static void lock_wait_count_ahead(struct lock_wait *p, const clave_result *names)
{
    struct queue_order_place place =
        clave__queue_order_locate(lock_wait_rule(p), names->names, names->nnames, p->predecessor);
    /* A reader waits for writers only; their number came with the event lock_wait_moved. */
    if (place.found && p->plan->kind != KIND_READ)
        p->ahead = place.ahead + 1;
}

/* Reads the first node of the queue. Any lease may be left over, not only the first, so for a
 * semaphore a bounded number of leases is read. */
static clave_err lock_wait_ask_holder(struct lock_wait *p, const clave_result *names)
{
    enum { MOST_LEASES = 32 };
    const struct clave_mem *mem = clave__client_mem(p->client);
    size_t *order = calloc(names->nnames, sizeof *order);
    size_t most = p->plan->kind == KIND_LEASE && !p->plan->elects ? MOST_LEASES : 1;
    clave_err err = CLAVE_ENOMEM;
    if (order)
        err = clave__queue_order_sort(lock_wait_rule(p), mem, names->names, names->nnames, order);
    for (size_t i = 0; i < most && i < names->nnames && err == CLAVE_OK; i++) {
        char *path = clave__path_child(NULL, p->plan->holders, names->names[order[i]]);
        err = path ? clave_async_get(p->client, path, NULL, lock_wait_on_holder, p) : CLAVE_ENOMEM;
        p->pending += err == CLAVE_OK;
        free(path);
    }
    free(order);
    return p->pending > 0 ? CLAVE_OK : err;
}

static void lock_wait_on_names(clave_async_client *c, const clave_result *res, void *arg)
{
    struct lock_wait *p = arg;
    assert(p->asking);
    (void)c;
    if ((p->waiting || p->found) && res->err == CLAVE_OK && res->nnames > 0) {
        lock_wait_count_ahead(p, res);
        if (lock_wait_ask_holder(p, res) == CLAVE_OK)
            return;
    }
    p->asking = false;
    lock_wait_show(p, NULL);
}

static bool lock_wait_ask(struct lock_wait *p)
{
    if (!p->asking)
        p->asking = clave_async_children(p->client, p->plan->holders, NULL, lock_wait_on_names,
                                         p) == CLAVE_OK;
    clave_uv_flush(p->uv);
    return p->asking;
}

bool lock_wait_find_holder(struct lock_wait *p, lock_wait_holder *found, void *arg)
{
    assert(found && !p->found);
    p->found_arg = arg;
    p->found = lock_wait_ask(p) ? found : NULL;
    return p->found;
}

/* While no server answers, nobody knows the holder. Reported once per interruption. */
static void lock_wait_show_disconnected(struct lock_wait *p)
{
    const char *fault = clave_async_client_errmsg(p->client);
    if (p->live)
        lock_wait_draw(p, "; no server is answering: ", fault);
    else if (!p->reported_disconnected)
        lock_message_away(p->plan, fault);
    p->reported_disconnected = true;
    p->reported_holder = -1; /* report the holder again afterwards */
}

/* As long as the node of the limit contains no number, nobody is granted a lease, no matter who
 * holds one. */
static void lock_wait_show_limit_missing(struct lock_wait *p)
{
    if (p->live)
        lock_wait_draw(p, "; no number of leases in ", p->plan->limit_path);
    else if (!p->reported_limit_missing)
        lock_message_no_limit(p->plan, p->ahead);
    p->reported_limit_missing = true;
    p->reported_holder = -1; /* report the holder again afterwards */
}

/* The client repeats a request that the server puts off, as Curator and kazoo do, so its latest
 * fault is the only sign of it. */
bool lock_wait_is_put_off(const struct lock_wait *p)
{
    return !p->queued && clave__client_latest_fault(p->client)->err == CLAVE_EOPTIMEOUT;
}

static void lock_wait_show_put_off(struct lock_wait *p)
{
    if (p->live)
        lock_wait_draw(p, "; ", put_off_text);
    else if (!p->reported_put_off)
        lock_message_put_off(p->plan);
    p->reported_put_off = true;
    p->reported_holder = -1; /* report the holder again afterwards */
}

static void lock_wait_on_timer(uv_timer_t *t)
{
    struct lock_wait *p = t->data;
    if (!clave_async_client_is_connected(p->client)) {
        lock_wait_show_disconnected(p);
        return;
    }
    if (p->asking) {
        if (p->live)
            lock_wait_draw(p, "", "");
        return;
    }
    if (lock_wait_is_put_off(p)) {
        lock_wait_show_put_off(p);
        return;
    }
    if (acquisition_limit_missing(p->acquisition)) {
        lock_wait_show_limit_missing(p);
        return;
    }
    lock_wait_ask(p);
}

/* ---- before there is a session --------------------------------------------------------------- */

static void lock_wait_on_connecting(uv_timer_t *t)
{
    struct lock_wait *p = t->data;
    const char *fault = clave_async_client_errmsg(p->client);
    if (clave_async_client_is_connected(p->client))
        uv_timer_stop(t);
    else if (!p->plan->o->json)
        unreachable_report(&p->reach, fault);
    else if (unreachable_is_news(&p->reach, fault))
        lock_message_connecting(p->plan, fault);
}

void lock_wait_connect(struct lock_wait *p, clave_async_client *c, int64_t until)
{
    p->client = c;
    unreachable_begin(&p->reach, p->plan->o, p->plan->connect, until);
    if (!p->plan->quiet && (p->reach.says || p->plan->o->json))
        uv_timer_start(&p->timer, lock_wait_on_connecting, UNREACHABLE_FIRST_MS,
                       UNREACHABLE_AGAIN_MS);
}

void lock_wait_begin(struct lock_wait *p, const struct acquisition *acquisition,
                     clave_async_client *c, clave_uv *uv)
{
    assert(!p->waiting);
    p->acquisition = acquisition;
    p->client = c;
    p->uv = uv;
    p->began = clave_now();
    p->waiting = true;
    lock_wait_clear(p);
    uv_timer_stop(&p->timer);
    if (!p->plan->quiet)
        uv_timer_start(&p->timer, lock_wait_on_timer, p->live ? LIVE_FIRST_MS : LINES_FIRST_MS,
                       p->live ? LIVE_AGAIN_MS : LINES_AGAIN_MS);
}

void lock_wait_moved(struct lock_wait *p, size_t ahead, const char *predecessor,
                     const char *left_over)
{
    p->ahead = ahead;
    p->queued = true;
    snprintf(p->left_over, sizeof p->left_over, "%s", left_over ? clave__path_name(left_over) : "");
    snprintf(p->predecessor, sizeof p->predecessor, "%s", clave__path_name(predecessor));
}

void lock_wait_clear(struct lock_wait *p)
{
    if (p->drawn) {
        fputs("\r\033[K", standard_error());
        fflush(standard_error());
    }
    p->drawn = false;
    unreachable_clear(&p->reach);
}

void lock_wait_end(struct lock_wait *p)
{
    p->waiting = false;
    uv_timer_stop(&p->timer);
    lock_wait_clear(p);
}

void lock_wait_close(struct lock_wait *p)
{
    uv_close((uv_handle_t *)&p->timer, NULL);
    free(p->holder_data);
    p->holder_data = NULL;
}

/* ---- messages about a held lock -------------------------------------------------------------- */

enum { TEXT_CAP = HOLDOUT_TEXT_CAP + 512 };

static void lock_message_put_identity(struct json *j, const char *key, const clave_identity *id)
{
    clave__json_open(j, key, '{');
    participant_json_identity(j, id);
    clave__json_close(j, '}');
}

void lock_message_parent_ended(const struct run_plan *p, int64_t waited_ms)
{
    struct json j;
    char text[PARENT_WATCH_TEXT_CAP];
    if (!p->o->json) {
        diag(p->o, "%s: not %s: %s", p->path, lock_message_words(p)->acquired,
             parent_watch_text(&p->parent, text));
        return;
    }
    lock_message_begin(p, &j, lock_message_words(p)->not_acquired);
    clave__json_int(&j, "waited_ms", waited_ms);
    clave__json_string(&j, "why", parent_watch_text(&p->parent, text));
    lock_message_end(&j);
}

void lock_message_warning(const struct run_plan *p, const char *msg)
{
    struct json j;
    if (!p->o->json) {
        diag(p->o, "%s", msg);
        return;
    }
    lock_message_begin(p, &j, "warning");
    clave__json_string(&j, "text", msg);
    lock_message_end(&j);
}

void lock_message_deadlock(const struct run_plan *p, const char *text)
{
    struct json j;
    char safe[4096];
    if (p->o->json) {
        lock_message_begin(p, &j, "deadlock");
        clave__json_string(&j, "text", text);
        lock_message_end(&j);
    } else {
        diag(p->o, "%s: given up to end a deadlock: %s", p->path,
             text ? participant_text_printable(text, safe, sizeof safe)
                  : "out of memory for the details");
    }
}

int lock_message_unauthorised(const struct run_plan *p)
{
    static const struct client_fault fault = {
        .text = "to queue there, a client must be allowed to create nodes below it and to read the "
                "node before its own (its --acl)",
        .err = CLAVE_ENOAUTH};
    return diag_fault(p->o, p->path, CLAVE_ENOAUTH, &fault);
}

void lock_message_nested(const struct run_plan *p, const clave_participant *outer)
{
    struct json j;
    char who[PARTICIPANT_TEXT_CAP], text[PARTICIPANT_TEXT_CAP + 128];
    snprintf(text, sizeof text,
             "held by the 'clave %s' that this one runs under, %s: it would wait forever",
             p->o->verb->name, participant_text_format(&outer->identity, who, sizeof who));
    if (p->o->json) {
        lock_message_begin(p, &j, "deadlock");
        clave__json_string(&j, "text", text);
        lock_message_end(&j);
    } else {
        diag(p->o, "%s: %s", p->path, text);
    }
}

void lock_message_acquired(const struct run_plan *p, const struct grant_facts *g, int64_t waited_ms)
{
    struct json j;
    char age[AGE_CAP];
    if (!p->o->json) {
        diag_note(p->o, "%s: %s after %s, token %" PRId64 ", session 0x%" PRIx64, p->path,
                  lock_message_words(p)->acquired, age_format(waited_ms, age), g->token,
                  (uint64_t)g->session_id);
        local_tell_acquired(p->o, p->path, p->elects, g->session_id);
        return;
    }
    lock_message_begin(p, &j, lock_message_words(p)->acquired);
    clave__json_int(&j, "token", g->token);
    clave__json_string(&j, "node", g->node);
    json_hex(&j, "session", g->session_id);
    clave__json_int(&j, "waited_ms", waited_ms);
    local_put(p->o, &j);
    lock_message_end(&j);
}

void lock_message_connection(const struct run_plan *p, bool up, int64_t left_ms)
{
    struct json j;
    char left[AGE_CAP];
    if (p->o->json) {
        lock_message_begin(p, &j, up ? "reconnected" : "suspended");
        if (!up)
            clave__json_int(&j, "left_ms", left_ms);
        lock_message_end(&j);
    } else if (up) {
        diag_note(p->o, "%s: reconnected, %s", p->path, lock_message_words(p)->still);
    } else {
        diag_note(p->o, "%s: connection lost; %s is certainly kept for %s more", p->path,
                  lock_message_words(p)->it, age_format(left_ms, left));
    }
}

/* Why the lock was lost, worded for a person at a terminal. */
static const char *lock_message_reason(const struct run_plan *p, clave_err why)
{
    if (why == CLAVE_ENONODE)
        return "its node was deleted by another client";
    if (why == CLAVE_ECONNLOSS || why == CLAVE_ETIMEDOUT)
        return "no server confirmed the session in time";
    return diag_text(p->o, why);
}

void lock_message_lost(const struct run_plan *p, clave_err why)
{
    struct json j;
    if (!p->o->json) {
        diag(p->o, "%s: %s is lost: %s", p->path, lock_message_words(p)->it,
             lock_message_reason(p, why));
        return;
    }
    lock_message_begin(p, &j, "lost");
    clave__json_string(&j, "why", lock_message_reason(p, why));
    lock_message_end(&j);
}

void lock_message_asked(const struct run_plan *p)
{
    struct json j;
    if (!p->o->json) {
        diag(p->o, "%s: %s", p->path, lock_message_words(p)->asked);
        return;
    }
    lock_message_begin(p, &j, "asked");
    lock_message_end(&j);
}

static const char *lock_message_ending_text(const struct run_plan *p, enum kill_policy_cause cause,
                                            char *out, size_t cap)
{
    char parent[PARENT_WATCH_TEXT_CAP];
    switch (cause) {
    case CAUSE_NONE:
        return "the command has ended; ending the processes it left running";
    case CAUSE_DEADLINE:
        snprintf(out, cap,
                 "no server confirmed the session in time: ending the command before %s is "
                 "lost",
                 lock_message_words(p)->it);
        return out;
    case CAUSE_MAX_HOLD:
        snprintf(out, cap, "the maximum %s has been reached: ending the command",
                 lock_message_words(p)->hold);
        return out;
    case CAUSE_PARENT:
        snprintf(out, cap, "%s: ending the command", parent_watch_text(&p->parent, parent));
        return out;
    case CAUSE_SIGNAL:
        return "second signal: ending the command and all it has started";
    case CAUSE_LOST:
    case CAUSE_UNHEALTHY:
    case CAUSE_KILLED:
        break;
    }
    return "ending the command";
}

void lock_message_ending(const struct run_plan *p, enum kill_policy_cause cause)
{
    static const char *const names[] = {
        [CAUSE_NONE] = "left-behind",  [CAUSE_DEADLINE] = "deadline",  [CAUSE_LOST] = "lost",
        [CAUSE_MAX_HOLD] = "max-hold", [CAUSE_KILLED] = "killed",      [CAUSE_SIGNAL] = "signal",
        [CAUSE_PARENT] = "parent",     [CAUSE_UNHEALTHY] = "unhealthy"};
    struct json j;
    char text[128];
    if (p->o->json) {
        lock_message_begin(p, &j, "ending");
        clave__json_string(&j, "cause", names[cause]);
        lock_message_end(&j);
        return;
    }
    const char *what = lock_message_ending_text(p, cause, text, sizeof text);
    if (cause == CAUSE_NONE)
        diag_note(p->o, "%s: %s", p->path, what);
    else
        diag(p->o, "%s: %s", p->path, what);
}

/* Adds the holdout `h` to an event, as members and, with `text`, as a sentence. */
static void lock_message_put_holdout(const struct run_plan *p, const char *event,
                                     const struct holdout *h, const char *text)
{
    struct json j;
    char user[HOLDOUT_NAME_CAP];
    if (!p->o->json) {
        diag(p->o, "%s: %s", p->path, text);
        return;
    }
    lock_message_begin(p, &j, event);
    clave__json_int(&j, "process", h->pid);
    clave__json_string(&j, "command", *h->name ? h->name : NULL);
    clave__json_string(&j, "user", h->uid == HOLDOUT_UNKNOWN ? NULL : holdout_user(h, user));
    clave__json_string(&j, "text", text);
    lock_message_end(&j);
}

void lock_message_holdout(const struct run_plan *p, const struct holdout *h)
{
    char who[HOLDOUT_TEXT_CAP], text[TEXT_CAP];
    snprintf(text, sizeof text,
             "clave may not end %s: if %s is lost, the next %s begins while it still runs. Run "
             "clave as that user or as root, or where it may create control groups (systemd: "
             "Delegate=yes)%s",
             holdout_text(h, who), lock_message_words(p)->it, lock_message_words(p)->next,
             p->command.same_user ? ""
                                  : "; --require-killable keeps commands from changing their user");
    lock_message_put_holdout(p, "unkillable", h, text);
}

void lock_message_stuck(const struct run_plan *p, const struct holdout *h, bool lost)
{
    char who[HOLDOUT_TEXT_CAP], text[TEXT_CAP], advice[64];
    snprintf(advice, sizeof advice, "; end it as root: kill -KILL %d", (int)h->pid);
    snprintf(text, sizeof text, "cannot end %s%s: %s %s%s", holdout_text(h, who),
             h->asleep ? ", which waits in the kernel for a disk or a file system (state D)" : "",
             lock_message_words(p)->it,
             lost ? "may be another's while it still runs" : "is not released before it has ended",
             h->asleep ? "" : advice);
    lock_message_put_holdout(p, "stuck", h, text);
}

void lock_message_denied(const struct run_plan *p, const struct holdout *h, int sig)
{
    char who[HOLDOUT_TEXT_CAP], text[TEXT_CAP];
    snprintf(text, sizeof text, "cannot pass signal %d (%s) on to %s", sig, strsignal(sig),
             holdout_text(h, who));
    lock_message_put_holdout(p, "denied", h, text);
}

void lock_message_armed(const struct run_plan *p, int64_t timeout_ms)
{
    struct json j;
    char time[DURATION_CAP];
    if (!p->o->json) {
        diag_note(p->o, "%s: %s resets this machine unless clave feeds it, within %s", p->path,
                  p->watchdog.device, clave__duration_format(timeout_ms, time));
        return;
    }
    lock_message_begin(p, &j, "watchdog-armed");
    clave__json_string(&j, "device", p->watchdog.device);
    clave__json_int(&j, "timeout_ms", timeout_ms);
    lock_message_end(&j);
}

int lock_message_unarmed(const struct run_plan *p, const struct watchdog_trouble *t,
                         int64_t session_ms)
{
    struct json j;
    char text[WATCHDOG_TEXT_CAP];
    watchdog_trouble_text(t, session_ms, text);
    if (p->watchdog.mode == WATCHDOG_REQUIRED)
        return diag_end(p->o, p->path, EXIT_WATCHDOG, "--watchdog %s: %s", p->watchdog.device,
                        text);
    if (p->o->json) {
        lock_message_begin(p, &j, "watchdog-failed");
        clave__json_string(&j, "device", p->watchdog.device);
        clave__json_string(&j, "why", text);
        lock_message_end(&j);
    } else {
        diag(p->o, "%s: running the command without --watchdog %s: %s", p->path, p->watchdog.device,
             text);
    }
    return EXIT_WATCHDOG;
}

void lock_message_starved(const struct run_plan *p)
{
    struct json j;
    if (p->o->json) {
        lock_message_begin(p, &j, "watchdog-starved");
        clave__json_string(&j, "device", p->watchdog.device);
        lock_message_end(&j);
    } else {
        diag(p->o,
             "%s: %s is certainly kept for a moment only, so %s is not fed: it resets this machine "
             "unless the command has ended by then",
             p->path, lock_message_words(p)->it, p->watchdog.device);
    }
}

void lock_message_delay(const struct run_plan *p, const clave_identity *who, int64_t delay_ms)
{
    struct json j;
    char age[AGE_CAP], text[PARTICIPANT_TEXT_CAP];
    if (p->o->json) {
        lock_message_begin(p, &j, "delayed");
        clave__json_int(&j, "delay_ms", delay_ms);
        lock_message_put_identity(&j, "lost", who);
        lock_message_end(&j);
    } else if (!p->quiet) {
        diag(p->o, "%s: %s, %s, lost it: starting the command in %s", p->path,
             lock_message_words(p)->before, participant_text_format(who, text, sizeof text),
             age_format(delay_ms, age));
    }
}

static clave_identity lock_message_target(const struct fence_target *t)
{
    return (clave_identity){.host = *t->host ? t->host : NULL,
                            .pid = t->pid,
                            .name = *t->name ? t->name : NULL,
                            .command = *t->command ? t->command : NULL,
                            .text = *t->text ? t->text : NULL};
}

void lock_message_fencing(const struct run_plan *p, const struct fence_target *t)
{
    struct json j;
    char text[PARTICIPANT_TEXT_CAP];
    const clave_identity who = lock_message_target(t);
    if (p->o->json) {
        lock_message_begin(p, &j, "fencing");
        lock_message_put_identity(&j, "last", &who);
        if (t->token != 0)
            clave__json_int(&j, "token", t->token);
        clave__json_string(&j, "cause", t->foreign ? "foreign" : "lost");
        lock_message_end(&j);
    } else if (!p->quiet) {
        diag(p->o, "%s: %s, %s, %s: fencing it before the command starts", p->path,
             lock_message_words(p)->before, participant_text_format(&who, text, sizeof text),
             t->foreign ? "leaves no mark" : "did not end in order");
    }
}

void lock_message_fenced(const struct run_plan *p, int64_t took_ms)
{
    struct json j;
    char age[AGE_CAP];
    if (p->o->json) {
        lock_message_begin(p, &j, "fenced");
        clave__json_int(&j, "took_ms", took_ms);
        lock_message_end(&j);
    } else if (!p->quiet) {
        diag(p->o, "%s: fenced in %s", p->path, age_format(took_ms, age));
    }
}

void lock_message_fence_failed(const struct run_plan *p, const struct run_fence_end *end,
                               int64_t took_ms, int64_t pause_ms)
{
    static const char *const then[] = {
        [FENCE_FAILS_WAIT] = "wait", [FENCE_FAILS_PASS] = "pass", [FENCE_FAILS_EXIT] = "exit"};
    enum fence_fails fails = p->stages.fence.fails;
    struct json j;
    char age[AGE_CAP], why[96], next[64];
    if (end->timed_out)
        snprintf(why, sizeof why, "ended after %s (--fence-timeout)", age_format(took_ms, age));
    else
        snprintf(why, sizeof why, "%s %d", end->refused ? "it cannot be run" : "exit code",
                 end->code);
    if (p->o->json) {
        lock_message_begin(p, &j, "fence-failed");
        if (!end->timed_out)
            clave__json_int(&j, "code", end->code);
        clave__json_bool(&j, "timed_out", end->timed_out);
        clave__json_int(&j, "took_ms", took_ms);
        clave__json_string(&j, "then", then[fails]);
        if (pause_ms > 0)
            clave__json_int(&j, "again_in_ms", pause_ms);
        lock_message_end(&j);
        return;
    }
    if (pause_ms > 0)
        snprintf(next, sizeof next, "trying again in %s", age_format(pause_ms, age));
    else if (fails == FENCE_FAILS_PASS)
        snprintf(next, sizeof next, "starting the command all the same (--fence-fails pass)");
    else
        snprintf(next, sizeof next, "giving up (--fence-fails exit)");
    diag(p->o, "%s: the fence failed, %s: %s", p->path, why, next);
}

void lock_message_unfenced(const struct run_plan *p, const clave_identity *who)
{
    struct json j;
    char text[PARTICIPANT_TEXT_CAP];
    if (p->o->json) {
        lock_message_begin(p, &j, "unfenced");
        lock_message_put_identity(&j, "last", who);
        lock_message_end(&j);
    } else if (!p->quiet) {
        diag(p->o,
             "%s: %s, %s, leaves no mark (Curator, kazoo, or clave without --fence), so nothing is "
             "known of its end; it is not fenced (--fence-foreign never)",
             p->path, lock_message_words(p)->before,
             participant_text_format(who, text, sizeof text));
    }
}

void lock_message_done(const struct run_plan *p, const clave_once_record *former)
{
    struct json j;
    char age[AGE_CAP], who[PARTICIPANT_TEXT_CAP];
    bool aged = former->age_ms >= 0, done = former->state == CLAVE_ONCE_DONE;
    if (p->o->json) {
        lock_message_begin(p, &j, "done");
        clave__json_string(&j, "key", p->stages.once);
        clave__json_bool(&j, "succeeded", done);
        clave__json_int(&j, "began_ms", former->began);
        if (aged)
            clave__json_int(&j, "age_ms", former->age_ms);
        lock_message_put_identity(&j, "by", &former->identity);
        lock_message_end(&j);
    } else if (!p->quiet) {
        diag(p->o, "%s: '%s' was %s already, started%s%s%s by %s", p->path, p->stages.once,
             done ? "done" : "tried", aged ? " " : "", aged ? age_format(former->age_ms, age) : "",
             aged ? " ago" : "", participant_text_format(&former->identity, who, sizeof who));
    }
}

void lock_message_resumed(const struct run_plan *p, int64_t token)
{
    struct json j;
    if (!p->o->json) {
        diag_note(p->o, "%s: goes on with what was handed over, token %lld", p->path,
                  (long long)token);
        return;
    }
    lock_message_begin(p, &j, "resumed");
    clave__json_int(&j, "token", token);
    lock_message_end(&j);
}

void lock_message_replaced(const struct run_plan *p, int64_t token)
{
    struct json j;
    if (!p->o->json) {
        diag(p->o, "%s: clave %s goes on with the command, token %lld", p->path, clave_version(),
             (long long)token);
        return;
    }
    lock_message_begin(p, &j, "replaced");
    clave__json_int(&j, "token", token);
    clave__json_string(&j, "version", clave_version());
    lock_message_end(&j);
}

void lock_message_not_replaced(const struct run_plan *p, const char *why)
{
    struct json j;
    if (!p->o->json) {
        diag(p->o, "%s: not replaced: %s", p->path, why);
        return;
    }
    lock_message_begin(p, &j, "not-replaced");
    clave__json_string(&j, "why", why);
    lock_message_end(&j);
}

void lock_message_handed_over(const struct run_plan *p, int64_t timeout_ms)
{
    struct json j;
    char left[AGE_CAP];
    if (!p->o->json) {
        diag_note(p->o, "%s: handed over to '%s'; it is free again if nobody resumes it within %s",
                  p->path, p->resume, age_format(timeout_ms, left));
        return;
    }
    lock_message_begin(p, &j, "handed_over");
    clave__json_string(&j, "file", p->resume);
    clave__json_int(&j, "timeout_ms", timeout_ms);
    lock_message_end(&j);
}

void lock_message_resting(const struct run_plan *p, int64_t left_ms)
{
    struct json j;
    char left[AGE_CAP];
    if (!p->o->json) {
        diag_note(p->o, "%s: the command has ended; the minimum hold lasts for %s more", p->path,
                  age_format(left_ms, left));
        return;
    }
    lock_message_begin(p, &j, "resting");
    clave__json_int(&j, "left_ms", left_ms);
    lock_message_end(&j);
}

void lock_message_ended(const struct run_plan *p, int code, int64_t held_ms)
{
    struct json j;
    char age[AGE_CAP];
    if (!p->o->json) {
        diag_note(p->o, "%s: the command has ended after %s; exit code %d", p->path,
                  age_format(held_ms, age), code);
        return;
    }
    lock_message_begin(p, &j, "ended");
    clave__json_int(&j, "code", code);
    clave__json_int(&j, "held_ms", held_ms);
    lock_message_end(&j);
}
