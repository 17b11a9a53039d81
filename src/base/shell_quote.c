/* shell_quote.c - see shell_quote.h. Messages of the program and answers of the gate name commands
 * whose arguments are paths that anybody may have chosen. */
#include "base/shell_quote.h"

#include <assert.h>
#include <string.h>

struct quoted {
    char *out;
    size_t cap, n;
};

static void shell_quote_put(struct quoted *q, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++, q->n++)
        if (q->n + 1 < q->cap)
            q->out[q->n] = text[i];
}

size_t clave__shell_quote(char *out, size_t cap, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/_-.,:=@%+";
    struct quoted q = {out, cap, 0};
    assert(cap > 0);
    if (*word && word[strspn(word, plain)] == '\0') {
        shell_quote_put(&q, word, strlen(word));
    } else {
        shell_quote_put(&q, "'", 1);
        for (size_t n; *word; word += n) { /* only a single quote needs care within them */
            n = strcspn(word, "'");
            shell_quote_put(&q, word, n);
            if (word[n] == '\'') {
                shell_quote_put(&q, "'\\''", 4);
                n++;
            }
        }
        shell_quote_put(&q, "'", 1);
    }
    out[q.n < cap ? q.n : cap - 1] = '\0';
    return q.n;
}
