/* usage.h - the flags that every verb accepts, and the texts of --help. */
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

/* Flag number `i` of the verb, without the global ones; NULL after the last. */
const struct flag *verb_flag(const struct verb *v, size_t i);
/* Flag number `i` of all that the verb accepts, its own before the global ones; NULL after the
 * last. If `v` is NULL, the flags that may be given before a verb. */
const struct flag *usage_flag(const struct verb *v, size_t i);
/* true: the verb does not accept this global flag, or has one of its own with the same name. */
bool global_is_absent(const struct verb *v, const struct flag *global);
/* true: the flag says how a client connects; a verb that is offline refuses it. */
bool global_is_of_clients(const struct flag *global);

/* Prints the usage of one verb or, with usage_all, of the program with these verbs (NULL after the
 * last), on standard output. */
void usage_verb(const struct verb *v);
void usage_all(const struct verb *const *verbs);
/* Prints a topic: something that verbs have in common, or the verbs of one kind. false: there is no
 * such topic. */
bool usage_topic(const struct verb *const *verbs, const char *topic);
/* Prints the flags whose name or help contains each of these words (NULL after the last), listed by
 * verb. false: there are none. */
bool usage_find(const struct verb *const *verbs, char *const *words);

#endif
