/* java_properties.h - the syntax of Java's properties files (java.util.Properties.load):
 * "key=value", "key:value" or "key value", comments after '#' or '!', lines continued by a
 * backslash, and escapes. */
#ifndef CLAVE_CMD_SERVE_JAVA_PROPERTIES_H
#define CLAVE_CMD_SERVE_JAVA_PROPERTIES_H

#include <stdbool.h>

/* Calls `take` for every property, in the order of the file, with the number of its first line;
 * spaces around the value are removed, as ZooKeeper does. Modifies the text. Returns false as soon
 * as `take` does, or at a malformed \uXXXX, in which case *bad_line is its line, else 0. */
bool java_properties_each(char *text,
                          bool (*take)(void *arg, unsigned line, const char *key,
                                       const char *value),
                          void *arg, unsigned *bad_line);

#endif
