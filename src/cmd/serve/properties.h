/* properties.h - the syntax of Java's properties files (java.util.Properties.load): "key=value",
 * "key:value" or "key value", comments behind '#' and '!', lines that go on behind a backslash,
 * escapes. */
#ifndef CLAVE_CMD_SERVE_PROPERTIES_H
#define CLAVE_CMD_SERVE_PROPERTIES_H

#include <stdbool.h>

/* Gives every property to `take`, in the order of the file, with the number of the line it begins
 * in and without blanks around the value, as ZooKeeper trims it; the text is cut into pieces.
 * false: as soon as `take` said so, or with *bad_line set (else 0) to the line of a malformed
 * \uXXXX. */
bool properties_each(char *text,
                     bool (*take)(void *arg, unsigned line, const char *key, const char *value),
                     void *arg, unsigned *bad_line);

#endif
