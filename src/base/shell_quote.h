/* shell_quote.h - a word of a command that is printed to be pasted into a shell. */
#ifndef CLAVE_BASE_SHELL_QUOTE_H
#define CLAVE_BASE_SHELL_QUOTE_H

#include <stddef.h>

/* Writes the word so that a POSIX shell reads it as one word: as it is, or in single quotes.
 * Returns the length, without the NUL. As with snprintf, `out` has at most cap - 1 bytes of it, and
 * a result of cap or more says that it was cut. */
size_t clave__shell_quote(char *out, size_t cap, const char *word);

#endif
