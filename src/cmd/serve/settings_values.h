/* settings_values.h - what the text of a setting may be, where it is more than a number or a word
 * of a list. Each function returns EINVAL with a fault that says what is expected. */
#ifndef CLAVE_CMD_SERVE_SETTINGS_VALUES_H
#define CLAVE_CMD_SERVE_SETTINGS_VALUES_H

#include <stdbool.h>

#include "runtime/start_error.h"

clave_err settings_verify_super_digest(const char *value, const struct fault *f);
clave_err settings_verify_uid(const char *value, const struct fault *f);
clave_err settings_verify_schemes(const char *value, const struct fault *f);
/* Four-letter words. */
clave_err settings_verify_words(const char *value, const struct fault *f);
clave_err settings_verify_paths(const char *value, const struct fault *f);
/* An address for clients; of HTTP; of the admin pages; the path of their URLs. */
clave_err settings_verify_listen(const char *value, const struct fault *f);
clave_err settings_verify_http(const char *value, const struct fault *f);
clave_err settings_verify_admin(const char *value, const struct fault *f);
clave_err settings_verify_url(const char *value, const struct fault *f);

/* The address is one for TLS. */
bool settings_is_tls(const char *address);
/* An address for HTTP without its "proxy:". */
const char *settings_past_proxy(const char *address);

#endif
