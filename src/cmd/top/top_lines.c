/* top_lines.c - see top_lines.h. Called by top_screen.c. Invariant: no line is longer than the
 * screen is wide, in columns, and none ends within a character. */
#include "cmd/top/top_lines.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "base/utf8.h"

enum { GAP = 2, NARROWEST = 12 };

const char *top_lines_clean(const struct top_lines *to, const char *text, char out[TOP_CELL_CAP])
{
    size_t used = 0;
    const char *p = text;
    while (*p && used + 6 < TOP_CELL_CAP) {
        size_t len = clave__utf8_printable(p, strnlen(p, 4));
        if (len > 1 && to->ascii)
            out[used++] = '?';
        for (size_t i = 0; i < len && (len == 1 || !to->ascii); i++)
            out[used++] = p[i];
        if (len == 0)
            used += (size_t)snprintf(out + used, 5, "\\x%02x", (unsigned char)*p);
        p += len + (len == 0);
    }
    if (*p)
        out[used++] = '~';
    out[used] = '\0';
    return out;
}

/* Columns of the character at p, which is valid. */
static size_t top_lines_width_of(const char *p, size_t *len)
{
    uint32_t c = '?';
    *len = clave__utf8_decode(p, strnlen(p, 4), &c);
    *len += *len == 0;
    int width = c < 0x80 ? 1 : wcwidth((wchar_t)c);
    return width < 0 ? 1 : (size_t)width;
}

static size_t top_lines_width(const char *text)
{
    size_t width = 0, len;
    for (const char *p = text; *p; p += len)
        width += top_lines_width_of(p, &len);
    return width;
}

/* Appends `text` to the line in `width` columns, cut with a '~' or filled with spaces. */
static void top_lines_fit(char line[TOP_LINE_CAP], const char *text, size_t width, bool right)
{
    size_t used = strlen(line), need = top_lines_width(text), at = 0, len;
    size_t spaces = need < width ? width - need : 0;
    for (; right && spaces > 0 && used + 1 < TOP_LINE_CAP; spaces--)
        line[used++] = ' ';
    for (const char *p = text; *p; p += len) {
        size_t w = top_lines_width_of(p, &len);
        bool cut = need > width && at + w + 1 > width;
        if (cut && width > 0 && used + 1 < TOP_LINE_CAP)
            line[used++] = '~';
        if (cut || used + len >= TOP_LINE_CAP)
            break;
        memcpy(line + used, p, len);
        used += len;
        at += w;
    }
    for (; spaces > 0 && used + 1 < TOP_LINE_CAP; spaces--)
        line[used++] = ' ';
    line[used] = '\0';
}

void top_lines_say(const struct top_lines *to, enum top_style style, const char *text)
{
    char line[TOP_LINE_CAP] = "";
    size_t width = top_lines_width(text);
    size_t most = to->columns ? to->columns : SIZE_MAX;
    top_lines_fit(line, text, width > most ? most : width, false);
    to->put(to->arg, style, line);
}

size_t top_lines_wrap(const struct top_lines *to, enum top_style style, const char *text)
{
    char line[TOP_LINE_CAP];
    size_t lines = 0, most = to->columns ? to->columns : SIZE_MAX;
    for (const char *p = text; *p || lines == 0; lines++) {
        size_t width = 0, n = 0, len, w;
        while (p[n] && n + 4 < sizeof line && (w = top_lines_width_of(p + n, &len)) + width <= most)
            n += len, width += w;
        const char *space = p[n] ? memrchr(p, ' ', n) : NULL;
        n = space && space > p ? (size_t)(space - p) : n;
        n += n == 0 && *p; /* not even one character fits */
        snprintf(line, sizeof line, "%.*s", (int)n, p);
        top_lines_say(to, style, line);
        p += n + (p[n] == ' ');
    }
    return lines;
}

/* ---- tables --------------------------------------------------------------------------------- */

static void top_lines_widths(const struct top_lines *to, const struct top_table *t,
                             size_t width[TOP_COLUMNS])
{
    struct top_cells cells;
    size_t all = 0;
    for (size_t c = 0; c < TOP_COLUMNS; c++)
        width[c] = strlen(t->columns[c].title);
    for (size_t i = 0; i < t->n; i++) {
        t->row(t->arg, i, &cells);
        for (size_t c = 0; c < TOP_COLUMNS; c++) {
            size_t w = top_lines_width(cells.text[c]);
            width[c] = w > width[c] ? w : width[c];
        }
    }
    for (size_t c = 0; c < TOP_COLUMNS; c++)
        all += width[c] + GAP;
    size_t narrow = to->columns / 3 > NARROWEST ? to->columns / 3 : NARROWEST;
    for (size_t c = 0; c < TOP_COLUMNS; c++)
        if (to->columns && all > to->columns + GAP && t->columns[c].narrow && width[c] > narrow)
            width[c] = narrow;
}

static void top_lines_row(const struct top_lines *to, const struct top_table *t,
                          const struct top_cells *cells, const size_t width[TOP_COLUMNS],
                          enum top_style style)
{
    char line[TOP_LINE_CAP] = "";
    for (size_t c = 0; c < TOP_COLUMNS; c++) {
        bool last = c + 1 == TOP_COLUMNS;
        const char *text = cells ? cells->text[c] : t->columns[c].title;
        top_lines_fit(line, text, last ? top_lines_width(text) : width[c], t->columns[c].right);
        if (!last)
            top_lines_fit(line, "", GAP, false);
    }
    size_t n = strlen(line);
    while (n > 0 && line[n - 1] == ' ' && !(style & TOP_REVERSE))
        line[--n] = '\0';
    top_lines_say(to, style, line);
}

void top_lines_table(const struct top_lines *to, const struct top_table *t)
{
    assert(t->row && t->style && t->bar <= t->n);
    struct top_cells cells;
    size_t width[TOP_COLUMNS];
    top_lines_widths(to, t, width);
    top_lines_row(to, t, NULL, width, TOP_BOLD);
    for (size_t i = t->first; i < t->n && i < t->first + t->seen; i++) {
        t->row(t->arg, i, &cells);
        top_lines_row(to, t, &cells, width, t->style(t->arg, i) | (i == t->bar ? TOP_REVERSE : 0));
    }
}
