/* prometheus.c - the writer of metrics of prometheus.h, for the server's page, the gate's and the
 * library's. Invariant: a page without an error consists of whole lines. */
#include "base/prometheus.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { DIGITS_CAP = 32 };

/* ---- pieces ---------------------------------------------------------------------------------- */

static void prometheus_bytes(struct prometheus *p, const void *bytes, size_t n)
{
    if (p->err == CLAVE_OK)
        p->err = clave__buf_append(p->out, bytes, n);
}

static void prometheus_text(struct prometheus *p, const char *text)
{
    prometheus_bytes(p, text, strlen(text));
}

/* value / 10^decimals, without trailing zeros: 4250 and 3 make "4.25". */
static const char *prometheus_number(int64_t value, unsigned decimals, char out[DIGITS_CAP])
{
    assert(decimals <= 18);
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value, one = 1;
    for (unsigned i = 0; i < decimals; i++)
        one *= 10;
    while (decimals > 0 && magnitude % 10 == 0) {
        magnitude /= 10;
        one /= 10;
        decimals--;
    }
    int n = snprintf(out, DIGITS_CAP, "%s%" PRIu64, value < 0 ? "-" : "", magnitude / one);
    if (decimals > 0)
        snprintf(out + n, (size_t)(DIGITS_CAP - n), ".%0*" PRIu64, (int)decimals, magnitude % one);
    return out;
}

/* What is written in place of the character at `text`, or of a byte that begins none; NULL: the
 * character itself. */
static const char *prometheus_escape(const char *text, size_t n)
{
    switch (*text) {
    case '\n':
        return "\\n";
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    default:
        return clave__utf8_len(text, n) ? NULL : "\xef\xbf\xbd";
    }
}

/* Runs of plain characters are written at once. */
static void prometheus_escaped(struct prometheus *p, const char *text)
{
    size_t n = strlen(text), from = 0;
    for (size_t i = 0; i < n;) {
        const char *special = prometheus_escape(text + i, n - i);
        if (!special) {
            i += clave__utf8_len(text + i, n - i);
            continue;
        }
        prometheus_bytes(p, text + from, i - from);
        prometheus_text(p, special);
        from = ++i;
    }
    prometheus_bytes(p, text + from, n - from);
}

