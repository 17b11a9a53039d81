/* locks_deadlocks.c - prints the cycles that clave_deadlocks_find returns; locks.c calls it. The
 * search itself is recipe/deadlock's: this file only opens the session and formats. */
#include "cmd/queues/locks_deadlocks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clave/deadlock.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "cmd/cli/participant_json.h"
#include "cmd/cli/participant_text.h"

enum { PATH_CAP = 1024, TASK_CAP = 64 };

/* Names the thread if several share a session; where the node says no more, the owner or the
 * session. */
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

/* A mistyped path would show no deadlock: refuse one that does not exist. EXIT_OK, or the exit code
 * after a message. */
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

int deadlocks_show(struct options *o, const char *const *paths, size_t n)
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
