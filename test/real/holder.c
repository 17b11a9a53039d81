/* holder.c - one holder, or one candidate, among the real faults. What it believes goes to a log
 * that all of them share, with the time of the machine:
 *
 *   holder lock|latch|session-latch CONNECT PATH LOG NAME STOP SESSION_MS HOLD_MS
 *   holder under LOG NAME HOLD_MS          below clave lock or clave elect, as their command
 *
 * Until the file STOP exists it acquires, holds for HOLD_MS (0: until it is lost) and lets go. A
 * line of the log is "NS WHAT NAME TOKEN DETAIL", one write with O_APPEND:
 *
 *   ask      in front of an acquire; TOKEN is 0
 *   grant    after the grant
 *   held     valid_for said yes; NS was read before it was asked, DETAIL after
 *   gone     valid_for said no
 *   lost     the event of it came
 *   release  in front of the release; as for held, it was valid
 *   released after it; DETAIL: how it ended
 *   write    in front of a guarded write; DETAIL: its number
 *   wrote    a guarded write (a sequential node below PATH-writes) was done; DETAIL: its number
 *   refused  it was not
 *   unsure   nobody knows
 *   late     the process was not run since DETAIL, an NS; TOKEN is 0
 *
 * A holder whose hold is gone tries to write once more, `latch` with the node of its former term.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clave/clave.h"
#include "clave/uv.h"

enum { STEP_MS = 5, LATE_MS = 100, STEPS_A_WRITE = 5, WRITE_MS = 50, PATH_CAP = 512 };

struct holder {
    const char *path, *name, *stop;
    int64_t hold_ns; /* 0: until it is lost */
    int log;
    unsigned writes;       /* begun so far */
    _Atomic int64_t token; /* what the lines name: of the newest grant */
    clave_client *session;

    clave_latch_policy policy;
    clave_async_latch *latch; /* this and what follows: the loop's thread only, but for `terms` */
    bool leads, valid;
    clave_async_grant *term; /* the newest, perhaps over; NULL: there was none */
    int64_t since;           /* of the term, and so is: */
    char node[PATH_CAP];
    unsigned steps;
    _Atomic unsigned terms; /* ended so far */
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void nap(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static void note(const struct holder *h, int64_t ns, const char *what, int64_t token,
                 const char *detail)
{
    char line[256];
    int n = snprintf(line, sizeof line, "%" PRId64 " %s %s %" PRId64 " %s\n", ns, what, h->name,
                     token, detail);
    if (n >= (int)sizeof line || write(h->log, line, (size_t)n) != n)
        exit(74);
}

/* Of a question that was asked at `ns`, and answered before now: it is valid. */
static void note_valid(const struct holder *h, int64_t ns, bool over)
{
    char answered[24];
    snprintf(answered, sizeof answered, "%" PRId64, now_ns());
    note(h, ns, over ? "release" : "held", h->token, answered);
}

static void check(clave_err err, const char *what)
{
    if (err == CLAVE_OK)
        return;
    fprintf(stderr, "holder: %s: %s\n", what, clave_strerror(err));
    exit(1);
}

static bool is_over(const struct holder *h)
{
    return access(h->stop, F_OK) == 0;
}

/* ---- the machine ------------------------------------------------------------------------ */

/* A thread that asks clave for nothing: when it does not get its turn, the holder does not
 * either, and hears of no loss before it does. */
static void *watch_the_clock(void *arg)
{
    const struct holder *h = arg;
    for (int64_t before = now_ns(), now;; before = now) {
        char since[24];
        nap(STEP_MS);
        now = now_ns();
        snprintf(since, sizeof since, "%" PRId64, before);
        if (now - before > (int64_t)LATE_MS * 1000000)
            note(h, now, "late", 0, since);
    }
    return NULL;
}

/* ---- guarded writes --------------------------------------------------------------------- */

/* Its node is named PATH-writes/NAME.TOKEN.NUMBER- and what the server adds: their order. */
struct note_of_write {
    char path[PATH_CAP];
    struct holder *h;
    int64_t token;
    char number[16];
};

static void begin_write(struct note_of_write *w, struct holder *h)
{
    w->h = h;
    w->token = h->token;
    snprintf(w->number, sizeof w->number, "%u", h->writes++);
    snprintf(w->path, sizeof w->path, "%s-writes/%s.%" PRId64 ".%s-", h->path, h->name, w->token,
             w->number);
    note(h, now_ns(), "write", w->token, w->number);
}

static void end_write(const struct note_of_write *w, clave_err err)
{
    bool unknown = clave_err_classify(err) == CLAVE_CLASS_UNKNOWN;
    note(w->h, now_ns(),
         err == CLAVE_OK ? "wrote"
         : unknown       ? "unsure"
                         : "refused",
         w->token, w->number);
}

static void on_written(clave_async_client *c, const clave_result *res, void *arg)
{
    struct note_of_write *w = arg;
    (void)c;
    end_write(w, res->err);
    free(w);
}

/* ---- a lock ----------------------------------------------------------------------------- */

static void on_lock_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct holder *h = arg;
    (void)m;
    if (ev->kind == CLAVE_MUTEX_LOST)
        note(h, now_ns(), "lost", h->token, clave_err_name(ev->why));
}

