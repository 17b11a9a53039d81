/* suggestion.c - see suggestion.h. main.c, help.c and cmd_options.c call it with words that clave
 * does not know. Words of other programs take precedence over similar spelling: "list" is spelled
 * more like "lock" than like "locks". */
#include "cmd/cli/suggestion.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cli/usage.h"

/* ---- words of other programs ----------------------------------------------------------------- */

struct foreign {
    const char *words; /* separated by spaces */
    const char *verbs; /* the verbs to which this applies; NULL: all */
    const char *say;
};

static const struct foreign foreign_verbs[] = {
    {"list show holders who locked queue", NULL,
     "did you mean 'clave locks', of locks and their queues, or 'clave ls', of nodes?"},
    {"unlock release", NULL,
     "did you mean 'clave locks revoke PATH NODE'? A lock is released when its command ends"},
    {"status info stats", NULL,
     "did you mean 'clave locks [PATH]', 'clave leader PATH' or 'clave ping'?"},
    {"acquire flock mutex run exec with", NULL, "did you mean 'clave lock PATH -- COMMAND'?"},
    {"trylock try", NULL, "did you mean 'clave lock -n PATH -- COMMAND'?"},
    {"rlock readlock shared", NULL, "did you mean 'clave rwlock -r PATH -- COMMAND'?"},
    {"wlock writelock", NULL, "did you mean 'clave rwlock -W PATH -- COMMAND'?"},
    {"sem", NULL, "did you mean 'clave semaphore -n N PATH -- COMMAND'?"},
    {"revoke break", NULL, "did you mean 'clave locks revoke' or 'clave locks break'?"},
    {"deadlocks", NULL, "did you mean 'clave locks --deadlocks'?"},
    {"latch campaign election leadership", NULL, "did you mean 'clave elect PATH -- COMMAND'?"},
    {"delete del remove deleteall rmr", NULL, "did you mean 'clave rm' or 'clave rm -r'?"},
    {"mkdir touch new", NULL, "did you mean 'clave create'?"},
    {"kv", NULL, "did you mean 'clave get', 'set', 'ls' or 'rm'?"},
    {"session", NULL, "did you mean 'clave sessions', or 'clave lock --session-timeout'?"},
    {"lease", NULL, "did you mean 'clave semaphore', or 'clave lock --session-timeout'?"},
    {"event events history", NULL,
     "did you mean 'clave watch'? 'clave serve --http' has a history"},
    {"endpoint health", NULL, "did you mean 'clave ping'?"},
    {"snapshot", NULL, "did you mean 'clave data backup'?"},
    {"addauth auth", NULL, "did you mean the flag --auth SCHEME:ID?"},
    {"connect", NULL, "did you mean the flag --connect (-c) HOSTS?"},
    {"put write", NULL, "did you mean 'clave set' or 'clave create'?"},
    {"cat read", NULL, "did you mean 'clave get'?"},
    {"ls2 dir children", NULL, "did you mean 'clave ls'?"},
    {"exists", NULL, "did you mean 'clave stat'?"},
    {"server start daemon zkserver", NULL, "did you mean 'clave serve'?"},
    {"http rest proxy", NULL, "did you mean 'clave gate'?"},
    {"backup restore", NULL, "did you mean 'clave data'?"},
};

static const char running[] = "lock rwlock semaphore elect";

