/* suggestion.h - what to suggest for a verb or a flag that clave does not have: the most similar
 * word that it has, or its name for what flock(1), consul lock, etcdctl or zkCli.sh call by another
 * word. */
#ifndef CLAVE_CMD_CLI_SUGGESTION_H
#define CLAVE_CMD_CLI_SUGGESTION_H

#include <stdbool.h>

#include "cmd/cli/verb.h"

/* Each function returns out: "; did you mean 'lock'?", or "". */
enum { SUGGESTION_CAP = 256 };
/* `word` is not one of these verbs. */
const char *suggestion_for_verb(const struct verb *const *verbs, const char *word,
                                char out[SUGGESTION_CAP]);
/* `flag`, with its dashes and perhaps "=VALUE", is not a flag of the verb. */
const char *suggestion_for_flag(const struct verb *v, const char *flag, char out[SUGGESTION_CAP]);
/* `word` is not one of `words`, which end with NULL. */
const char *suggestion_for_word(const char *const *words, const char *word,
                                char out[SUGGESTION_CAP]);

/* Whether the word is a long flag with a single dash ("-timeout=3s"), as in Go programs, which
 * getopt would take for several short flags. */
bool suggestion_is_long(const struct verb *v, const char *word);

#endif
