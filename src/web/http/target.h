/* target.h - the target of a request: its path, the pattern that the path matches, and the
 * arguments of its query. Pure text. */
#ifndef CLAVE_WEB_HTTP_TARGET_H
#define CLAVE_WEB_HTTP_TARGET_H

#include <stdbool.h>
#include <stddef.h>

enum { TARGET_MAX_ARGS = 16, TARGET_MAX = 8192 };

struct target_arg {
    const char *name, *value; /* decoded; "" when there is no '=' */
};

struct target {
    const char *host; /* of one in absolute form, "http://HOST/PATH"; NULL */
    char *path;       /* still percent-encoded: an encoded slash is not one that separates */
    struct target_arg args[TARGET_MAX_ARGS];
    size_t nargs;
};

/* Takes `text`, which it changes and which must live as long as the target, apart. NULL: done; else
 * what is wrong, a static string. */
const char *clave__target_parse(struct target *t, char *text);

/* The value of an argument; NULL: there is none. Of several the first. */
const char *clave__target_arg(const struct target *t, const char *name);

struct target_part {
    const char *at; /* within the path, still encoded */
    size_t n;
};

/* The path is one of the pattern (struct route): parts[i] is what its i-th {} stands for. */
bool clave__target_matches(const struct target *t, const char *pattern, struct target_part *parts);

/* Decodes n bytes of `from` to `to`, which has room for n + 1, and adds a NUL. `plus`: '+' is a
 * blank. false: a malformed escape, or a NUL. */
bool clave__percent_decode(char *to, const char *from, size_t n, bool plus);

/* Writes `path` to `to`, which has room for 3 times its length and a NUL; a slash stays as it is.
 */
void clave__percent_encode(char *to, const char *path);

#endif