static const struct foreign foreign_flags[] = {
    {"nonblock nb", "lock rwlock elect", "did you mean --no-wait (-n)?"},
    {"nonblock nb", "semaphore", "did you mean --no-wait (-t)?"},
    {"try", "lock rwlock elect", "did you mean --no-wait (-n), or --wait=DURATION?"},
    {"try", "semaphore", "did you mean --no-wait (-t), or --wait=DURATION?"},
    {"x e exclusive", "rwlock", "did you mean --write (-W)?"},
    {"x e exclusive", "lock", "did you mean 'clave lock' without it? A lock is exclusive"},
    {"x e exclusive", "semaphore", "did you mean 'clave lock'?"},
    {"s shared", "rwlock", "did you mean --read (-r)?"},
    {"s shared r read", "lock semaphore", "did you mean 'clave rwlock -r'?"},
    {"u unlock", running, "a lock is released when its command ends: leave it out"},
    {"timeout", running, "did you mean --wait, for the lock, or --timeout, for a connection?"},
    {"conflict-exit-code", running, "did you mean --conflict-code (-E)?"},
    {"o close", running, "the command inherits nothing of the lock: leave it out"},
    {"F no-fork", running, "clave stays, to end the command when the lock is lost: leave it out"},
    {"command shell", running, "did you mean '-- sh -c COMMAND', after the path?"},
    {"monitor-retry", running, "clave reconnects while the lock is held: leave it out"},
    {"child-exit-code", running, "the exit code is the command's: leave it out"},
    {"pass-stdin", running, "the command has standard input: leave it out"},
    {"fcntl", running, "the lock is on a server, for all machines: leave it out"},
    {"V", NULL, "did you mean 'clave version'?"},
    {"token", running, "did you mean --auth, or CLAVE_AUTH?"},
    {"name", "elect", "did you mean --id?"},
    {"once", "elect",
     "did you mean 'clave lock --once KEY'? A leader's command is started in each term"},
    {"s", "get", "did you mean --stat?"},
    {"s", "ls", "did you mean --long (-l)?"},
    {"R", "ls", "did you mean 'clave tree'?"},
    {"R", "rm", "did you mean --recursive (-r)?"},
    {"r R", "watch", "did you mean --recursive?"},
    {"w", "get ls stat", "did you mean 'clave watch'?"},
    {"e", "create", "an ephemeral node would end with this command: did you mean 'clave lock'?"},
    {"t", "create", "did you mean --ttl?"},
    {"n limit", "lock rwlock", "did you mean 'clave semaphore -n N'?"},
    {"ttl", running, "did you mean --session-timeout?"},
    {"http-addr server hosts endpoints", NULL, "did you mean --connect (-c)?"},
};

static bool suggestion_foreign_has(const char *words, const char *word, size_t n)
{
    for (const char *p = words; *p;) {
        size_t len = strcspn(p, " ");
        if (len == n && strncmp(p, word, n) == 0)
            return true;
        p += len + (p[len] == ' ');
    }
    return false;
}

/* NULL: we know no program with this word. */
static const char *suggestion_foreign_find(const struct foreign *table, size_t rows,
                                           const char *verb, const char *word, size_t n)
{
    for (size_t i = 0; i < rows; i++)
        if ((!table[i].verbs || suggestion_foreign_has(table[i].verbs, verb, strlen(verb))) &&
            suggestion_foreign_has(table[i].words, word, n))
            return table[i].say;
    return NULL;
}

static const char *suggestion_foreign_flag(const struct verb *v, const char *word, size_t n)
{
    return suggestion_foreign_find(foreign_flags, sizeof foreign_flags / sizeof *foreign_flags,
                                   v->name, word, n);
}

/* ---- similar spelling ------------------------------------------------------------------------ */

enum { WORD_MAX = 24 };

/* How many letters must be changed, added, left out or swapped with their neighbour to get from `a`
 * to `b`. */
static size_t suggestion_word_distance(const char *a, size_t na, const char *b)
{
    size_t nb = strlen(b), d[WORD_MAX + 1][WORD_MAX + 1];
    if (na > WORD_MAX || nb > WORD_MAX)
        return SIZE_MAX;
    for (size_t i = 0; i <= na; i++)
        for (size_t k = 0; k <= nb; k++) {
            if (i == 0 || k == 0) {
                d[i][k] = i + k;
                continue;
            }
            bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[k - 1]);
            size_t least = d[i - 1][k - 1] + !same;
            least = d[i - 1][k] + 1 < least ? d[i - 1][k] + 1 : least;
            least = d[i][k - 1] + 1 < least ? d[i][k - 1] + 1 : least;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] &&
                d[i - 2][k - 2] + 1 < least)
                least = d[i - 2][k - 2] + 1;
            d[i][k] = least;
        }
    return d[na][nb];
}

