/* participant_json.h - a participant of a queue, as fields of a JSON object. */
#ifndef CLAVE_CMD_CLI_PARTICIPANT_JSON_H
#define CLAVE_CMD_CLI_PARTICIPANT_JSON_H

#include "clave/async/mutex.h"
#include "cmd/cli/json.h"

/* A participant's place in a queue: token, node, session, since_ms; all but the node are null if it
 * may not be read. */
void participant_json_place(struct json *j, const char *node, const clave_stat *st);
/* host, pid, name, command, text, traceparent: null, and pid 0, for what is not known. */
void participant_json_identity(struct json *j, const clave_identity *id);
/* revocable: null if its node does not say. */
void participant_json_revocable(struct json *j, const clave_identity *id);
/* age_ms, by this machine's clock; null likewise. */
void participant_json_age(struct json *j, const clave_stat *st);

#endif
