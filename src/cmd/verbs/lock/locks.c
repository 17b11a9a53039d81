/* locks.c - `clave locks`: lists all locks, or the participants of one lock, or the owners that
 * wait for each other. Revoke and break are in queues/locks_revoke.h. As in `clave top`, the model
 * says what is a lock and who holds it (top_feed.h); the search for deadlocks is in
 * recipe/deadlock. The listings change nothing. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clave/deadlock.h"
#include "clave/uv.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/format.h"
#include "cmd/cli/json.h"
#include "cmd/cli/participant.h"
#include "cmd/cli/suggestion.h"
#include "cmd/queues/locks_revoke.h"
#include "cmd/queues/queue_view.h"
#include "cmd/top/top_feed.h"
#include "observe/lock_json.h"
#include "runtime/clock.h"

/* ---- one lock ------------------------------------------------------------------------------- */

enum { COLUMN_CAP = 128, COMMAND_CAP = 1024 };

#define DAY_MS (INT64_C(24) * 3600 * 1000)

/* How long it has held the lock. -1: it does not hold it, or that is not known. */
static int64_t locks_held_ms(const struct queue_view_place *at)
{
    if (!at->holds || at->held_since < 0)
        return -1;
    int64_t ms = clave__clock_wall() - at->held_since;
    return ms < 0 ? 0 : ms; /* the server's clock is ahead of ours */
}

static void locks_show_held(struct json *j, int64_t ms)
{
    if (ms >= 0)
        clave__json_int(j, "held_ms", ms);
    else
        clave__json_string(j, "held_ms", NULL);
}

/* How long it has held or waited. "<12s" means that it holds, has queued 12 s ago, and was granted
 * the lock at some time since. */
static const char *locks_format_time(const struct queue_view_place *at, int64_t ms,
                                     char out[AGE_CAP])
{
    char age[AGE_CAP];
    if (ms >= 0)
        return age_format(ms, out);
    bool unknown = at->holds && participant_text_is_known(&at->p->stat);
    snprintf(out, AGE_CAP, "%s%.*s", unknown ? "<" : "", AGE_CAP - 2,
             participant_text_age(&at->p->stat, age));
    return out;
}

static void locks_show_json(const struct options *o, const char *path, size_t position,
                            const struct queue_view_place *at)
{
    char note[LEFT_OVER_CAP];
    const clave_participant *p = at->p;
    const clave_identity *id = &p->identity;
    struct json j;
    json_begin(&j, stdout);
    clave__json_int(&j, "position", (int64_t)position);
    clave__json_bool(&j, "holder", at->holds);
    clave__json_string(&j, "role", at->role);
    participant_json_place(&j, p->node, &p->stat);
    participant_json_age(&j, &p->stat);
    locks_show_held(&j, locks_held_ms(at));
    participant_json_identity(&j, id);
    participant_json_revocable(&j, id);
    if (participant_text_is_known(&p->stat))
        clave__json_bool(&j, "asked", at->asked);
    else
        clave__json_string(&j, "asked", NULL);
    clave__json_bool(&j, "left_over", p->left_over);
    clave__json_string(&j, "note", participant_text_note(o, path, p, note));
    json_end(&j);
}

/* The columns of a line. */
struct locks_line {
    char position[24], token[TOKEN_CAP], time[AGE_CAP], host[COLUMN_CAP], pid[24], name[COLUMN_CAP];
    const char *role;
};
static const struct locks_line locks_header = {"#", "TOKEN", "TIME", "HOST", "PID", "NAME", "ROLE"};

static void locks_fill_line(struct locks_line *l, size_t position,
                            const struct queue_view_place *at)
{
    const clave_participant *p = at->p;
    const clave_identity *id = &p->identity;
    char text[COLUMN_CAP], token[TOKEN_CAP], age[AGE_CAP];
    *l = (struct locks_line){.pid = "-", .role = at->role};
    snprintf(l->position, sizeof l->position, "%zu", position);
    if (id->pid != 0)
        snprintf(l->pid, sizeof l->pid, "%lld", (long long)id->pid);
    snprintf(l->token, sizeof l->token, "%s", participant_text_token(&p->stat, token));
    snprintf(l->time, sizeof l->time, "%s", locks_format_time(at, locks_held_ms(at), age));
    snprintf(l->host, sizeof l->host, "%s",
             participant_text_column(id->host, false, text, sizeof text));
    snprintf(l->name, sizeof l->name, "%s",
             participant_text_column(id->name, false, text, sizeof text));
}

