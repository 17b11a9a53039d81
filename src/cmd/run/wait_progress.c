/* wait_progress.c - the timer and the requests behind wait_progress.h. runner.c calls it. It asks
 * for at most one listing at a time, and writes nothing after wait_progress_end. */
#include "cmd/run/wait_progress.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/path.h"
#include "client/client_for_recipes.h"
#include "cmd/cli/participant_text.h"
#include "cmd/cli/standard_error.h"
#include "cmd/run/lock_messages.h"
#include "recipe/queue/identity.h"
#include "recipe/queue/queue_order.h"
#include "runtime/clock.h"

/* The first report comes late enough that a short wait prints nothing. */
enum { LIVE_FIRST_MS = 300, LIVE_AGAIN_MS = 2000, LINES_FIRST_MS = 1000, LINES_AGAIN_MS = 15000 };

void wait_progress_init(struct wait_progress *p, const struct run_plan *plan, uv_loop_t *loop)
{
    const char *term = getenv("TERM");
    *p = (struct wait_progress){.plan = plan};
    p->live = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0 && !plan->o->json &&
              plan->o->verbose == 0; /* log lines would run into it */
    uv_timer_init(loop, &p->timer);
    p->timer.data = p;
}

/* ---- showing -------------------------------------------------------------------------------- */

static size_t wait_progress_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

static void wait_progress_draw(struct wait_progress *p, const char *what, const char *detail)
{
    char line[1024], waited[AGE_CAP];
    snprintf(line, sizeof line, "%s: waiting %s, %zu ahead%s%s", p->plan->path,
             age_format(clave_now() - p->began, waited), p->ahead, what, detail);
    fprintf(standard_error(), "\r%.*s\033[K", (int)(wait_progress_columns() - 1), line);
    fflush(standard_error());
    p->drawn = true;
}

static void wait_progress_show(struct wait_progress *p, const clave_participant *holder)
{
    int64_t token = holder ? holder->stat.czxid : 0;
    char who[PARTICIPANT_TEXT_CAP];
    wait_progress_holder *found = p->found;
    p->found = NULL;
    if (found)
        found(p->found_arg, holder);
    if (!p->waiting)
        return;
    p->reported_disconnected = false;
    p->reported_limit_missing = false;
    if (p->live && holder) {
        wait_progress_draw(p, p->plan->elects ? "; led by " : "; held by ",
                           participant_text_format(&holder->identity, who, sizeof who));
    } else if (p->live) {
        wait_progress_draw(p, "", "");
    } else if (token != p->reported_holder || p->ahead != p->reported_ahead) {
        lock_message_waiting(p->plan, p->ahead, holder);
        p->reported_holder = token;
        p->reported_ahead = p->ahead;
    }
}

/* ---- asking: the children, then the first of them ------------------------------------------- */

static void wait_progress_on_holder(clave_async_client *c, const clave_result *res, void *arg)
{
    struct wait_progress *p = arg;
    assert(p->asking);
    (void)c;
    p->asking = false;
    char *data = res->err == CLAVE_OK ? calloc(1, res->len + 1) : NULL;
    if (!data) {
        wait_progress_show(p, NULL);
        return;
    }
    clave_participant holder = {.stat = *res->stat};
    if (res->len > 0)
        memcpy(data, res->data, res->len);
    clave__identity_parse(data, res->len, &holder.identity);
    wait_progress_show(p, &holder);
    free(data);
}

static const struct queue_order_rule *wait_progress_rule(const struct wait_progress *p)
{
    static const struct queue_order_rule *const rules[] = {
        [KIND_MUTEX] = &clave__queue_order_mutex,
        [KIND_READ] = &clave__queue_order_read,
        [KIND_WRITE] = &clave__queue_order_write,
        [KIND_LEASE] = &clave__queue_order_lease,
    };
    return p->plan->elects ? &clave__queue_order_latch : rules[p->plan->kind];
}

/* Our place by this listing: after the node we were after. */
static void wait_progress_count_ahead(struct wait_progress *p, const clave_result *names)
{
    struct queue_order_place place = clave__queue_order_locate(wait_progress_rule(p), names->names,
                                                               names->nnames, p->predecessor);
    /* A reader waits for writers only: its event has the number. */
    if (place.found && p->plan->kind != KIND_READ)
        p->ahead = place.ahead + 1;
}

static clave_err wait_progress_ask_holder(struct wait_progress *p, const clave_result *names)
{
    const struct clave_mem *mem = clave__client_mem(p->client);
    size_t *order = calloc(names->nnames, sizeof *order);
    char *path = NULL;
    clave_err err = CLAVE_ENOMEM;
    if (order)
        err =
            clave__queue_order_sort(wait_progress_rule(p), mem, names->names, names->nnames, order);
    if (err == CLAVE_OK)
        path = clave__path_child(NULL, p->plan->holders, names->names[order[0]]);
    if (path)
        err = clave_async_get(p->client, path, NULL, wait_progress_on_holder, p);
    free(path);
    free(order);
    return path ? err : CLAVE_ENOMEM;
}

static void wait_progress_on_names(clave_async_client *c, const clave_result *res, void *arg)
{
    struct wait_progress *p = arg;
    assert(p->asking);
    (void)c;
    if ((p->waiting || p->found) && res->err == CLAVE_OK && res->nnames > 0) {
        wait_progress_count_ahead(p, res);
        if (wait_progress_ask_holder(p, res) == CLAVE_OK)
            return;
    }
    p->asking = false;
    wait_progress_show(p, NULL);
}

