/* sessions.c - `clave sessions`: lists the sessions of a `clave serve` and ends one, for a super
 * user. The server shows its sessions as nodes (server/request/request.h). */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "cmd/cli/shell_command.h"

enum { SESSIONS_KILL = FLAG_LONG, SESSIONS_NOW, SESSIONS_PATH_CAP = 64 };

static const char top[] = "/zookeeper/sessions";

struct session_line {
    const char *id;
    int64_t timeout_ms;
    int64_t expires_in_ms;
    int64_t ephemerals;
    char connection[128]; /* "": not connected */
    bool ending;
    bool restore; /* not a client's session: the wait after a restore */
};

/* ---- reading --------------------------------------------------------------------------------- */

/* The value of the line "name=value"; "" if there is none. */
static void sessions_value(const clave_reply *r, const char *name, char *out, size_t cap)
{
    const char *at = r->data, *end = at ? at + r->len : NULL;
    size_t n = strlen(name);
    *out = '\0';
    while (at && at < end) {
        const char *eol = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((eol ? eol : end) - at);
        if (len > n && memcmp(at, name, n) == 0 && at[n] == '=') {
            snprintf(out, cap, "%.*s", (int)(len - n - 1), at + n + 1);
            return;
        }
        at = eol ? eol + 1 : end;
    }
}

static int64_t sessions_number(const clave_reply *r, const char *name)
{
    char text[32];
    sessions_value(r, name, text, sizeof text);
    return strtoll(text, NULL, 10);
}

static bool sessions_flag(const clave_reply *r, const char *name)
{
    char text[8];
    sessions_value(r, name, text, sizeof text);
    return strcmp(text, "true") == 0;
}

static clave_err sessions_read(const struct options *o, clave_client *c, const char *id,
                               struct session_line *out)
{
    char path[SESSIONS_PATH_CAP];
    clave_reply *r = NULL;
    snprintf(path, sizeof path, "%s/%s", top, id);
    clave_err err = clave_get(c, path, o->timeout_ms, &r);
    if (err == CLAVE_OK) {
        *out = (struct session_line){.id = id,
                                     .timeout_ms = sessions_number(r, "timeout_ms"),
                                     .expires_in_ms = sessions_number(r, "expires_in_ms"),
                                     .ephemerals = sessions_number(r, "ephemerals")};
        sessions_value(r, "connection", out->connection, sizeof out->connection);
        out->ending = sessions_flag(r, "ending");
        out->restore = sessions_flag(r, "restore");
    }
    clave_reply_free(r);
    return err;
}

/* Other servers do not have these nodes, and this server hides them from other users. */
static int sessions_fail(const struct options *o, clave_err err, clave_client *c)
{
    if (err != CLAVE_ENONODE)
        return diag_err(o, top, err, c);
    return diag_end(
        o, NULL, EXIT_NOAUTH,
        "only a super user of 'clave serve' can see its sessions: the user of its --super-uid "
        "over a Unix socket, of its --super-digest with --auth, or the subject of its "
        "--x509-super with --tls-cert; and --connect must not have a path");
}

/* ---- the list -------------------------------------------------------------------------------- */

static void sessions_show(struct json *j, const struct session_line *l)
{
    char timeout[DURATION_CAP];
    const char *whose = l->connection[0] ? l->connection : "not connected";
    if (l->restore)
        whose = "the wait after a restore";
    if (j) {
        clave__json_open(j, NULL, '{');
        clave__json_string(j, "session", l->id);
        clave__json_int(j, "timeout_ms", l->timeout_ms);
        clave__json_int(j, "expires_in_ms", l->expires_in_ms);
        clave__json_int(j, "ephemerals", l->ephemerals);
        clave__json_string(j, "connection", l->connection[0] ? l->connection : NULL);
        clave__json_bool(j, "ending", l->ending);
        clave__json_bool(j, "restore", l->restore);
        clave__json_close(j, '}');
        return;
    }
    printf("%-18s  timeout %-6s  expires in %6.1f s  %4" PRId64 " ephemeral  %s%s\n", l->id,
           clave__duration_format(l->timeout_ms, timeout), (double)l->expires_in_ms / 1000,
           l->ephemerals, whose, l->ending ? ", ending" : "");
}

