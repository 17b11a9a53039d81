/* participant_json.h - a participant of a queue, as members of a JSON object. */
#ifndef CLAVE_CMD_CLI_PARTICIPANT_JSON_H
#define CLAVE_CMD_CLI_PARTICIPANT_JSON_H

#include "clave/async/mutex.h"
#include "cmd/cli/json.h"

/* Its place in the queue: token, node, session, since_ms. If the node may not be read, all of them
 * except the node are null. */
void participant_json_place(struct json *j, const char *node, const clave_stat *st);
/* host, pid, name, command, text, traceparent. What is not known is null, and 0 for the pid. */
void participant_json_identity(struct json *j, const clave_identity *id);
/* revocable; null if the node does not say. */
void participant_json_revocable(struct json *j, const clave_identity *id);
/* age_ms, by this machine's clock; null if the node may not be read. */
void participant_json_age(struct json *j, const clave_stat *st);

#endif
