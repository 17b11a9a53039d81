/* load_library.h - loads a shared library on first use: OpenSSL and libmicrohttpd. */
#ifndef CLAVE_RUNTIME_LOAD_LIBRARY_H
#define CLAVE_RUNTIME_LOAD_LIBRARY_H

/* Loads `name` permanently. NULL: *why is the reason, valid until this thread's next call of the
 * dynamic linker. */
void *clave__load(const char *name, const char **why);

#endif
