/* target_fuzz.c - targets of requests: what is taken apart has arguments within the text, an escape
 * is decoded once, and what is encoded is decoded to itself. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "web/http/exchange.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct target t;
    char *text = malloc(size + 1), *again = malloc(3 * size + 1), *back = malloc(3 * size + 1);
    must(text && again && back);
    memcpy(text, data, size);
    text[size] = '\0';
    clave__percent_encode(again, text);
    must(clave__percent_decode(back, again, strlen(again), false) && strcmp(back, text) == 0);
    size_t n = strlen(text);
    if (!clave__target_parse(&t, text)) {
        must((t.host ? t.path > text : t.path == text) && t.path[0] == '/' &&
             t.nargs <= TARGET_MAX_ARGS);
        for (size_t i = 0; i < t.nargs; i++) {
            must(t.args[i].name > text && t.args[i].value <= text + n);
            must(clave__target_arg(&t, t.args[i].name) != NULL);
        }
        size_t len = strlen(t.path);
        if (clave__percent_decode(back, t.path, len, false))
            must(strlen(back) <= len);
    }
    free(text);
    free(again);
    free(back);
    return 0;
}
