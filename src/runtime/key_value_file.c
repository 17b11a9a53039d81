/* key_value_file.c - reads and splits the format of the configuration files of clients and servers.
 */
#include "runtime/key_value_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 64 * 1024 };

char *clave__keyfile_read(const char *path)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return NULL;
    char *text = malloc(MAX_FILE + 1);
    size_t n = text ? fread(text, 1, MAX_FILE + 1, f) : 0;
    int fault = !text ? ENOMEM : ferror(f) ? errno : n > MAX_FILE ? EFBIG : 0;
    fclose(f);
    if (fault) {
        free(text);
        errno = fault;
        return NULL;
    }
    text[n] = '\0';
    return text;
}

static char *keyfile_trim(char *s)
{
    s += strspn(s, " \t");
    size_t n = strlen(s);
    while (n > 0 && strchr(" \t\r", s[n - 1]))
        n--;
    s[n] = '\0';
    return s;
}

static bool keyfile_visit(char *line, const struct origin *at, const struct keyfile_visitor *v)
{
    line = keyfile_trim(line);
    if (*line == '\0' || *line == '#')
        return true;
    char *eq = strchr(line, '=');
    if (!eq)
        return v->bad(v->arg, at, "expected 'key = value', or a comment after a '#'");
    *eq = '\0';
    char *key = keyfile_trim(line), *value = keyfile_trim(eq + 1);
    if (*value == '\0') {
        char what[128];
        snprintf(what, sizeof what, "'%.80s' has no value", key);
        return v->bad(v->arg, at, what);
    }
    return v->set(v->arg, at, key, value);
}

bool clave__keyfile_each(char *text, const char *path, const struct keyfile_visitor *v)
{
    struct origin at = {.file = path};
    for (char *line = text; line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        at.line++;
        if (!keyfile_visit(line, &at, v))
            return false;
        line = end ? end + 1 : NULL;
    }
    return true;
}