static bool wait_progress_ask(struct wait_progress *p)
{
    if (!p->asking)
        p->asking = clave_async_children(p->client, p->plan->holders, NULL, wait_progress_on_names,
                                         p) == CLAVE_OK;
    clave_uv_flush(p->uv);
    return p->asking;
}

bool wait_progress_find_holder(struct wait_progress *p, wait_progress_holder *found, void *arg)
{
    assert(found && !p->found);
    p->found_arg = arg;
    p->found = wait_progress_ask(p) ? found : NULL;
    return p->found;
}

/* The holder cannot be known now. Reported once for each long loss of the connection. */
static void wait_progress_show_disconnected(struct wait_progress *p)
{
    const char *fault = clave_async_client_errmsg(p->client);
    if (p->live)
        wait_progress_draw(p, "; no server is answering: ", fault);
    else if (!p->reported_disconnected)
        lock_message_away(p->plan, fault);
    p->reported_disconnected = true;
    p->reported_holder = -1; /* to be reported again */
}

/* The holders are not what we wait for. */
static void wait_progress_show_limit_missing(struct wait_progress *p)
{
    if (p->live)
        wait_progress_draw(p, "; no number of leases in ", p->plan->limit_path);
    else if (!p->reported_limit_missing)
        lock_message_no_limit(p->plan, p->ahead);
    p->reported_limit_missing = true;
    p->reported_holder = -1; /* to be reported again */
}

/* The client tries again by itself, as Curator and kazoo do; nothing else says what we wait for. */
bool wait_progress_is_put_off(const struct wait_progress *p)
{
    return !p->queued && clave__client_latest_fault(p->client)->err == CLAVE_EOPTIMEOUT;
}

static void wait_progress_show_put_off(struct wait_progress *p)
{
    if (p->live)
        wait_progress_draw(p, "; ", LOCK_MESSAGE_PUT_OFF);
    else if (!p->reported_put_off)
        lock_message_put_off(p->plan);
    p->reported_put_off = true;
    p->reported_holder = -1; /* to be reported again */
}

static void wait_progress_on_timer(uv_timer_t *t)
{
    struct wait_progress *p = t->data;
    if (!clave_async_client_is_connected(p->client)) {
        wait_progress_show_disconnected(p);
        return;
    }
    if (p->asking) {
        if (p->live)
            wait_progress_draw(p, "", "");
        return;
    }
    if (wait_progress_is_put_off(p)) {
        wait_progress_show_put_off(p);
        return;
    }
    if (acquisition_limit_missing(p->acquisition)) {
        wait_progress_show_limit_missing(p);
        return;
    }
    wait_progress_ask(p);
}

/* ---- before there is a session -------------------------------------------------------------- */

static void wait_progress_on_connecting(uv_timer_t *t)
{
    struct wait_progress *p = t->data;
    const char *fault = clave_async_client_errmsg(p->client);
    if (clave_async_client_is_connected(p->client))
        uv_timer_stop(t);
    else if (!p->plan->o->json)
        unreachable_report(&p->reach, fault);
    else if (unreachable_is_news(&p->reach, fault))
        lock_message_connecting(p->plan, fault);
}

void wait_progress_connect(struct wait_progress *p, clave_async_client *c, int64_t until)
{
    p->client = c;
    unreachable_begin(&p->reach, p->plan->o, p->plan->connect, until);
    if (!p->plan->quiet && (p->reach.says || p->plan->o->json))
        uv_timer_start(&p->timer, wait_progress_on_connecting, UNREACHABLE_FIRST_MS,
                       UNREACHABLE_AGAIN_MS);
}

/* ---- life ----------------------------------------------------------------------------------- */

void wait_progress_begin(struct wait_progress *p, const struct acquisition *acquisition,
                         clave_async_client *c, clave_uv *uv)
{
    assert(!p->waiting);
    p->acquisition = acquisition;
    p->client = c;
    p->uv = uv;
    p->began = clave_now();
    p->waiting = true;
    wait_progress_clear(p);
    uv_timer_stop(&p->timer);
    if (!p->plan->quiet)
        uv_timer_start(&p->timer, wait_progress_on_timer, p->live ? LIVE_FIRST_MS : LINES_FIRST_MS,
                       p->live ? LIVE_AGAIN_MS : LINES_AGAIN_MS);
}

void wait_progress_moved(struct wait_progress *p, size_t ahead, const char *predecessor)
{
    p->ahead = ahead;
    p->queued = true;
    snprintf(p->predecessor, sizeof p->predecessor, "%s", clave__path_name(predecessor));
}

void wait_progress_clear(struct wait_progress *p)
{
    if (p->drawn) {
        fputs("\r\033[K", standard_error());
        fflush(standard_error());
    }
    p->drawn = false;
    unreachable_clear(&p->reach);
}

void wait_progress_end(struct wait_progress *p)
{
    p->waiting = false;
    uv_timer_stop(&p->timer);
    wait_progress_clear(p);
}

void wait_progress_close(struct wait_progress *p)
{
    uv_close((uv_handle_t *)&p->timer, NULL);
}
