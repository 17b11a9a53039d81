/* participant.c - formats participants (see participant.h) for every verb and message
 * that shows one. No text returned here contains a control character. */
#include "cmd/cli/participant.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "recipe/queue/queue_kind.h"
#include "runtime/clock.h"

/* Appends `text`; if it does not fit, cuts it between two characters. */
static void participant_text_put_safe(char *out, size_t cap, const char *text)
{
    const char *p = text;
    size_t n = strlen(out);
    while (*p && n + 4 < cap) {
        size_t len = clave__utf8_printable(p, strnlen(p, 4));
        for (size_t i = 0; i < len; i++)
            out[n++] = *p++;
        if (len > 0)
            continue;
        out[n++] = '?';
        for (p++; (*p & 0xc0) == 0x80;)
            p++;
    }
    out[n] = '\0';
}

const char *participant_text_format(const clave_identity *id, char *out, size_t cap)
{
    char pid[32] = "";
    out[0] = '\0';
    if (id->pid != 0)
        snprintf(pid, sizeof pid, "%spid %lld", id->host ? " " : "", (long long)id->pid);
    participant_text_put_safe(out, cap, id->host ? id->host : "");
    participant_text_put_safe(out, cap, pid);
    const char *name = id->name ? id->name : id->command;
    if (name) {
        participant_text_put_safe(out, cap, *out ? " (" : "(");
        participant_text_put_safe(out, cap, name);
        participant_text_put_safe(out, cap, ")");
    }
    const char *text = id->text && *id->text ? id->text : NULL;
    if (*out && text)
        participant_text_put_safe(out, cap, ", ");
    if (!*out || text)
        participant_text_put_safe(out, cap, text ? text : "an unnamed client");
    return out;
}

const char *participant_text_printable(const char *text, char *out, size_t cap)
{
    out[0] = '\0';
    participant_text_put_safe(out, cap, text);
    return out;
}

const char *participant_text_column(const char *text, bool free_text, char *out, size_t cap)
{
    out[0] = '\0';
    participant_text_put_safe(out, cap, text && *text ? text : "-");
    for (char *p = out; *p && !free_text; p++)
        if (*p == ' ')
            *p = '_';
    return out;
}

bool participant_text_is_known(const clave_stat *st)
{
    return st->czxid != 0;
}

const char *participant_text_token(const clave_stat *st, char out[TOKEN_CAP])
{
    if (!participant_text_is_known(st))
        return "-";
    snprintf(out, TOKEN_CAP, "%" PRId64, st->czxid);
    return out;
}

const char *participant_text_age(const clave_stat *st, char out[AGE_CAP])
{
    return participant_text_is_known(st) ? age_format(clave__clock_wall() - st->ctime, out) : "-";
}

bool participant_text_is_asked(const clave_participant *p)
{
    bool latch = clave__queue_kind_of(p->node) ==
                 QUEUE_LATCH; /* any write to a latch's node asks its owner to resign */
    return p->identity.asked || (latch && p->stat.version > 0);
}

const char *participant_text_left_over(const struct options *o, const char *path, const char *node,
                                       const char *what, char out[LEFT_OVER_CAP])
{
    char name[PARTICIPANT_TEXT_CAP], command[HINT_CAP];
    snprintf(out, LEFT_OVER_CAP,
             "left over: no session owns %s; it never ends by itself; to delete it: %s",
             what ? what : participant_text_printable(node, name, sizeof name),
             hint_command(o, (const char *const[]){"locks", "break", path, node, NULL}, command));
    return out;
}

const char *participant_text_note(const struct options *o, const char *path,
                                  const clave_participant *p, char out[LEFT_OVER_CAP])
{
    if (p->left_over)
        return participant_text_left_over(o, path, p->node, "this node", out);
    return clave__kazoo_is_default(p->node)
               ? "kazoo default name: takes no part in this queue, extra_lock_patterns aside"
               : NULL;
}

void participant_text_put_note(const struct options *o, const char *path,
                               const clave_participant *p)
{
    char text[LEFT_OVER_CAP];
    const char *note = participant_text_note(o, path, p, text);
    if (note)
        printf(" (%s)", note);
}

/* ---- as fields of a JSON object ------------------------------------------------------------- */

static void participant_json_show_known(struct json *j, const char *key, bool known, int64_t n)
{
    if (known)
        clave__json_int(j, key, n);
    else
        clave__json_string(j, key, NULL);
}

void participant_json_place(struct json *j, const char *node, const clave_stat *st)
{
    bool known = participant_text_is_known(st);
    participant_json_show_known(j, "token", known, st->czxid);
    clave__json_string(j, "node", node);
    if (known)
        json_hex(j, "session", st->ephemeral_owner);
    else
        clave__json_string(j, "session", NULL);
    participant_json_show_known(j, "since_ms", known, st->ctime);
}

void participant_json_identity(struct json *j, const clave_identity *id)
{
    clave__json_string(j, "host", id->host);
    clave__json_int(j, "pid", id->pid);
    clave__json_string(j, "name", id->name);
    clave__json_string(j, "command", id->command);
    clave__json_string(j, "text", id->text);
    clave__json_string(j, "traceparent", id->traceparent);
}

void participant_json_revocable(struct json *j, const clave_identity *id)
{
    if (id->revocable)
        clave__json_bool(j, "revocable", id->revocable > 0);
    else
        clave__json_string(j, "revocable", NULL);
}

void participant_json_age(struct json *j, const clave_stat *st)
{
    participant_json_show_known(j, "age_ms", participant_text_is_known(st),
                                clave__clock_wall() - st->ctime);
}