static int sessions_list(const struct options *o, clave_client *c)
{
    struct json j;
    clave_reply *names = NULL;
    clave_err err = clave_children(c, top, o->timeout_ms, &names);
    if (err != CLAVE_OK)
        return sessions_fail(o, err, c);
    if (o->json) {
        json_begin(&j, stdout);
        clave__json_open(&j, "sessions", '[');
    }
    for (size_t i = 0; i < names->nnames && err == CLAVE_OK; i++) {
        struct session_line line;
        err = sessions_read(o, c, names->names[i], &line);
        if (err == CLAVE_OK)
            sessions_show(o->json ? &j : NULL, &line);
        if (err == CLAVE_ENONODE) /* it has ended in the meantime */
            err = CLAVE_OK;
    }
    if (o->json) {
        clave__json_close(&j, ']');
        json_end(&j);
    }
    clave_reply_free(names);
    return err == CLAVE_OK ? EXIT_OK : diag_err(o, top, err, c);
}

/* ---- ending a session ------------------------------------------------------------------------ */

static void sessions_tell_ended(const struct options *o, const struct session_line *l)
{
    struct json j;
    if (o->json) {
        json_begin(&j, stdout);
        clave__json_string(&j, "session", l->id);
        clave__json_int(&j, "expires_in_ms", l->expires_in_ms);
        json_end(&j);
    } else if (l->expires_in_ms > 0) {
        printf("%s: ended; its nodes are removed in %.1f s\n", l->id,
               (double)l->expires_in_ms / 1000);
    } else {
        printf("%s: ended\n", l->id);
    }
}

/* Parses "0x1000a2b", with or without the 0x. false: not a number of 64 bits. */
static bool sessions_id(const char *given, char *id, size_t cap)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(given, &end, 16);
    snprintf(id, cap, "0x%llx", number);
    return isxdigit((unsigned char)*given) && *end == '\0' && errno == 0 && number != 0;
}

static int sessions_kill(const struct options *o, clave_client *c, const char *given, bool now)
{
    char id[24], path[SESSIONS_PATH_CAP];
    struct session_line line;
    if (!sessions_id(given, id, sizeof id)) {
        char hint[HINT_CAP];
        return diag_end(o, NULL, EXIT_USAGE,
                        "'%s' is not a session, such as 0x1000a2b; to see them: %s", given,
                        hint_command(o, (const char *const[]){"sessions", NULL}, hint));
    }
    clave_err err = sessions_read(o, c, id, &line);
    if (err == CLAVE_ENONODE) {
        clave_reply *r = NULL;
        err = clave_exists(c, top, o->timeout_ms, &r); /* may we see sessions at all? */
        clave_reply_free(r);
        if (err != CLAVE_OK)
            return sessions_fail(o, err, c);
        return diag_end(o, NULL, EXIT_PATH, "there is no session %s", id);
    }
    snprintf(path, sizeof path, "%s/%s%s", top, id, now ? "/now" : "");
    if (err == CLAVE_OK)
        err = clave_delete(c, path, -1, o->timeout_ms);
    if (err == CLAVE_OK && (now || sessions_read(o, c, id, &line) == CLAVE_ENONODE))
        line.expires_in_ms = 0;
    if (err != CLAVE_OK)
        return diag_err(o, path, err, c);
    sessions_tell_ended(o, &line);
    return EXIT_OK;
}

static int run_sessions(struct options *o, int argc, char **argv)
{
    clave_client *c;
    bool kill = false, now = false;
    int id;
    while ((id = options_next(o, argc, argv)) > 0) {
        kill = kill || id == SESSIONS_KILL;
        now = now || id == SESSIONS_NOW;
    }
    if (id == OPTIONS_STOP)
        return o->status;
    if (kill ? o->argc == 0 : o->argc > 0 || now)
        return diag_usage(o, "sessions are ended with --kill ID...");
    int code = connect_open(o, NULL, &c);
    if (code != EXIT_OK)
        return code;
    if (!kill)
        code = sessions_list(o, c);
    for (int i = 0; i < o->argc && code == EXIT_OK; i++)
        code = sessions_kill(o, c, o->argv[i], now);
    connect_close(c);
    return code;
}

static const struct flag flags[] = {
    {SESSIONS_KILL, "kill", NULL, "end these sessions; their nodes stay until they expire"},
    {SESSIONS_NOW, "now", NULL, "with --kill: at once. UNSAFE: a holder may still rely on it"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_sessions = {
    .name = "sessions",
    .args = "[--kill ID...]",
    .summary = "List the sessions of a clave server, or end some, as its super user",
    .text =
        "A session that is ended cannot be taken up again, but what it holds stays held until it\n"
        "expires: only then has its client stopped for certain.\n",
    .flags = flags,
    .max_args = -1,
    .run = run_sessions,
};