static void write_locked(struct holder *h, clave_grant *g)
{
    struct note_of_write w;
    begin_write(&w, h);
    end_write(&w,
              clave_grant_create(g, w.path, NULL, 0, CLAVE_PERSISTENT_SEQUENTIAL, WRITE_MS, NULL));
}

/* One hold, from its grant to its end: whether it is to be released. */
static bool hold_lock(struct holder *h, clave_mutex *l)
{
    clave_grant *g;
    if (clave_mutex_grant(l, &g) != CLAVE_OK)
        return false; /* lost by now */
    h->token = clave_grant_token(g);
    int64_t start = now_ns(), ns = start;
    note(h, start, "grant", h->token, "lock");
    bool over = false;
    for (unsigned i = 0; !over && clave_grant_valid_for(g, 0); i++) {
        over = is_over(h) || (h->hold_ns != 0 && ns - start >= h->hold_ns);
        note_valid(h, ns, over);
        if (!over && h->hold_ns != 0 && i % STEPS_A_WRITE == 0)
            write_locked(h, g);
        if (!over)
            nap(STEP_MS);
        ns = now_ns();
    }
    if (!over) {
        note(h, now_ns(), "gone", h->token, "-");
        write_locked(h, g);
    }
    clave_grant_free(g);
    return over;
}

static void run_lock(struct holder *h)
{
    clave_mutex *l;
    clave_mutex_options o = {.size = sizeof o, .event_cb = on_lock_event, .event_arg = h};
    check(clave_mutex_new(&l, h->session, h->path, &o), "lock");
    do {
        note(h, now_ns(), "ask", 0, "acquire");
        check(clave_mutex_acquire(l, -1), "acquire");
        bool released = hold_lock(h, l);
        clave_err err = clave_mutex_release(l);
        if (released)
            note(h, now_ns(), "released", h->token, clave_err_name(err));
    } while (h->hold_ns != 0 && !is_over(h));
    clave_mutex_free(l);
}

/* ---- a candidate ------------------------------------------------------------------------ */

static void write_as_leader(struct holder *h)
{
    struct note_of_write *w = calloc(1, sizeof *w);
    if (!w)
        exit(71);
    begin_write(w, h);
    clave_err err = clave_async_grant_create(h->term, w->path, NULL, 0, CLAVE_PERSISTENT_SEQUENTIAL,
                                             on_written, w);
    if (err == CLAVE_OK)
        return;
    end_write(w, err);
    free(w);
}

/* With the node of the former term in its hand, past the latch. */
static void write_as_former_leader(struct holder *h, clave_async_client *c)
{
    struct note_of_write *w = calloc(1, sizeof *w);
    if (!w)
        exit(71);
    begin_write(w, h);
    clave_op ops[] = {
        {.kind = CLAVE_OP_CHECK, .path = h->node, .version = -1},
        {.kind = CLAVE_OP_CREATE, .path = w->path, .mode = CLAVE_PERSISTENT_SEQUENTIAL}};
    check(clave_async_multi(c, ops, 2, on_written, w), "multi");
}

static void on_latch_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    struct holder *h = arg;
    if (ev->kind == CLAVE_LATCH_FAILED)
        check(ev->why, "latch");
    if (ev->kind == CLAVE_LATCH_LEADER) {
        clave_async_grant_free(h->term);
        check(clave_async_latch_grant(l, &h->term), "grant");
        h->since = now_ns();
        h->token = clave_async_grant_token(h->term);
        snprintf(h->node, sizeof h->node, "%s", clave_async_grant_node(h->term));
        h->leads = h->valid = true;
        h->steps = 0;
        note(h, h->since, "grant", h->token, "latch");
    } else if (ev->kind == CLAVE_LATCH_NOT_LEADER && h->leads) {
        h->leads = false;
        h->terms++;
        if (ev->why != CLAVE_OK)
            note(h, now_ns(), "lost", h->token, clave_err_name(ev->why));
    }
}