/* The widths of the columns. All zero for scripts: the columns are then separated by one space. */
struct locks_widths {
    int position, token, host, pid, name;
};

static void locks_put_line(const struct locks_line *l, const struct locks_widths *w)
{
    printf("%-*s %-7s %-*s %6s %-*s %-*s %-*s ", w->position, l->position, l->role, w->token,
           l->token, l->time, w->host, l->host, w->pid, l->pid, w->name, l->name);
}

static int locks_wider(int width, const char *text)
{
    int n = (int)strlen(text);
    return n > width ? n : width;
}

static void locks_measure(struct locks_widths *w, const struct locks_line *l)
{
    w->position = locks_wider(w->position, l->position);
    w->token = locks_wider(w->token, l->token);
    w->host = locks_wider(w->host, l->host);
    w->pid = locks_wider(w->pid, l->pid);
    w->name = locks_wider(w->name, l->name);
}

static void locks_show_text(const struct options *o, const char *path, const struct queue_view *v)
{
    bool screen = v->n > 0 && isatty(STDOUT_FILENO);
    struct locks_widths w = {0};
    struct locks_line l;
    if (screen)
        locks_measure(&w, &locks_header);
    for (size_t i = 0; screen && i < v->n; i++) {
        locks_fill_line(&l, i + 1, &v->list[i]);
        locks_measure(&w, &l);
    }
    if (screen) {
        locks_put_line(&locks_header, &w);
        puts("COMMAND");
    }
    for (size_t i = 0; i < v->n; i++) {
        const struct queue_view_place *at = &v->list[i];
        const clave_identity *id = &at->p->identity;
        char command[COMMAND_CAP];
        locks_fill_line(&l, i + 1, at);
        locks_put_line(&l, &w);
        printf("%s%s",
               participant_text_column(id->command ? id->command : id->text, true, command,
                                       sizeof command),
               at->asked ? " (asked to release it)" : "");
        if (id->command && id->text && *id->text)
            printf(" (%s)", participant_text_column(id->text, true, command, sizeof command));
        participant_text_put_note(o, path, at->p);
        putchar('\n');
    }
}

/* Every child of the node with a semaphore's leases counts as a lease, whoever created it. */
static void locks_say_strangers(const struct options *o, const char *path,
                                const struct queue_view *v)
{
    const struct lock_queue *q = clave__lock_model_get(&v->listing.model, path, true);
    const struct lock_stranger *s;
    const char *at = "";
    char hint[HINT_CAP];
    for (; q && (s = clave__lock_stranger_after(q, at)); at = clave__lock_stranger_name(s))
        diag(o, "%s: %s: %s; to remove it: %s", path, s->path, clave__lock_stranger_what(s),
             hint_command(o, (const char *const[]){"rm", "-r", s->path, NULL}, hint));
}

static int locks_show_queue(struct options *o, clave_client *c, const char *path)
{
    struct queue_view l;
    int code = EXIT_OK;
    clave_err err = queue_view_read(c, path, o->timeout_ms, &l);
    if (err != CLAVE_OK)
        code = diag_err(o, path, err, c);
    else if (l.n == 0 && no_queue_report(o, c, path))
        code = EXIT_PATH;
    else if (l.n == 0)
        diag_note(o, "%s: no holder, nobody waiting", path);
    for (size_t i = 0; o->json && i < l.n; i++)
        locks_show_json(o, path, i + 1, &l.list[i]);
    if (!o->json)
        locks_show_text(o, path, &l);
    if (err == CLAVE_OK)
        locks_say_strangers(o, path, &l);
    queue_view_fini(&l);
    return code;
}

