/* participant_text.h - a participant of a queue, as text. */
#ifndef CLAVE_CMD_CLI_PARTICIPANT_TEXT_H
#define CLAVE_CMD_CLI_PARTICIPANT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clave/async/mutex.h"
#include "cmd/cli/time_text.h"

enum { PARTICIPANT_TEXT_CAP = 512 };

/* "web1 pid 4711 (nightly)", or what else the node says; cut to cap. Control characters in what
 * others wrote are not shown. Returns out. */
const char *participant_text_format(const clave_identity *id, char *out, size_t cap);
/* Any text, cut to cap, without its control characters. Returns out. */
const char *participant_text_printable(const char *text, char *out, size_t cap);
/* A word for a column: "-" when there is none, spaces as '_' unless `free_text`. */
const char *participant_text_column(const char *text, bool free_text, char *out, size_t cap);

/* What users should know about the client that made a node of this name; NULL: nothing. */
const char *participant_text_note(const char *node);
/* The same to follow a line: " (kazoo ...)", or "". Returns out. */
const char *participant_text_note_suffix(const char *node, char out[PARTICIPANT_TEXT_CAP]);

/* false: the node may not be read; only its name is known, and the Stat is zeros. */
bool participant_text_is_known(const clave_stat *st);
/* Was it asked to release its lock, or to resign? */
bool participant_text_is_asked(const clave_participant *p);
/* The participant's token, "-" when it is not known. Returns out. */
enum { TOKEN_CAP = 24 };
const char *participant_text_token(const clave_stat *st, char out[TOKEN_CAP]);

/* How long it has been in the queue, by this machine's clock; "-" when it is not known. */
const char *participant_text_age(const clave_stat *st, char out[AGE_CAP]);

#endif
