/* participant_json.c - see participant_json.h. Called by every verb and message that shows a
 * participant. */
#include "cmd/cli/participant_json.h"

#include <stdbool.h>

#include "cmd/cli/participant_text.h"
#include "runtime/clock.h"

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