/* ---- all locks ------------------------------------------------------------------------------ */

enum { TOP_LIST_COLUMN = 1024 };

/* What to print in the column of commands: for a slot, its id. */
static const char *all_locks_command(const struct top_lock *l)
{
    const struct top_place *p = &l->holder;
    if (l->kind != LOCK_KIND_SLOT && p->task && *p->task)
        return p->task;
    return l->kind == LOCK_KIND_SLOT || (!p->host && p->pid == 0) ? p->whose : NULL;
}

/* Says how many nodes are left over. The queue of slots is below their path. */
static void all_locks_left_over(const struct options *o, const struct top_lock *l)
{
    char hint[HINT_CAP], *queue;
    if (asprintf(&queue, "%s%s", l->path, l->kind == LOCK_KIND_SLOT ? "/queue" : "") < 0)
        return;
    printf(" (left over: no session owns %zu of its nodes; to see %s: %s)", l->nleft_over,
           l->nleft_over > 1 ? "them" : "it",
           hint_command(o, (const char *const[]){"locks", queue, NULL}, hint));
    free(queue);
}

/* Says what prevents others from getting the lock, with the commands to repair that. */
static void all_locks_faults(const struct options *o, const struct top_lock *l)
{
    char hint[HINT_CAP];
    if (l->bad_limit) {
        fputs(" (the limit is no number, so nobody takes a slot; to set it: ", stdout);
        format_text(
            stdout,
            hint_command(o, (const char *const[]){"slot", "limit", l->path, "N", NULL}, hint));
        putchar(')');
    }
    if (!l->stranger)
        return;
    fputs(" (", stdout);
    format_text(stdout, l->stranger);
    printf(": %s; to remove it: ", l->stranger_what);
    format_text(stdout,
                hint_command(o, (const char *const[]){"rm", "-r", l->stranger, NULL}, hint));
    if (l->nstrangers > 1)
        printf("; %zu more", l->nstrangers - 1);
    putchar(')');
}

static void all_locks_line(const struct options *o, const struct top_lock *l, int64_t now)
{
    const struct top_place *p = &l->holder;
    char host[TOP_LIST_COLUMN], command[TOP_LIST_COLUMN], age[AGE_CAP] = "-", pid[24] = "-";
    if (p->since >= 0)
        age_format(now - p->since, age);
    if (p->pid != 0)
        snprintf(pid, sizeof pid, "%" PRId64, p->pid);
    format_text(stdout, l->path);
    printf(" %s %zu %zu %s%s %s %s %s", clave__lock_kind_name(l->kind), l->nholders, l->nwaiters,
           p->since >= 0 && p->at_most ? "<" : "", age,
           participant_text_column(p->host, false, host, sizeof host), pid,
           participant_text_column(all_locks_command(l), true, command, sizeof command));
    if (l->nleft_over > 0)
        all_locks_left_over(o, l);
    all_locks_faults(o, l);
    putchar('\n');
}

/* Waits until the whole tree has been read. */
static clave_err all_locks_await(struct top_feed *f, int wakeup, int64_t until,
                                 struct top_view *view)
{
    for (;;) {
        eventfd_t count;
        struct pollfd fd = {.fd = wakeup, .events = POLLIN};
        clave_err err = top_feed_read(f, NULL, false, view);
        int64_t left = until - clave_now();
        if (err == CLAVE_OK && view->err != CLAVE_OK)
            err = view->err;
        if (err != CLAVE_OK || view->loaded)
            return err;
        if (left <= 0)
            return CLAVE_ETIMEDOUT;
        top_view_fini(view);
        if (poll(&fd, 1, (int)left) > 0)
            eventfd_read(wakeup, &count);
    }
}

static clave_err all_locks_print(const struct options *o, struct top_feed *f,
                                 const struct top_view *view)
{
    if (view->hidden || view->partial)
        diag(o, view->hidden ? "there may be more locks, below nodes that may not be read (--auth)"
                             : "there are more locks than there is memory for");
    if (o->json)
        return top_feed_json(f);
    for (size_t i = 0; i < view->nlocks; i++)
        all_locks_line(o, &view->locks[i], clave__clock_wall());
    if (view->nlocks == 0)
        diag_note(o, "no locks");
    return CLAVE_OK;
}

