/* participant.h - a participant of a queue, as text and as fields of a JSON object. */
#ifndef CLAVE_CMD_CLI_PARTICIPANT_H
#define CLAVE_CMD_CLI_PARTICIPANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clave/async/mutex.h"
#include "cmd/cli/format.h"
#include "cmd/cli/json.h"
#include "cmd/cli/shell_command.h"

enum { PARTICIPANT_TEXT_CAP = 512 };

/* For example "web1 pid 4711 (nightly)", or whatever else the node says, cut to `cap`. Leaves out
 * the control characters in what others wrote. Returns out. */
const char *participant_text_format(const clave_identity *id, char *out, size_t cap);
/* Any text without its control characters, cut to `cap`. Returns out. */
const char *participant_text_printable(const char *text, char *out, size_t cap);
/* A text as one word for a column: "-" if there is none; spaces become '_' unless `free_text`. */
const char *participant_text_column(const char *text, bool free_text, char *out, size_t cap);

/* "left over: no session owns NODE; ...", with the command that deletes the node from the queue at
 * `path`. `what` describes the node; NULL: its name is used. Returns out. */
enum { LEFT_OVER_CAP = HINT_CAP + PARTICIPANT_TEXT_CAP + 128 };
const char *participant_text_left_over(const struct options *o, const char *path, const char *node,
                                       const char *what, char out[LEFT_OVER_CAP]);
/* What users should know about this participant of the queue at `path`: that its node is left over,
 * or that a kazoo lock does not take part in the queue. Returns out; NULL: nothing. */
const char *participant_text_note(const struct options *o, const char *path,
                                  const clave_participant *p, char out[LEFT_OVER_CAP]);
/* Prints that note at the end of a line: " (kazoo ...)". */
void participant_text_put_note(const struct options *o, const char *path,
                               const clave_participant *p);

/* false: the node may not be read; only its name is known, and the Stat is all zeros. */
bool participant_text_is_known(const clave_stat *st);
/* Whether it was asked to release its lock, or to resign. */
bool participant_text_is_asked(const clave_participant *p);
/* The participant's token; "-" if it is not known. Returns out. */
enum { TOKEN_CAP = 24 };
const char *participant_text_token(const clave_stat *st, char out[TOKEN_CAP]);

/* How long it has been in the queue, by this machine's clock; "-" if that is not known. */
const char *participant_text_age(const clave_stat *st, char out[AGE_CAP]);

/* ---- as fields of a JSON object ------------------------------------------------------------- */

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
