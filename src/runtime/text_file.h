/* text_file.h - a text file, read whole, and the format of the configuration files of clients and
 * servers: lines "key = value" and comments, lines that begin with a '#'. A value may be in quotes,
 * '"' or "'", and then a comment may follow on its line. */
#ifndef CLAVE_RUNTIME_TEXT_FILE_H
#define CLAVE_RUNTIME_TEXT_FILE_H

#include <stdbool.h>

/* The text of a file, to be freed by the caller, without the mark that editors put before UTF-8.
 * NULL: errno, and `why` has the path, the line if it is about one, and the reason. EFBIG: longer
 * than any such file can be; EILSEQ: it has a NUL byte; ENODATA, ETIMEDOUT: a pipe without a
 * writer. */
enum { TEXT_FILE_WHY = 4400 };
char *clave__text_file_read(const char *path, char why[TEXT_FILE_WHY]);

/* ---- lines of keys and values ---------------------------------------------------------------- */

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
