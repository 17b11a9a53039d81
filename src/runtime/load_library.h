/* load_library.h - a shared library that is loaded when it is needed for the first time: OpenSSL
 * and libmicrohttpd. */
#ifndef CLAVE_RUNTIME_LOAD_LIBRARY_H
#define CLAVE_RUNTIME_LOAD_LIBRARY_H

/* Loads `name` for good. NULL, and *why is the reason, valid until this thread's next call of the
 * dynamic linker. */
void *clave__load(const char *name, const char **why);

#endif