/* What a leader does every few milliseconds; `ns` is older than the question whether it leads. */
static void lead(clave_async_client *c, void *arg)
{
    struct holder *h = arg;
    int64_t ns = now_ns();
    bool valid = h->term && clave_async_grant_valid_for(h->term, clave_now(), 0);
    if (h->valid && !valid) {
        h->valid = false;
        note(h, now_ns(), "gone", h->token, "-");
        write_as_former_leader(h, c);
    }
    if (!valid)
        return;
    bool over = is_over(h) || (h->hold_ns != 0 && ns - h->since >= h->hold_ns);
    note_valid(h, ns, over);
    if (over) {
        h->valid = false;
        check(clave_async_latch_resign(h->latch), "resign");
        note(h, now_ns(), "released", h->token, "CLAVE_OK");
    } else if (h->hold_ns != 0 && h->steps++ % STEPS_A_WRITE == 0) {
        write_as_leader(h);
    }
}

static void start_latch(clave_async_client *c, void *arg)
{
    struct holder *h = arg;
    clave_latch_options o = {.size = sizeof o,
                             .id = h->name,
                             .policy = h->policy,
                             .event_cb = on_latch_event,
                             .event_arg = h};
    check(clave_async_latch_new(&h->latch, c, h->path, &o), "latch");
    check(clave_async_latch_start(h->latch), "start");
}

static void free_latch(clave_async_client *c, void *arg)
{
    struct holder *h = arg;
    lead(c, h); /* one that has been elected meanwhile resigns */
    clave_async_latch_free(h->latch);
    clave_async_grant_free(h->term);
}

static void run_latch(struct holder *h)
{
    check(clave_client_run(h->session, start_latch, h), "run");
    while (!is_over(h) && (h->hold_ns != 0 || h->terms == 0)) {
        check(clave_client_run(h->session, lead, h), "run");
        nap(STEP_MS);
    }
    check(clave_client_run(h->session, free_latch, h), "run");
}

/* ---- a command, which is ended from outside --------------------------------------------- */

static int run_under(int argc, char **argv)
{
    const char *token = getenv("CLAVE_TOKEN");
    if (argc != 5 || !token)
        return 64;
    struct holder h = {.name = argv[3], .token = strtoll(token, NULL, 10)};
    h.log = open(argv[2], O_WRONLY | O_APPEND | O_CREAT, 0644);
    if (h.log < 0)
        return 74;
    signal(SIGTERM, SIG_IGN); /* SIGKILL is what counts */
    int64_t start = now_ns(), ns = start, hold_ns = strtoll(argv[4], NULL, 10) * 1000000;
    note(&h, start, "grant", h.token, "command");
    while (hold_ns == 0 || ns - start < hold_ns) {
        note_valid(&h, ns, false);
        nap(STEP_MS);
        ns = now_ns();
    }
    return 0;
}

int main(int argc, char **argv)
{
    clave_client_options o = {.size = sizeof o};
    if (argc > 1 && strcmp(argv[1], "under") == 0)
        return run_under(argc, argv);
    if (argc != 9)
        return 64;
    struct holder h = {.path = argv[3], .name = argv[5], .stop = argv[6]};
    o.session_timeout_ms = atoi(argv[7]);
    h.hold_ns = strtoll(argv[8], NULL, 10) * 1000000;
    h.log = open(argv[4], O_WRONLY | O_APPEND | O_CREAT, 0644);
    if (h.log < 0)
        return 74;
    pthread_t watch;
    if (pthread_create(&watch, NULL, watch_the_clock, &h) != 0)
        return 71;
    pthread_detach(watch);
    check(clave_client_open(&h.session, NULL, argv[2], &o), "open");
    h.policy = strcmp(argv[1], "latch") == 0 ? CLAVE_POLICY_STANDARD : CLAVE_POLICY_SESSION;
    if (strcmp(argv[1], "lock") == 0)
        run_lock(&h);
    else
        run_latch(&h);
    clave_client_close(h.session, 1000);
    return 0;
}
