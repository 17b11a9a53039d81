/* participant_text.h - a participant of a queue, as text. */
#ifndef CLAVE_CMD_QUEUE_PARTICIPANT_TEXT_H
#define CLAVE_CMD_QUEUE_PARTICIPANT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clave/async/mutex.h"

enum { PARTICIPANT_TEXT_CAP = 512 };

/* "web1 pid 4711 (nightly)", or what else the node says; cut to cap. What comes from others
 * is shown without its control characters. Returns out. */
const char *participant_text_format(const clave_identity *id, char *out, size_t cap);
/* Any text, cut to cap, without its control characters. Returns out. */
const char *participant_text_printable(const char *text, char *out, size_t cap);
/* One word of it for a column: "-" when there is none, blanks as '_' unless `free_text`. */
const char *participant_text_column(const char *text, bool free_text, char *out, size_t cap);

/* What the node's name says about its maker that others should know; NULL: nothing. */
const char *participant_text_note(const char *node);
/* The same behind a line: " (kazoo ...)", or "". Returns out. */
const char *participant_text_note_suffix(const char *node, char out[PARTICIPANT_TEXT_CAP]);

/* Of a node that may not be read its name is all that is known: the Stat is zeros. */
bool participant_text_is_known(const clave_stat *st);
/* The token of who stands there, "-" when it is not known. Returns out. */
enum { TOKEN_CAP = 24 };
const char *participant_text_token(const clave_stat *st, char out[TOKEN_CAP]);

/* "850ms", "12s", "3m05s", "7h02m", "3d04h"; below 0 counts as 0. Returns out. */
enum { AGE_CAP = 32 };
const char *age_format(int64_t ms, char out[AGE_CAP]);
/* For how long it has stood there, by this machine's clock; "-" when it is not known. */
const char *participant_text_age(const clave_stat *st, char out[AGE_CAP]);

#endif
