/* usage.h - the flags that every verb takes, and the texts of --help. */
#ifndef CLAVE_CMD_CLI_USAGE_H
#define CLAVE_CMD_CLI_USAGE_H

#include "cmd/cli/verb.h"

enum {
    GLOBAL_SESSION_TIMEOUT = 2 * FLAG_LONG,
    GLOBAL_TIMEOUT,
    GLOBAL_AUTH,
    GLOBAL_JSON,
    GLOBAL_TLS_CA,
    GLOBAL_TLS_CERT,
    GLOBAL_TLS_KEY,
    GLOBAL_TLS_NAME,
    GLOBAL_TLS_ANY_NAME,
};

extern const struct flag global_flags[];

/* Number i of the verb's flags, without the global ones; NULL after the last. */
const struct flag *verb_flag(const struct verb *v, size_t i);
/* Number i of all flags that the verb takes, its own before the global ones; NULL after the last.
 * Without a verb, those that may stand before it. */
const struct flag *usage_flag(const struct verb *v, size_t i);
/* true: it is no flag of this verb, or the verb has one of its own by that name. */
bool global_is_absent(const struct verb *v, const struct flag *global);
/* true: it says how a client connects; a verb that is offline refuses it. */
bool global_is_of_clients(const struct flag *global);

/* Usage of one verb, or of the program with these verbs (NULL after the last), on standard output.
 */
void usage_verb(const struct verb *v);
void usage_all(const struct verb *const *verbs);
/* What verbs share, or the verbs of one kind; false: there is no such topic. */
bool usage_topic(const struct verb *const *verbs, const char *topic);
/* The flags whose name or help has each of these words (NULL after the last), listed by verb;
 * false: there are none. */
bool usage_find(const struct verb *const *verbs, char *const *words);

#endif
