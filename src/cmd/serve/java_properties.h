/* java_properties.h - the syntax of Java's properties files (java.util.Properties.load):
 * "key=value", "key:value" or "key value", comments after '#' and '!', lines continued after a
 * backslash, escapes. */
#ifndef CLAVE_CMD_SERVE_JAVA_PROPERTIES_H
#define CLAVE_CMD_SERVE_JAVA_PROPERTIES_H

#include <stdbool.h>

/* Gives every property to `take`, in the order of the file, with the number of its first line and
 * without spaces around the value, as ZooKeeper trims it; the text is cut into pieces. Returns
 * false as soon as `take` does, or with *bad_line set (else 0) to the line of a malformed
 * \uXXXX. */
bool java_properties_each(char *text,
                          bool (*take)(void *arg, unsigned line, const char *key,
                                       const char *value),
                          void *arg, unsigned *bad_line);

#endif
