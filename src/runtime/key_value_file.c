/* key_value_file.c - splits the format of the configuration files of clients and servers. */
#include "runtime/key_value_file.h"

#include <stdio.h>
#include <string.h>

static char *key_value_trim(char *s)
{
    s += strspn(s, " \t");
    size_t n = strlen(s);
    while (n > 0 && strchr(" \t\r", s[n - 1]))
        n--;
    s[n] = '\0';
    return s;
}

/* A value as other programs' files have it: in quotes, with a comment behind them. A '#' behind a
 * value without quotes may be a comment or a part of a password: nobody can tell, so it is refused.
 * NULL: *fault says why. */
static char *keyfile_value(char *value, const char **fault)
{
    char quote = *value;
    if (quote != '"' && quote != '\'') {
        *fault =
            *value == '#' || strstr(value, " #") || strstr(value, "\t#")
                ? "a comment needs a line of its own; a value with a '#' needs quotes around it"
                : NULL;
        return *fault ? NULL : value;
    }
    char *end = strchr(value + 1, quote);
    char *rest = end ? key_value_trim(end + 1) : NULL;
    *fault = !end                            ? "the quote before the value is not closed"
             : *rest != '\0' && *rest != '#' ? "only a comment may follow the closing quote"
                                             : NULL;
    if (*fault)
        return NULL;
    *end = '\0';
    return value + 1;
}

static bool key_value_visit(char *line, const struct origin *at, const struct keyfile_visitor *v)
{
    line = key_value_trim(line);
    if (*line == '\0' || *line == '#')
        return true;
    if (strchr(line, '\r'))
        return v->bad(v->arg, at, "a carriage return within the line: lines end with a newline");
    char *eq = strchr(line, '=');
    if (!eq)
        return v->bad(v->arg, at, "expected 'key = value', or a comment after a '#'");
    *eq = '\0';
    char what[160];
    const char *fault;
    char *key = key_value_trim(line), *value = keyfile_value(key_value_trim(eq + 1), &fault);
    if (fault)
        snprintf(what, sizeof what, "%.80s: %s", key, fault);
    else if (*value == '\0')
        snprintf(what, sizeof what, "'%.80s' has no value", key);
    if (fault || *value == '\0')
        return v->bad(v->arg, at, what);
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
        if (!key_value_visit(line, &at, v))
            return false;
        line = end ? end + 1 : NULL;
    }
    return true;
}
