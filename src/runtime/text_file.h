/* text_file.h - reading text files as a whole, and the format of the configuration files of clients
 * and servers: lines "key = value", and comments, which are lines that begin with '#'. A value may
 * be in quotes ('"' or "'"); only then may a comment follow it on its line. */
#ifndef CLAVE_RUNTIME_TEXT_FILE_H
#define CLAVE_RUNTIME_TEXT_FILE_H

#include <stdbool.h>

/* Reads a file and returns its text, without the byte order mark that editors put before UTF-8, to
 * be freed by the caller. Returns NULL with errno if it cannot; `why` then has the path, the line
 * if it concerns one, and the reason. EFBIG: longer than any such file can be; EILSEQ: it contains
 * a NUL; ENODATA, ETIMEDOUT: it is a pipe without a writer. */
enum { TEXT_FILE_WHY = 4400 };
char *clave__text_file_read(const char *path, char why[TEXT_FILE_WHY]);

/* ---- lines of keys and values ---------------------------------------------------------------- */

/* Where a value comes from, for messages. */
struct origin {
    const char *file; /* NULL: it comes from an environment variable */
    unsigned line;
    const char *key;
};

/* Callbacks for lines. `bad` reports a malformed one and returns false. */
struct keyfile_visitor {
    bool (*set)(void *arg, const struct origin *at, const char *key, const char *value);
    bool (*bad)(void *arg, const struct origin *at, const char *what);
    void *arg;
};
/* Visits each line, cutting the text into pieces. Stops and returns false as soon as a callback
 * returns false. */
bool clave__keyfile_each(char *text, const char *path, const struct keyfile_visitor *v);

#endif
