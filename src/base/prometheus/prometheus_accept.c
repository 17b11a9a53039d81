/* prometheus_accept.c - which format of a page the Accept header of a request asks for. */
#include "base/prometheus/prometheus_accept.h"

#include <string.h>

/* The quality of a media range in thousandths: of `text` up to its comma, 1000 if none is given. */
static int prometheus_quality(const char *text)
{
    size_t n = strcspn(text, ",");
    for (size_t i = 0; i + 2 < n; i++) {
        int quality = 0, weight = 1000;
        if (text[i] != 'q' || text[i + 1] != '=' || !strchr("; \t", i > 0 ? text[i - 1] : 'q'))
            continue;
        for (i += 2; i < n && weight > 0 && strchr("0123456789.", text[i]); i++) {
            if (text[i] == '.')
                continue;
            quality += (text[i] - '0') * weight;
            weight /= 10;
        }
        return quality;
    }
    return 1000;
}

/* The best quality of a media type; 0: it is not named. */
static int prometheus_wish(const char *accept, const char *type)
{
    size_t len = strlen(type);
    int best = 0;
    while (*accept) {
        accept += strspn(accept, ", \t");
        if (strncmp(accept, type, len) == 0 && strchr(";, \t", accept[len])) {
            int quality = prometheus_quality(accept);
            best = quality > best ? quality : best;
        }
        accept += strcspn(accept, ",");
    }
    return best;
}

enum prometheus_format clave__prometheus_accepted(const char *accept)
{
    int open = accept ? prometheus_wish(accept, "application/openmetrics-text") : 0;
    int text = accept ? prometheus_wish(accept, "text/plain") : 0;
    return open > 0 && open >= text ? PROMETHEUS_OPENMETRICS : PROMETHEUS_TEXT;
}
