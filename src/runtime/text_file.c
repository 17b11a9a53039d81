/* text_file.c - see text_file.h. Called for configuration files, tokens and keys. */
#include "runtime/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading --------------------------------------------------------------------------------- */

enum { MAX_FILE = 4 * 1024 * 1024, FIRST_READ = 4096, PIPE_WAIT_MS = 10000 };

/* Waits for more input from a pipe. A pipe that nobody writes to must not block a server that
 * reloads. Returns 0 or an errno. */
static int text_file_await(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = poll(&p, 1, PIPE_WAIT_MS);
    if (n == 0)
        return ETIMEDOUT;
    return n < 0 && errno != EINTR ? errno : 0;
}

/* Reads all that there is, up to one byte more than a file may have. Returns 0 or an errno. */
static int text_file_fill(int fd, char **text, size_t *n)
{
    size_t cap = 0;
    for (;;) {
        if (*n == cap) {
            if (*n > MAX_FILE)
                return EFBIG;
            cap = cap ? 2 * cap : FIRST_READ;
            char *more = realloc(*text, cap + 1);
            if (!more)
                return ENOMEM;
            *text = more;
        }
        ssize_t done = read(fd, *text + *n, cap - *n);
        int number = done >= 0 || errno == EINTR ? 0 : errno;
        if (number == EAGAIN)
            number = text_file_await(fd);
        if (number != 0)
            return number;
        if (done == 0)
            return *n > MAX_FILE ? EFBIG : 0;
        *n += done > 0 ? (size_t)done : 0;
    }
}

/* Skips the byte order mark with which editors begin a UTF-8 file. */
static void text_file_skip_mark(char *text, size_t *n)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t len = strlen(mark);
    if (*n < len || memcmp(text, mark, len) != 0)
        return;
    *n -= len;
    memmove(text, text + len, *n);
}

/* The line of the first NUL, which would hide what follows it; 0: there is none. */
static unsigned text_file_nul(const char *text, size_t n)
{
    const char *nul = memchr(text, '\0', n);
    unsigned line = 1;
    for (const char *at = text; nul && at < nul; at++)
        line += *at == '\n';
    return nul ? line : 0;
}

/* Returns 0 or an errno, which `why` explains. */
static int text_file_load(const char *path, char **text, char why[TEXT_FILE_WHY])
{
    size_t n = 0;
    struct stat st = {0};
    /* opening a pipe would block until it has a writer */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int number = fd < 0 || fstat(fd, &st) != 0 ? errno : text_file_fill(fd, text, &n);
    bool is_pipe = fd >= 0 && S_ISFIFO(st.st_mode);
    if (fd >= 0)
        close(fd);
    if (number == EFBIG)
        snprintf(why, TEXT_FILE_WHY, "%s: it has more than the %d bytes that are allowed", path,
                 MAX_FILE);
    else if (is_pipe && (number == ETIMEDOUT || (number == 0 && n == 0)))
        snprintf(why, TEXT_FILE_WHY, "%s: it is a pipe, and nobody has written to it", path);
    else if (number != 0)
        snprintf(why, TEXT_FILE_WHY, "%s: %s", path, strerror(number));
    if (number != 0 || *why)
        return number != 0 ? number : ENODATA;
    text_file_skip_mark(*text, &n);
    (*text)[n] = '\0';
    unsigned line = text_file_nul(*text, n);
    if (line > 0)
        snprintf(
            why, TEXT_FILE_WHY,
            "%s:%u: a NUL byte, which does not occur in text: the file is damaged, or in UTF-16",
            path, line);
    return line > 0 ? EILSEQ : 0;
}

char *clave__text_file_read(const char *path, char why[TEXT_FILE_WHY])
{
    char *text = NULL;
    *why = '\0';
    int number = text_file_load(path, &text, why);
    if (number == 0)
        return text;
    free(text);
    errno = number;
    return NULL;
}

/* ---- lines of keys and values ---------------------------------------------------------------- */

static char *key_value_trim(char *s)
{
    s += strspn(s, " \t");
    size_t n = strlen(s);
    while (n > 0 && strchr(" \t\r", s[n - 1]))
        n--;
    s[n] = '\0';
    return s;
}

/* Parses a value as other programs write it: in quotes, with a comment after them. A '#' after a
 * value without quotes is refused, because it may be a comment or part of a password. Returns NULL
 * if the value is wrong; *fault says why. */
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
    *fault = NULL;
    if (!end)
        *fault = "the quote before the value is not closed";
    else if (*rest != '\0' && *rest != '#')
        *fault = "only a comment may follow the closing quote";
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