static int all_locks_show(struct options *o)
{
    clave_client *c;
    struct top_feed *f = NULL;
    struct top_view view = {.loaded = false};
    int code = connect_open(o, NULL, &c);
    if (code != EXIT_OK)
        return code;
    int wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    clave_err err = top_feed_new(&f, c, "/", wakeup);
    if (err == CLAVE_OK)
        err = all_locks_await(f, wakeup, clave_now() + o->timeout_ms, &view);
    if (err == CLAVE_OK)
        err = all_locks_print(o, f, &view);
    code = err == CLAVE_OK ? EXIT_OK : diag_err(o, "/", err, c);
    top_view_fini(&view);
    top_feed_free(f);
    connect_close(c);
    close(wakeup);
    return code;
}

/* ---- deadlocks ------------------------------------------------------------------------------ */

enum { PATH_CAP = 1024, TASK_CAP = 64 };

/* Describes a member: what its node says about it, or else its owner or its session. If several
 * threads share a session, adds which one it is. */
static const char *locks_deadlocks_member_format(const clave_deadlock_member *m,
                                                 char out[PARTICIPANT_TEXT_CAP])
{
    const clave_identity *id = &m->identity;
    char task[TASK_CAP], owner[PARTICIPANT_TEXT_CAP];
    if (id->host || id->pid != 0 || id->name || id->command || (id->text && *id->text))
        participant_text_format(id, out, PARTICIPANT_TEXT_CAP);
    else if (id->owner)
        snprintf(
            out, PARTICIPANT_TEXT_CAP, "owner %s",
            participant_text_printable(id->owner, owner, PARTICIPANT_TEXT_CAP - sizeof "owner "));
    else
        snprintf(out, PARTICIPANT_TEXT_CAP, "session 0x%" PRIx64,
                 (uint64_t)m->stat.ephemeral_owner);
    size_t n = strlen(out);
    if (id->task)
        snprintf(out + n, PARTICIPANT_TEXT_CAP - n, " #%s",
                 participant_text_printable(id->task, task, sizeof task));
    return out;
}

static void locks_deadlocks_show_text(const clave_deadlock *d)
{
    char who[PARTICIPANT_TEXT_CAP], next[PARTICIPANT_TEXT_CAP], path[PATH_CAP];
    printf("%sdeadlock of %zu\n", d->certain ? "" : "possible ", d->n);
    for (size_t i = 0; i < d->n; i++) {
        const clave_deadlock_member *m = &d->members[i], *n = &d->members[(i + 1) % d->n];
        locks_deadlocks_member_format(m, who);
        locks_deadlocks_member_format(n, next);
        if (m->path)
            printf("  %s waits for %s behind %s\n", who,
                   participant_text_printable(m->path, path, sizeof path), next);
        else
            printf("  %s is to outlast %s\n", who, next);
    }
}

static void locks_deadlocks_show_member(struct json *j, const clave_deadlock_member *m)
{
    const clave_identity *id = &m->identity;
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "path", m->path);
    clave__json_string(j, "node", m->node);
    clave__json_string(j, "blocker", m->blocker);
    clave__json_int(j, "token", m->stat.czxid);
    json_hex(j, "session", m->stat.ephemeral_owner);
    clave__json_int(j, "since_ms", m->stat.ctime);
    participant_json_identity(j, id);
    clave__json_string(j, "owner", id->owner);
    clave__json_string(j, "task", id->task);
    clave__json_close(j, '}');
}

static void locks_deadlocks_show_json(const clave_deadlock *d)
{
    struct json j;
    json_begin(&j, stdout);
    clave__json_bool(&j, "certain", d->certain);
    clave__json_open(&j, "members", '[');
    for (size_t i = 0; i < d->n; i++)
        locks_deadlocks_show_member(&j, &d->members[i]);
    clave__json_close(&j, ']');
    clave__json_string(&j, "victim", d->victim < d->n ? d->members[d->victim].node : NULL);
    clave__json_string(&j, "text", d->text);
    json_end(&j);
}

