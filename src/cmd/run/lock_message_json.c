/* lock_message_json.c - the words and the frame of messages. Called by lock_messages.c and
 * lock_wait_messages.c. */
#include "cmd/run/lock_message_json.h"

#include <stdio.h>

#include "cmd/cli/standard_error.h"
#include "cmd/cli/time_text.h"
#include "runtime/clock.h"

const struct lock_message_words *lock_message_words(const struct run_plan *p)
{
    static const struct lock_message_words lock = {"acquired",
                                                   "not-acquired",
                                                   "held by",
                                                   "still held",
                                                   "the lock",
                                                   "locks",
                                                   "another participant asks for it",
                                                   "hold",
                                                   "holder",
                                                   "acquired; the previous holder"};
    static const struct lock_message_words leadership = {
        "elected",    "not-elected",     "led by", "still leading", "the leadership",
        "candidates", "asked to resign", "term",   "leader",        "elected; the previous leader"};
    return p->elects ? &leadership : &lock;
}

/* Standard output is the command's. */
void lock_message_begin(const struct run_plan *p, struct json *j, const char *event)
{
    FILE *out = standard_error();
    char when[TIME_TEXT_CAP];
    flockfile(out);
    json_begin(j, out);
    clave__json_string(j, "time", time_text(clave__clock_wall(), when));
    clave__json_string(j, "event", event);
    clave__json_string(j, "path", p->path);
}

void lock_message_end(struct json *j)
{
    json_end(j);
    funlockfile(j->to);
}