/* The nearest of the candidates; if several are equally near, the first two. */
struct nearest {
    const char *word;
    size_t len, best, n;
    const char *found[2];
};

static struct nearest suggestion_nearest_to(const char *word, size_t len)
{
    return (struct nearest){.word = word, .len = len, .best = len > 5 ? 2 : 1};
}

static void suggestion_nearest_try(struct nearest *w, const char *candidate)
{
    size_t d = suggestion_word_distance(w->word, w->len, candidate);
    if (d > w->best || d >= strlen(candidate))
        return;
    if (d < w->best)
        w->n = 0;
    w->best = d;
    if (w->n < 2)
        w->found[w->n++] = candidate;
}

static const char *suggestion_nearest_say(const struct nearest *w, const char *dashes,
                                          char out[SUGGESTION_CAP])
{
    *out = '\0';
    if (w->n == 1)
        snprintf(out, SUGGESTION_CAP, "; did you mean '%s%s'?", dashes, w->found[0]);
    else if (w->n == 2)
        snprintf(out, SUGGESTION_CAP, "; did you mean '%s%s' or '%s%s'?", dashes, w->found[0],
                 dashes, w->found[1]);
    return out;
}

/* ---- verbs, words and flags ------------------------------------------------------------------ */

const char *suggestion_for_verb(const struct verb *const *verbs, const char *word,
                                char out[SUGGESTION_CAP])
{
    struct nearest w = suggestion_nearest_to(word, strlen(word));
    const char *say = suggestion_foreign_find(
        foreign_verbs, sizeof foreign_verbs / sizeof *foreign_verbs, "", word, strlen(word));
    if (say) {
        snprintf(out, SUGGESTION_CAP, "; %s", say);
        return out;
    }
    for (; *verbs; verbs++)
        suggestion_nearest_try(&w, (*verbs)->name);
    return suggestion_nearest_say(&w, "", out);
}

const char *suggestion_for_word(const char *const *words, const char *word,
                                char out[SUGGESTION_CAP])
{
    struct nearest w = suggestion_nearest_to(word, strlen(word));
    for (; *words; words++)
        suggestion_nearest_try(&w, *words);
    return suggestion_nearest_say(&w, "", out);
}

/* Offers every long flag of the verb to `w`. true: one of them is the word itself. */
static bool suggestion_try_flags(const struct verb *v, struct nearest *w)
{
    bool same = false;
    const struct flag *f;
    for (size_t i = 0; (f = usage_flag(v, i)); i++) {
        suggestion_nearest_try(w, f->name);
        same = same || (strlen(f->name) == w->len && strncmp(f->name, w->word, w->len) == 0);
    }
    return same;
}

const char *suggestion_for_flag(const struct verb *v, const char *flag, char out[SUGGESTION_CAP])
{
    size_t dashes = strspn(flag, "-"), n = strcspn(flag + dashes, "=");
    struct nearest w = suggestion_nearest_to(flag + dashes, n);
    const char *say = suggestion_foreign_flag(v, w.word, n);
    *out = '\0';
    if (say)
        snprintf(out, SUGGESTION_CAP, "; %s", say);
    else if (n > 1 && suggestion_try_flags(v, &w) && dashes == 1)
        snprintf(out, SUGGESTION_CAP, "; did you mean '-%s'?", flag);
    else if (n > 1)
        suggestion_nearest_say(&w, "--", out);
    return out;
}

bool suggestion_is_long(const struct verb *v, const char *word)
{
    if (word[0] != '-' || word[1] == '-' || strcspn(word + 1, "=") < 2)
        return false;
    struct nearest w = suggestion_nearest_to(word + 1, strcspn(word + 1, "="));
    return suggestion_foreign_flag(v, w.word, w.len) || suggestion_try_flags(v, &w);
}
