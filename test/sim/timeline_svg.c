#include "timeline_svg.h"

#include <inttypes.h>

enum {
    MARGIN = 90, /* for the names of the lanes */
    WIDTH = 1100,
    LANE = 22,
    BAR = 14,
    HEAD = 70,
    LEGEND_LINE = 16,
    TICKS = 10,
};

static const struct {
    const char *color, *name;
} looks[] = {
    [RECORDING_NOTHING] = {"none", ""},
    [RECORDING_CONNECTED] = {"#b7dfb0", "connected"},
    [RECORDING_SUSPENDED] = {"#f6d36b", "suspended"},
    [RECORDING_NO_SESSION] = {"#dddddd", "no session"},
    [RECORDING_PAUSED] = {"#9d8ec7", "paused"},
    [RECORDING_DOWN] = {"#777777", "down"},
    [RECORDING_VALID] = {"#2f6fb0", "holds"},
    [RECORDING_BELIEVED] = {"#a9c8e8", "holds, and is told that it is over"},
    [RECORDING_SERVES] = {"#cfe8e4", "serves"},
    [RECORDING_LEADS] = {"#5fb3a6", "leads"},
    [RECORDING_CUT] = {"#f0a35e", "cut off from its leader"},
    [RECORDING_DEPOSED] = {"#d9623b", "on a deposed leader's side"},
};

struct picture {
    const struct recording *r;
    FILE *out;
    int64_t begin;
};

static double x_of(const struct picture *p, int64_t at)
{
    int64_t length = p->r->end - p->begin;
    at = at < p->begin ? p->begin : at > p->r->end ? p->r->end : at;
    return MARGIN + (double)(at - p->begin) * WIDTH / (double)(length > 0 ? length : 1);
}

static int y_of(unsigned lane)
{
    return HEAD + (int)lane * LANE;
}

static void put_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        default:
            fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
        }
    }
}

static void draw_text(const struct picture *p, double x, int y, const char *look, const char *text)
{
    fprintf(p->out, "<text x=\"%.1f\" y=\"%d\" %s>", x, y, look);
    put_text(p->out, text);
    fputs("</text>\n", p->out);
}

static void draw_title(const struct picture *p)
{
    char line[128];
    snprintf(line, sizeof line, "seed %" PRIu64 ": %s", p->r->seed,
             p->r->broken ? p->r->broken : "nothing breaks");
    draw_text(p, 10, 18, "font-weight=\"bold\"", line);
    draw_text(p, 10, 34, "fill=\"#b00020\"", p->r->broken ? p->r->why : "");
    draw_text(p, 10, 50, "fill=\"#555555\"", p->r->settings);
}

static void draw_axis(const struct picture *p)
{
    int bottom = y_of(p->r->nlanes);
    for (int i = 0; i <= TICKS; i++) {
        char label[32];
        int64_t at = p->begin + (p->r->end - p->begin) * i / TICKS;
        snprintf(label, sizeof label, "%.2f s", (double)(at - p->r->end) / (double)SECOND);
        fprintf(p->out, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#eeeeee\"/>\n",
                x_of(p, at), HEAD, x_of(p, at), bottom);
        draw_text(p, x_of(p, at), bottom + 12, "text-anchor=\"middle\" fill=\"#555555\"", label);
    }
}

static void draw_span(const struct picture *p, const struct recording_span *s)
{
    double x = x_of(p, s->from), width = x_of(p, s->to) - x;
    if (s->to <= p->begin)
        return;
    fprintf(p->out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"><title>", x,
            y_of(s->lane), width > 0.8 ? width : 0.8, BAR, looks[s->kind].color);
    put_text(p->out, looks[s->kind].name);
    fprintf(p->out, " %s, %.3f s to %.3f s</title></rect>\n", s->label,
            (double)(s->from - p->r->end) / (double)SECOND,
            (double)(s->to - p->r->end) / (double)SECOND);
    if (s->label[0] != '\0' && width > 60)
        draw_text(p, x + 3, y_of(s->lane) + BAR - 3,
                  s->kind == RECORDING_VALID ? "fill=\"#ffffff\"" : "fill=\"#333333\"", s->label);
}

static void draw_loss(const struct picture *p, const struct recording_loss *l)
{
    double x = x_of(p, l->at);
    int y = y_of(l->lane) + BAR / 2;
    if (l->at < p->begin)
        return;
    fprintf(p->out,
            "<path d=\"M %.1f %d l 8 8 m 0 -8 l -8 8\" stroke=\"#b00020\" stroke-width=\"1.5\" "
            "fill=\"none\"><title>bytes that never arrived</title></path>\n",
            x - 4, y - 4);
}

/* Numbers at the top; the legend says what they are. */
static void draw_faults(const struct picture *p)
{
    int bottom = y_of(p->r->nlanes), n = 0;
    for (size_t i = 0; i < p->r->nplanned; i++) {
        const struct recording_fault *s = &p->r->planned[i];
        char number[16], text[128];
        if (!s->happened || s->at < p->begin)
            continue;
        n++;
        snprintf(number, sizeof number, "%d", n);
        snprintf(text, sizeof text, "%d  %.3f s  %s", n,
                 (double)(s->at - p->r->end) / (double)SECOND, s->name);
        fprintf(p->out,
                "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#b00020\" "
                "stroke-dasharray=\"3 3\"/>\n",
                x_of(p, s->at), HEAD - 6, x_of(p, s->at), bottom);
        draw_text(p, x_of(p, s->at), HEAD - 8, "text-anchor=\"middle\" fill=\"#b00020\"", number);
        draw_text(p, MARGIN, bottom + 20 + n * LEGEND_LINE, "fill=\"#b00020\"", text);
    }
}

static void draw_legend(const struct picture *p)
{
    int y = y_of(p->r->nlanes) + 36;
    for (size_t i = RECORDING_CONNECTED; i < sizeof looks / sizeof *looks; i++, y += LEGEND_LINE) {
        fprintf(p->out, "<rect x=\"%d\" y=\"%d\" width=\"18\" height=\"10\" fill=\"%s\"/>\n",
                MARGIN + WIDTH / 2, y - 9, looks[i].color);
        draw_text(p, MARGIN + WIDTH / 2 + 24, y, "fill=\"#333333\"", looks[i].name);
    }
}

static size_t count_struck(const struct recording *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->nplanned; i++)
        n += r->planned[i].happened;
    return n;
}

bool timeline_svg(const struct recording *r, FILE *out)
{
    struct picture p = {r, out, recording_begin(r)};
    size_t kinds = sizeof looks / sizeof *looks, faults = count_struck(r);
    int height = y_of(r->nlanes) + 50 + (int)(faults > kinds ? faults : kinds) * LEGEND_LINE;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"11\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            MARGIN + WIDTH + 30, height);
    draw_title(&p);
    draw_axis(&p);
    for (unsigned i = 0; i < r->nlanes; i++)
        draw_text(&p, 10, y_of(i) + BAR - 3, "fill=\"#333333\"", r->lanes[i].name);
    for (size_t i = 0; i < r->nspans; i++)
        draw_span(&p, &r->spans[i]);
    for (size_t i = 0; i < r->nlosses; i++)
        draw_loss(&p, &r->losses[i]);
    draw_faults(&p);
    draw_legend(&p);
    fputs("</svg>\n", out);
    return ferror(out) == 0;
}
