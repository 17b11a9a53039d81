/* candidates.c - `clave candidates`: lists the candidates of an election once, the leader first.
 * cmd/cli/participant.h formats them. */
#include <stdio.h>
#include <unistd.h>

#include "clave/async/leader.h"
#include "clave/participants.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "cmd/cli/participant.h"
#include "cmd/queues/queue_view.h"

/* A node that no session owns cannot lead, and as long as it is first nobody else leads. */
static const char *candidates_role(size_t position, const clave_participant *p)
{
    if (p->left_over)
        return "left-over";
    return position == 1 ? "leader" : "waiting";
}

static void candidates_show_json(const struct options *o, const char *path, size_t position,
                                 const clave_participant *p)
{
    struct json j;
    char note[LEFT_OVER_CAP];
    json_begin(&j, stdout);
    clave__json_int(&j, "position", (int64_t)position);
    clave__json_bool(&j, "leader", position == 1 && !p->left_over);
    participant_json_place(&j, p->node, &p->stat);
    participant_json_age(&j, &p->stat);
    clave__json_string(&j, "id", p->identity.text);
    if (p->priority > 0)
        clave__json_int(&j, "priority", p->priority);
    clave__json_bool(&j, "asked", participant_text_is_asked(p));
    clave__json_bool(&j, "left_over", p->left_over);
    clave__json_string(&j, "note", participant_text_note(o, path, p, note));
    json_end(&j);
}

static void candidates_show_line(const struct options *o, const char *path, size_t position,
                                 const clave_participant *p)
{
    char id[PARTICIPANT_TEXT_CAP], token[TOKEN_CAP], age[AGE_CAP];
    printf("%zu %-7s %s %6s %s%s", position, candidates_role(position, p),
           participant_text_token(&p->stat, token), participant_text_age(&p->stat, age),
           participant_text_column(p->identity.text, true, id, sizeof id),
           participant_text_is_asked(p) ? " (asked to resign)" : "");
    participant_text_put_note(o, path, p);
    putchar('\n');
}

/* Prints a header, on a terminal only. */
static void candidates_show_header(const struct options *o)
{
    if (!o->json && isatty(STDOUT_FILENO))
        puts("# ROLE    TOKEN   SINCE ID");
}

static int candidates_show(struct options *o, clave_client *c, const char *path)
{
    clave_participant_list *roll;
    int code = EXIT_OK;
    clave_err err =
        clave_participants(c, clave_async_latch_participants, path, o->timeout_ms, &roll);
    if (err != CLAVE_OK)
        code = diag_err(o, path, err, c);
    else if (roll->n == 0 && no_queue_report(o, c, path))
        code = EXIT_PATH;
    else if (roll->n == 0)
        diag_note(o, "%s: no candidates", path);
    else
        candidates_show_header(o);
    for (size_t i = 0; roll && i < roll->n; i++)
        (o->json ? candidates_show_json : candidates_show_line)(o, path, i + 1, &roll->list[i]);
    clave_participant_list_free(roll);
    return code;
}

enum { CANDIDATES_WATCH = FLAG_LONG };

static int run_candidates(struct options *o, int argc, char **argv)
{
    bool watch = false;
    int id;
    while ((id = options_next(o, argc, argv)) > 0)
        watch |= id == CANDIDATES_WATCH;
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 1, 1))
        return EXIT_USAGE;
    return connect_path_ok(o, o->argv[0]) ? queue_repeat(o, o->argv[0], watch, candidates_show)
                                          : EXIT_PATH;
}

static const struct flag flags[] = {
    {CANDIDATES_WATCH, "watch", NULL, "print them again after every change"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_candidates = {
    .name = "candidates",
    .args = "PATH",
    .summary = "Print the leader and the candidates of an election",
    .text =
        "One candidate a line, the leader first: position, leader or waiting, token, time since\n"
        "it joined the queue, id; - for an id that is not text. A node that no session owns is\n"
        "left-over: nobody leads while it is the first, and its line has the command to delete "
        "it.\n",
    .flags = flags,
    .elects = true,
    .max_args = -1,
    .run = run_candidates,
};
