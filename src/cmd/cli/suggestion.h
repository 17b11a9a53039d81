/* suggestion.h - what to write for a verb or a flag that clave does not have: the nearest word that
 * it has, or what it calls a word of flock(1), consul lock, etcdctl or zkCli.sh. */
#ifndef CLAVE_CMD_CLI_SUGGESTION_H
#define CLAVE_CMD_CLI_SUGGESTION_H

#include <stdbool.h>

#include "cmd/cli/verb.h"

/* Each returns out: "; did you mean 'lock'?", or "". */
enum { SUGGESTION_CAP = 256 };
/* `word` is no verb of these. */
const char *suggestion_for_verb(const struct verb *const *verbs, const char *word,
                                char out[SUGGESTION_CAP]);
/* `flag`, with its dashes and perhaps "=VALUE", is no flag of the verb. */
const char *suggestion_for_flag(const struct verb *v, const char *flag, char out[SUGGESTION_CAP]);
/* `word` is none of these; NULL after the last. */
const char *suggestion_for_word(const char *const *words, const char *word,
                                char out[SUGGESTION_CAP]);

/* A long flag with one dash, as Go's programs have them ("-timeout=3s"), which getopt would take
 * for short ones. */
bool suggestion_is_long(const struct verb *v, const char *word);

#endif
