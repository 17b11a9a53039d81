/* lock_message_json.h - one message of `clave lock`: its words, and its frame in JSON. */
#ifndef CLAVE_CMD_RUN_LOCK_MESSAGE_JSON_H
#define CLAVE_CMD_RUN_LOCK_MESSAGE_JSON_H

#include "cmd/cli/json.h"
#include "cmd/run/run_flags.h"

/* The words that differ between a lock and a leadership. */
struct lock_message_words {
    const char *acquired, *not_acquired; /* events, and verbs */
    const char *held_by, *still, *it, *who, *asked, *hold, *next, *before;
};

const struct lock_message_words *lock_message_words(const struct run_plan *p);
/* Around the members of an event, which is written as one piece. */
void lock_message_begin(const struct run_plan *p, struct json *j, const char *event);
void lock_message_end(struct json *j);

#endif