static void prometheus_label(struct prometheus *p, char before, const char *name, const char *value)
{
    prometheus_bytes(p, &before, 1);
    prometheus_text(p, name);
    prometheus_text(p, "=\"");
    prometheus_escaped(p, value);
    prometheus_text(p, "\"");
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* What kind of sample of its family a line is. */
struct sample {
    const char *suffix; /* after the name of the family */
    const char *label;  /* one more, at the end; NULL: none */
    const char *label_value;
};

static void prometheus_sample(struct prometheus *p, const struct sample *s,
                              const struct prometheus_label *labels, const char *digits)
{
    char before = '{';
    prometheus_text(p, p->family->name);
    prometheus_text(p, s->suffix);
    for (; labels && labels->name; labels++, before = ',')
        prometheus_label(p, before, labels->name, labels->value);
    if (s->label) {
        prometheus_label(p, before, s->label, s->label_value);
        before = ',';
    }
    prometheus_text(p, before == ',' ? "} " : " ");
    prometheus_text(p, digits);
    prometheus_text(p, "\n");
}

static void prometheus_head(struct prometheus *p, const char *suffix)
{
    static const char *const types[] = {" gauge\n", " counter\n", " counter\n", " histogram\n",
                                        " summary\n"};
    const struct prometheus_family *f = p->family;
    bool unknown = f->type == PROMETHEUS_BARE_COUNTER && p->format == PROMETHEUS_OPENMETRICS;
    const char *lines[] = {"# HELP ", f->name, suffix,
                           " ",       f->help, "\n# TYPE ",
                           f->name,   suffix,  unknown ? " unknown\n" : types[f->type]};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        prometheus_text(p, lines[i]);
}

/* What the text format has after the name: OpenMetrics names counters' families without it. */
static const char *prometheus_head_suffix(const struct prometheus *p)
{
    return p->family->type == PROMETHEUS_COUNTER && p->format == PROMETHEUS_TEXT ? "_total" : "";
}

/* ---- families -------------------------------------------------------------------------------- */

struct prometheus clave__prometheus_to(struct buf *out, enum prometheus_format format)
{
    return (struct prometheus){.out = out, .format = format};
}

void clave__prometheus_family(struct prometheus *p, const struct prometheus_family *f)
{
    p->family = f;
    prometheus_head(p, prometheus_head_suffix(p));
}

void clave__prometheus_digits(struct prometheus *p, const struct prometheus_label *labels,
                              const char *digits)
{
    assert(p->family && p->family->type != PROMETHEUS_HISTOGRAM &&
           p->family->type != PROMETHEUS_SUMMARY);
    const struct sample bare = {.suffix = ""}, total = {.suffix = "_total"};
    enum prometheus_type type = p->family->type;
    if (type == PROMETHEUS_BARE_COUNTER) {
        prometheus_sample(p, &bare, labels, digits);
        prometheus_head(p, "_total");
    }
    prometheus_sample(p, type == PROMETHEUS_GAUGE ? &bare : &total, labels, digits);
}

void clave__prometheus_put(struct prometheus *p, const struct prometheus_label *labels,
                           int64_t value)
{
    char digits[DIGITS_CAP];
    clave__prometheus_digits(p, labels, prometheus_number(value, p->family->decimals, digits));
}

/* What histograms and summaries end with. */
static void prometheus_sum(struct prometheus *p, const struct prometheus_label *labels, int64_t sum,
                           uint64_t count)
{
    char digits[DIGITS_CAP];
    const struct sample of_sum = {.suffix = "_sum"}, of_count = {.suffix = "_count"};
    prometheus_sample(p, &of_sum, labels, prometheus_number(sum, p->family->decimals, digits));
    prometheus_sample(p, &of_count, labels, prometheus_number((int64_t)count, 0, digits));
}

/* OpenMetrics has bounds as floats: "1.0". */
static void prometheus_bound(const struct prometheus *p, int64_t at, char out[DIGITS_CAP])
{
    prometheus_number(at, p->family->decimals, out);
    if (p->format == PROMETHEUS_OPENMETRICS && !strchr(out, '.'))
        snprintf(out + strlen(out), DIGITS_CAP - strlen(out), ".0");
}

void clave__prometheus_histogram(struct prometheus *p, const struct prometheus_label *labels,
                                 const struct histogram *h)
{
    assert(p->family && p->family->type == PROMETHEUS_HISTOGRAM);
    char bound[DIGITS_CAP], digits[DIGITS_CAP];
    const struct sample bucket = {.suffix = "_bucket", .label = "le", .label_value = bound};
    uint64_t below = 0;
    for (size_t i = 0; i <= h->bounds->n; i++) {
        below += h->counts[i];
        if (i < h->bounds->n)
            prometheus_bound(p, h->bounds->at[i], bound);
        else
            snprintf(bound, sizeof bound, "+Inf");
        prometheus_sample(p, &bucket, labels, prometheus_number((int64_t)below, 0, digits));
    }
    prometheus_sum(p, labels, h->sum, below);
}

void clave__prometheus_summary(struct prometheus *p, const struct prometheus_label *labels,
                               const struct prometheus_summary *s)
{
    assert(p->family && p->family->type == PROMETHEUS_SUMMARY);
    static const char *const names[PROMETHEUS_QUANTILES] = {"0.5", "0.9", "0.99"};
    char digits[DIGITS_CAP];
    for (size_t i = 0; s->has_quantiles && i < PROMETHEUS_QUANTILES; i++) {
        const struct sample q = {.suffix = "", .label = "quantile", .label_value = names[i]};
        prometheus_sample(p, &q, labels,
                          s->quantiles[i] < 0
                              ? "NaN"
                              : prometheus_number(s->quantiles[i], p->family->decimals, digits));
    }
    prometheus_sum(p, labels, s->sum, s->count);
}

void clave__prometheus_end(struct prometheus *p)
{
    if (p->format == PROMETHEUS_OPENMETRICS)
        prometheus_text(p, "# EOF\n");
}

/* ---- over HTTP ------------------------------------------------------------------------------- */

const char *clave__prometheus_content_type(enum prometheus_format format)
{
    return format == PROMETHEUS_OPENMETRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- which of the two formats ---------------------------------------------------------------- */

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
