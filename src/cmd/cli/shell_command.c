/* shell_command.c - see shell_command.h. Called wherever a message names a command to try next. */
#include "cmd/cli/shell_command.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/shell_quote.h"

struct hint_text {
    char *out;
    size_t n;
};

static void shell_command_put(struct hint_text *t, const char *text, size_t n)
{
    assert(t->n < HINT_CAP);
    size_t room = HINT_CAP - 1 - t->n;
    n = n < room ? n : room;
    memcpy(t->out + t->n, text, n);
    t->n += n;
    t->out[t->n] = '\0';
}

static void shell_command_put_word(struct hint_text *t, const char *word)
{
    size_t n = clave__shell_quote(t->out + t->n, HINT_CAP - t->n, word);
    t->n = n < HINT_CAP - t->n ? t->n + n : HINT_CAP - 1;
}

static void shell_command_put_flag(struct hint_text *t, const char *flag, const char *value)
{
    if (!value)
        return;
    shell_command_put(t, flag, strlen(flag));
    shell_command_put_word(t, value);
}

const char *hint_word(const char *word, char out[HINT_CAP])
{
    struct hint_text t = {out, 0};
    shell_command_put_word(&t, word);
    return out;
}

const char *hint_command(const struct options *o, const char *const *words, char out[HINT_CAP])
{
    struct hint_text t = {out, 0};
    shell_command_put(&t, "clave", 5);
    shell_command_put_flag(&t, " -c ", o->flags.connect);
    shell_command_put_flag(&t, " --tls-ca ", o->flags.tls[CLIENT_TLS_CA]);
    shell_command_put_flag(&t, " --tls-cert ", o->flags.tls[CLIENT_TLS_CERT]);
    shell_command_put_flag(&t, " --tls-key ", o->flags.tls[CLIENT_TLS_KEY]);
    shell_command_put_flag(&t, " --tls-name ", o->flags.tls[CLIENT_TLS_NAME]);
    if (o->tls_any_name)
        shell_command_put(&t, " --tls-any-name", 15);
    for (; *words; words++)
        shell_command_put_flag(&t, " ", *words);
    return out;
}
