/* check.c - `clave check`: tells whether a lock is still held.
 *
 * For the command of a `clave lock`, the guardian's page answers without asking a server: the lock
 * is held until the deadline, after which another client may hold it. In all other cases the
 * server's queue answers: does the given token belong to a holder, whatever the kind of lock? */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clave/uv.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "cmd/cli/participant.h"
#include "cmd/queues/queue_view.h"
#include "cmd/run/deadline_page.h"

enum { CHECK_FOR = FLAG_LONG };

struct check {
    const char *path;
    int64_t token;
    int64_t for_ms;
};

static bool check_parse_number(const char *text, int base, int64_t *out)
{
    char *end;
    if (!text || !*text)
        return false;
    errno = 0;
    *out = (int64_t)strtoull(text, &end, base);
    return errno == 0 && *end == '\0';
}

/* left_ms < 0: not known. */
static int check_answer(const struct options *o, const struct check *c, bool held, int64_t left_ms)
{
    struct json j;
    if (o->json) {
        json_begin(&j, stdout);
        clave__json_string(&j, "path", c->path);
        clave__json_int(&j, "token", c->token);
        clave__json_bool(&j, "held", held);
        if (left_ms >= 0)
            clave__json_int(&j, "left_ms", left_ms);
        json_end(&j);
    } else if (!held) {
        diag(o, "%s: not held with token %" PRId64 "%s", c->path, c->token,
             c->for_ms > 0 ? " for so long" : "");
    } else if (left_ms >= 0) {
        diag_note(o, "%s: held with token %" PRId64 ", for %" PRId64 "ms at least", c->path,
                  c->token, left_ms);
    } else {
        diag_note(o, "%s: held with token %" PRId64, c->path, c->token);
    }
    return held ? EXIT_OK : EXIT_LOST;
}

/* ENOAUTH: the token was not found, but there is a holder whose node may not be read, so its token
 * is not known. */
static clave_err check_look_for(const struct queue_view *v, int64_t token, bool *held)
{
    bool hidden = false;
    *held = false;
    for (size_t i = 0; i < v->n; i++) {
        const clave_stat *st = &v->list[i].p->stat;
        bool holds = v->list[i].holds;
        *held = *held || (holds && participant_text_is_known(st) && st->czxid == token);
        hidden = hidden || (holds && !participant_text_is_known(st));
    }
    return hidden && !*held ? CLAVE_ENOAUTH : CLAVE_OK;
}

static int check_ask_server(struct options *o, const struct check *c)
{
    clave_client *s;
    struct queue_view l;
    int code = connect_open(o, NULL, &s);
    if (code != EXIT_OK)
        return code;
    bool held = false;
    clave_err err = queue_view_read(s, c->path, o->timeout_ms, &l);
    if (err == CLAVE_OK)
        err = check_look_for(&l, c->token, &held);
    code = err == CLAVE_OK ? check_answer(o, c, held, -1) : diag_err(o, c->path, err, s);
    queue_view_fini(&l);
    connect_close(s);
    return code;
}

static int check_ask_page(struct options *o, struct check *c)
{
    const char *file = getenv("CLAVE_DEADLINE");
    int64_t session_id, deadline;
    c->path = getenv("CLAVE_PATH");
    if (!c->path || !check_parse_number(getenv("CLAVE_TOKEN"), 10, &c->token) ||
        !check_parse_number(getenv("CLAVE_SESSION"), 16, &session_id))
        return diag_usage(o,
                          "name PATH and TOKEN, or run it in a command under 'clave lock', which "
                          "sets CLAVE_PATH, CLAVE_TOKEN and CLAVE_SESSION");
    if (file && deadline_page_read(file, c->token, session_id, &deadline)) {
        int64_t left = deadline - clave_now();
        bool held = deadline != DEADLINE_PAGE_LOST && left > 0 && left >= c->for_ms;
        return check_answer(o, c, held, held ? left : 0);
    }
    /* A command that runs as another user or in another container cannot read the guardian's page.
     */
    if (c->for_ms > 0)
        return diag_end(o, c->path, EXIT_LOST,
                        "CLAVE_DEADLINE cannot be read, so the remaining time is unknown");
    return connect_path_ok(o, c->path) ? check_ask_server(o, c) : EXIT_PATH;
}

static int run_check(struct options *o, int argc, char **argv)
{
    struct check c = {0};
    int id;
    while ((id = options_next(o, argc, argv)) > 0)
        if (id == CHECK_FOR && !options_duration(o, "for", 0, OPTIONS_MAX_MS, &c.for_ms))
            return EXIT_USAGE;
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 0, 2))
        return EXIT_USAGE;
    if (o->argc == 0)
        return check_ask_page(o, &c);
    if (o->argc == 1 || !check_parse_number(o->argv[1], 10, &c.token))
        return diag_usage(o, "PATH needs a TOKEN, a decimal number");
    if (c.for_ms > 0)
        return diag_usage(
            o, "--for works only in the command of a 'clave lock': the server does not know");
    c.path = o->argv[0];
    return connect_path_ok(o, c.path) ? check_ask_server(o, &c) : EXIT_PATH;
}

static const struct flag flags[] = {
    {CHECK_FOR, "for", "DURATION", "and will be for this much longer, judged without a server"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_check = {
    .name = "check",
    .args = "[PATH TOKEN]",
    .summary = "Check whether a lock is still held: exit code 0, else 76",
    .text =
        "Without arguments, in the command of a 'clave lock': is that lock still held, by the\n"
        "deadline that its guardian enforces, without asking a server. With PATH and TOKEN:\n"
        "does the owner of this token hold it, by the server's queue; exit code 77: the holder's\n"
        "node may not be read.\n",
    .flags = flags,
    .max_args = -1,
    .run = run_check,
};
