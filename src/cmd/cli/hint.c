/* hint.c - see hint.h. Called where a message names the command to try next. */
#include "cmd/cli/hint.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct hint_text {
    char *out;
    size_t n;
};

static void hint_put(struct hint_text *t, const char *text, size_t n)
{
    assert(t->n < HINT_CAP);
    size_t room = HINT_CAP - 1 - t->n;
    n = n < room ? n : room;
    memcpy(t->out + t->n, text, n);
    t->n += n;
    t->out[t->n] = '\0';
}

/* In single quotes, where only a single quote needs care. */
static void hint_put_word(struct hint_text *t, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/_-.,:=@%+";
    if (*word && word[strspn(word, plain)] == '\0') {
        hint_put(t, word, strlen(word));
        return;
    }
    hint_put(t, "'", 1);
    for (size_t n; *word; word += n) {
        n = strcspn(word, "'");
        hint_put(t, word, n);
        if (word[n] == '\'') {
            hint_put(t, "'\\''", 4);
            n++;
        }
    }
    hint_put(t, "'", 1);
}

static void hint_put_flag(struct hint_text *t, const char *flag, const char *value)
{
    if (!value)
        return;
    hint_put(t, flag, strlen(flag));
    hint_put_word(t, value);
}

const char *hint_word(const char *word, char out[HINT_CAP])
{
    struct hint_text t = {out, 0};
    hint_put_word(&t, word);
    return out;
}

const char *hint_command(const struct options *o, const char *const *words, char out[HINT_CAP])
{
    struct hint_text t = {out, 0};
    hint_put(&t, "clave", 5);
    hint_put_flag(&t, " -c ", o->flags.connect);
    hint_put_flag(&t, " --tls-ca ", o->flags.tls[CLIENT_TLS_CA]);
    hint_put_flag(&t, " --tls-cert ", o->flags.tls[CLIENT_TLS_CERT]);
    hint_put_flag(&t, " --tls-key ", o->flags.tls[CLIENT_TLS_KEY]);
    hint_put_flag(&t, " --tls-name ", o->flags.tls[CLIENT_TLS_NAME]);
    if (o->tls_any_name)
        hint_put(&t, " --tls-any-name", 15);
    for (; *words; words++)
        hint_put_flag(&t, " ", *words);
    return out;
}
