/* leader.c - `clave leader`: prints the leader and, with --watch, every change
 * (queues/leader_follow.h). It does not become a candidate and creates nothing. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clave/uv.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "cmd/cli/participant.h"
#include "cmd/queues/leader_follow.h"
#include "cmd/queues/queue_view.h"

enum { LEADER_WATCH = FLAG_LONG };

static void leader_show_json(const struct options *o, const char *path,
                             const struct leader_state *it)
{
    struct json j;
    char text[LEFT_OVER_CAP];
    json_begin(&j, stdout);
    clave__json_string(&j, "event", it->vacant ? "vacant" : "leader");
    clave__json_string(&j, "path", path);
    if (!it->vacant) {
        clave__json_string(&j, "id", it->id);
        participant_json_place(&j, it->node, &it->stat);
        json_bytes(&j, "value", it->value, it->len);
    }
    if (it->left_over) {
        clave__json_open(&j, "left_over", '{');
        participant_json_place(&j, it->node, &it->stat);
        clave__json_string(&j, "note",
                           participant_text_left_over(o, path, it->node, "this node", text));
        clave__json_close(&j, '}');
    }
    json_end(&j);
}

/* The line is never cut, however long it is, since scripts read it. */
static void leader_show_line(const struct leader_state *it)
{
    char id[PARTICIPANT_TEXT_CAP], token[TOKEN_CAP];
    size_t cap = it->len + PARTICIPANT_TEXT_CAP;
    char *value = it->value ? malloc(cap) : NULL;
    printf("leader %s %s%s%s\n", participant_text_token(&it->stat, token),
           participant_text_column(it->id, true, id, sizeof id), value ? " " : "",
           value ? participant_text_printable(it->value, value, cap) : "");
    free(value);
}

static void leader_show(const struct options *o, const char *path, const struct leader_state *it)
{
    char text[LEFT_OVER_CAP];
    if (it->left_over && !o->json)
        diag(o, "%s: %s", path, participant_text_left_over(o, path, it->node, NULL, text));
    if (o->json)
        leader_show_json(o, path, it);
    else if (it->vacant)
        puts("vacant");
    else
        leader_show_line(it);
    fflush(stdout);
}

/* Prints a state. Returns the exit code if it was the last one, else -1. */
static int leader_take(struct options *o, struct leader_follow *f, const struct leader_state *it,
                       bool watch)
{
    if (it->err != CLAVE_OK)
        return diag_err(o, f->path, it->err, NULL);
    if (!watch && it->vacant && no_queue_report(o, f->session, f->path))
        return EXIT_PATH;
    leader_show(o, f->path, it);
    if (ferror(stdout))
        return EXIT_IO;
    if (watch)
        return -1;
    return it->vacant ? EXIT_PATH : EXIT_OK;
}

static int leader_follow(struct options *o, struct leader_follow *f, int signals, bool watch)
{
    int64_t until = watch ? CLAVE_NEVER : clave_now() + o->timeout_ms;
    int code = -1, sig;
    clave_err why;
    while (code < 0) {
        struct leader_state *it = leader_follow_next(f, signals, until, &sig, &why);
        if (it)
            code = leader_take(o, f, it, watch);
        else if (sig != 0)
            code = 128 + sig;
        else
            code = diag_err(o, f->path, why == CLAVE_OK ? CLAVE_ETIMEDOUT : why, f->session);
        leader_follow_free(it);
    }
    return code;
}

static int show_leader(struct options *o, const char *path, bool watch)
{
    clave_client *session;
    struct leader_follow s;
    int code = connect_open(o, NULL, &session);
    if (code != EXIT_OK)
        return code;
    int signals = inheritance_open_signals(0); /* the loop's thread blocks all signals */
    code = leader_follow_open(&s, session, path, o);
    if (code == EXIT_OK)
        code = leader_follow(o, &s, signals, watch);
    leader_follow_close(&s);
    close(signals);
    return code;
}

static int run_leader(struct options *o, int argc, char **argv)
{
    bool watch = false;
    int id;
    while ((id = options_next(o, argc, argv)) > 0)
        watch |= id == LEADER_WATCH;
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 1, 1))
        return EXIT_USAGE;
    return connect_path_ok(o, o->argv[0]) ? show_leader(o, o->argv[0], watch) : EXIT_PATH;
}

static const struct flag flags[] = {
    {LEADER_WATCH, "watch", NULL, "keep running: a line for every change, including vacancies"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_leader = {
    .name = "leader",
    .args = "PATH",
    .summary = "Print the leader of an election",
    .text =
        "A line 'leader TOKEN ID', and the value it publishes if there is one; or 'vacant', with\n"
        "exit code 66. Changes in quick succession may be reported as one. While the first\n"
        "candidate's node is left over, owned by no session, nobody leads: standard error says "
        "so,\n"
        "with the command that deletes it.\n",
    .flags = flags,
    .elects = true,
    .max_args = -1,
    .run = run_leader,
};
