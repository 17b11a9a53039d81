/* key_value_file.h - text files of lines "key = value" and comments, lines that begin with a '#'. A
 * value may be in quotes, '"' or "'", and then a comment may follow on its line. */
#ifndef CLAVE_RUNTIME_KEY_VALUE_FILE_H
#define CLAVE_RUNTIME_KEY_VALUE_FILE_H

#include <stdbool.h>

/* Where a value comes from, for messages. */
struct origin {
    const char *file; /* NULL: an environment variable */
    unsigned line;
    const char *key;
};

/* Reports a malformed line; returns false. */
struct keyfile_visitor {
    bool (*set)(void *arg, const struct origin *at, const char *key, const char *value);
    bool (*bad)(void *arg, const struct origin *at, const char *what);
    void *arg;
};
/* Visits each line, cutting the text into pieces. Stops and returns false as soon as a callback
 * returns false. */
bool clave__keyfile_each(char *text, const char *path, const struct keyfile_visitor *v);

#endif
