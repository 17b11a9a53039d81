/* version.h - the release number, and the mark of an exported function. Any thread may call
 * anything here. */
#ifndef CLAVE_VERSION_H
#define CLAVE_VERSION_H

#define CLAVE_VERSION_MAJOR 0
#define CLAVE_VERSION_MINOR 1
#define CLAVE_VERSION_PATCH 0
#define CLAVE_VERSION_STRING "0.1.0"

/* Marks what the library exports. No handle may be NULL unless a comment allows it (_free ignores
 * NULL): that is the first argument of a METHOD, and the first two of a MAKING, which makes an
 * object on another one. The compiler warns about a NULL that it sees; one that it does not see
 * crashes the program, with a message under -fsanitize=undefined. */
#define CLAVE_EXPORT __attribute__((visibility("default")))
#define CLAVE_METHOD CLAVE_EXPORT __attribute__((nonnull(1)))
#define CLAVE_MAKING CLAVE_EXPORT __attribute__((nonnull(1, 2)))

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library in use, which may differ from that of the headers: "0.1.0". A static
 * string. */
CLAVE_EXPORT const char *clave_version(void);

#ifdef __cplusplus
}
#endif
#endif