/* Refuses a path that does not exist: a mistyped path would seem to have no deadlocks. Returns
 * EXIT_OK, or an exit code after a message. */
static int locks_deadlocks_look_for(struct options *o, clave_client *c, const char *const *paths,
                                    size_t n)
{
    for (size_t i = 0; i < n; i++) {
        clave_err err = clave_exists(c, paths[i], options_left_ms(o), NULL);
        if (err != CLAVE_OK)
            return diag_err(o, paths[i], err, c);
    }
    return EXIT_OK;
}

static int locks_deadlocks_search(struct options *o, clave_client *c, const char *const *paths,
                                  size_t n)
{
    clave_deadlocks *found;
    clave_err err = clave_deadlocks_find(c, paths, n, o->timeout_ms, &found);
    if (err != CLAVE_OK)
        return diag_err(o, paths[0], err, c);
    size_t certain = 0;
    for (size_t i = 0; i < found->n; i++) {
        (o->json ? locks_deadlocks_show_json : locks_deadlocks_show_text)(&found->list[i]);
        certain += found->list[i].certain;
    }
    if (found->n == 0)
        diag_note(o, "no deadlock");
    else if (certain == 0)
        diag_note(o, "no certain deadlock: a session in each of these may have another thread, "
                     "which goes on");
    int code = certain > 0 ? EXIT_DEADLOCK : EXIT_OK;
    clave_deadlocks_free(found);
    return code;
}

/* Searches the trees at these paths, or the whole tree if there are none. Returns EXIT_DEADLOCK if
 * a certain deadlock was printed; EXIT_OK if there is none, or there are only possible ones; or
 * another exit code after a message. */
static int locks_deadlocks_show(struct options *o, const char *const *paths, size_t n)
{
    static const char *const everywhere = "/";
    clave_client *c;
    int code = connect_open(o, NULL, &c);
    if (code != EXIT_OK)
        return code;
    code = locks_deadlocks_look_for(o, c, paths, n);
    if (code == EXIT_OK)
        code = locks_deadlocks_search(o, c, n > 0 ? paths : &everywhere, n > 0 ? n : 1);
    connect_close(c);
    return code;
}

/* ---- the verb ------------------------------------------------------------------------------- */

enum { LOCKS_FORCE = FLAG_LONG, LOCKS_DEADLOCKS, LOCKS_WATCH };

/* Fills in the request from the arguments after "revoke" or "break", and carries it out. */
static int locks_run_revoke(struct options *o, struct revoke_request *request)
{
    bool misplaced = request->breaks ? request->wait_ms > 0 : request->force || request->yes;
    if (!options_args(o, 3, 3))
        return EXIT_USAGE;
    if (misplaced)
        return diag_usage(o, "--wait is for revoke, --force and --yes are for break");
    request->path = o->argv[1];
    request->node = o->argv[2];
    return connect_path_ok(o, request->path) ? revoke_node(o, request) : EXIT_PATH;
}

static int locks_run_deadlocks(struct options *o, bool oust_flags)
{
    const char *const *paths = (const char *const *)o->argv;
    size_t n = (size_t)o->argc;
    if (oust_flags)
        return diag_usage(o, "--deadlocks takes only paths");
    for (size_t i = 0; i < n; i++)
        if (!connect_path_ok(o, paths[i]))
            return EXIT_PATH;
    return locks_deadlocks_show(o, paths, n);
}

/* The first argument is neither "revoke" nor "break". Returns EXIT_OK if it is a valid path, or an
 * exit code after a message. */
static int locks_no_such_word(struct options *o, const char *word)
{
    static const char *const words[] = {"revoke", "break", NULL};
    char instead[SUGGESTION_CAP];
    if (*suggestion_for_word(words, word, instead))
        return diag_usage(o, "'%s' is not a path%s", word, instead);
    return connect_path_ok(o, word) ? EXIT_OK : EXIT_PATH;
}

