/* version.h - the release number, and the mark of an exported function. Any thread may call
 * anything here. */
#ifndef CLAVE_VERSION_H
#define CLAVE_VERSION_H

#define CLAVE_VERSION_MAJOR 0
#define CLAVE_VERSION_MINOR 1
#define CLAVE_VERSION_PATCH 0
#define CLAVE_VERSION_STRING "0.1.0"

#define CLAVE_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library in use, which may differ from the header's: "0.1.0". A static string.
 */
CLAVE_EXPORT const char *clave_version(void);

#ifdef __cplusplus
}
#endif
#endif
