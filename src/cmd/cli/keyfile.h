/* keyfile.h - files of lines "key = value", with comments behind a '#'. */
#ifndef CLAVE_CMD_CLI_KEYFILE_H
#define CLAVE_CMD_CLI_KEYFILE_H

#include <stdbool.h>

/* Where a value comes from, for the message. */
struct origin {
    const char *file; /* NULL: an environment variable */
    unsigned line;
    const char *key;
};

/* The text of a file, for the caller to free; NULL and errno. EFBIG: longer than any such file. */
char *keyfile_read(const char *path);

/* What is wrong with a line goes to `bad`, which returns false. */
struct keyfile_visitor {
    bool (*set)(void *arg, const struct origin *at, const char *key, const char *value);
    bool (*bad)(void *arg, const struct origin *at, const char *what);
    void *arg;
};
/* Visits each line, cutting the text into pieces. false: as soon as one of them said so. */
bool keyfile_each(char *text, const char *path, const struct keyfile_visitor *v);

#endif