static int run_locks(struct options *o, int argc, char **argv)
{
    struct revoke_request request = {.breaks = false};
    bool deadlocks = false, watch = false;
    int id;
    while ((id = options_next(o, argc, argv)) > 0) {
        deadlocks |= id == LOCKS_DEADLOCKS;
        watch |= id == LOCKS_WATCH;
        if (id == 'w' && !options_duration(o, "wait", 1, DAY_MS, &request.wait_ms))
            return EXIT_USAGE;
        request.force |= id == LOCKS_FORCE;
        request.yes |= id == 'y';
    }
    if (id == OPTIONS_STOP)
        return o->status;
    if (watch && (deadlocks || (o->argc > 0 && *o->argv[0] != '/')))
        return diag_usage(o, "--watch is for 'clave locks PATH'");
    if (deadlocks)
        return locks_run_deadlocks(o, request.force || request.yes || request.wait_ms > 0);
    request.breaks = o->argc > 0 && strcmp(o->argv[0], "break") == 0;
    if (request.breaks || (o->argc > 0 && strcmp(o->argv[0], "revoke") == 0))
        return locks_run_revoke(o, &request);
    if (o->argc > 0 && *o->argv[0] != '/')
        return locks_no_such_word(o, o->argv[0]);
    if (!options_args(o, 0, 1))
        return EXIT_USAGE;
    if (request.force || request.yes || request.wait_ms > 0)
        return diag_usage(o, "the flag is for 'clave locks revoke' or 'clave locks break'");
    if (o->argc == 0 && watch)
        return diag_usage(o, "--watch needs a PATH; 'clave top' follows all locks");
    if (o->argc == 0)
        return all_locks_show(o);
    return connect_path_ok(o, o->argv[0]) ? queue_repeat(o, o->argv[0], watch, locks_show_queue)
                                          : EXIT_PATH;
}

static const struct flag flags[] = {
    {LOCKS_DEADLOCKS, "deadlocks", NULL, "look for owners that wait for each other, below PATHs"},
    {LOCKS_WATCH, "watch", NULL, "print the queue of PATH again after every change"},
    {'w', "wait", "DURATION", "revoke: wait until it is released [only ask]"},
    {LOCKS_FORCE, "force", NULL, "break: even if its owner may be alive"},
    {'y', "yes", NULL, "break: do not ask at the terminal"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_locks = {
    .name = "locks",
    .args = "[PATH] | revoke|break PATH NODE | --deadlocks [PATH]...",
    .summary = "Print all locks, or the queue of one; ask a holder to release it",
    .text =
        "Without a path, one lock or election a line: path, kind, number of holders, of waiters;\n"
        "of the first holder, how long it has held (<: at most), host, process, name or command.\n"
        "\n"
        "With a path, one participant a line, holders first: position, role, token, how long it\n"
        "has held or waited (<: at most), host, process, name, command; - for what its node does\n"
        "not record; on a terminal under a header. A kazoo lock with its default name takes no\n"
        "part in the queue: its line says so. A node that no session owns, as one of a copied\n"
        "tree, is left-over: it never ends by itself, and its line has the command that ends it.\n"
        "Foreign nodes among slots or leases take up room there, and are reported as well.\n"
        "\n"
        "revoke asks the owner of a node to release it, and prints whom it asked. Programs that\n"
        "opted in release it, as 'clave lock --revocable' does; others are not asked. break\n"
        "deletes the node, and its owner is notified that it lost the lock. Without --force,\n"
        "the node of an owner that may be alive stays. NODE is a name, a path or a token. Exit\n"
        "code 66: no such node, or not a lock; 73: refused; 75: not released in time.\n"
        "\n"
        "--deadlocks checks all locks at and below each PATH, or all without one, and\n"
        "prints every cycle of owners that wait for each other. A session of Curator or kazoo\n"
        "may have threads that do not wait: with one, a deadlock is only possible. Exit code\n"
        "79: at least one is certain.\n",
    .flags = flags,
    .max_args = -1,
    .run = run_locks,
};
