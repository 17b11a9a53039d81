#include "lib/candidate.h"
#include "lib/async_grants.h"

#include <stdio.h>
#include <string.h>

static void note(struct candidate *s, char letter)
{
    size_t n = strlen(s->news);
    if (n + 1 < sizeof s->news)
        s->news[n] = letter;
}

static void on_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    struct candidate *s = arg;
    (void)l;
    s->why = ev->why;
    switch (ev->kind) {
    case CLAVE_LATCH_QUEUED:
        s->queued++;
        s->ahead = ev->ahead;
        note(s, 'q');
        break;
    case CLAVE_LATCH_NEXT:
        s->next++;
        note(s, 'x');
        break;
    case CLAVE_LATCH_LEADER:
        s->leader++;
        note(s, 'L');
        break;
    case CLAVE_LATCH_NOT_LEADER:
        s->not_leader++;
        note(s, 'n');
        break;
    case CLAVE_LATCH_ASKED:
        s->asked++;
        note(s, 'a');
        break;
    case CLAVE_LATCH_FAILED:
        s->failed++;
        note(s, 'f');
        break;
    }
}

static clave_latch_options candidate_options(struct candidate *s, const clave_latch_options *o)
{
    clave_latch_options mine = {.size = sizeof mine};
    if (o)
        mine = *o;
    mine.event_cb = on_event;
    mine.event_arg = s;
    return mine;
}

clave_err candidate_open(struct candidate *s, struct memnet *p, size_t client, const char *path,
                         const clave_latch_options *o)
{
    clave_latch_options mine = candidate_options(s, o);
    *s = (struct candidate){.p = p, .client = client};
    return clave_async_latch_new(&s->l, p->clients[client].c, path, &mine);
}

clave_err candidate_open_plain(struct candidate *s, struct memnet *p, size_t client,
                               const char *path, const char *prefix, const clave_latch_options *o)
{
    clave_latch_options mine = candidate_options(s, o);
    *s = (struct candidate){.p = p, .client = client};
    mine.layout = prefix ? CLAVE_LATCH_FAIR : CLAVE_LATCH_UNFAIR;
    mine.prefix = prefix;
    return clave_async_latch_new(&s->l, p->clients[client].c, path, &mine);
}

void candidate_start(struct candidate *s)
{
    s->err = clave_async_latch_start(s->l);
    memnet_settle(s->p);
}

void candidate_enter(struct candidate *s, struct memnet *p, size_t client, const char *path,
                     const clave_latch_options *o)
{
    if (candidate_open(s, p, client, path, o) == CLAVE_OK)
        candidate_start(s);
}

void candidate_close(struct candidate *s)
{
    clave_async_latch_free(s->l);
    s->l = NULL;
    memnet_settle(s->p);
}

void candidate_resign(struct candidate *s)
{
    s->err = clave_async_latch_resign(s->l);
    memnet_settle(s->p);
}

static void on_answer(clave_async_latch *l, clave_err err, void *arg)
{
    struct candidate *s = arg;
    (void)l;
    s->answers++;
    s->err = err;
}

void candidate_await(struct candidate *s, int64_t within_ms)
{
    int64_t deadline = within_ms < 0 ? CLAVE_NEVER : s->p->now + within_ms;
    clave_err err = clave_async_latch_await(s->l, deadline, on_answer, s);
    if (err != CLAVE_OK)
        s->err = err;
    memnet_settle(s->p);
}

static void on_left(clave_async_latch *l, clave_err err, void *arg)
{
    struct candidate *s = arg;
    (void)l;
    s->departures++;
    s->left = err;
}

void candidate_leave(struct candidate *s, clave_latch_close_mode mode)
{
    s->err = clave_async_latch_close(s->l, mode, on_left, s);
    memnet_settle(s->p);
}

static void on_written(clave_async_client *c, const clave_result *res, void *arg)
{
    struct candidate *s = arg;
    (void)c;
    s->writes++;
    s->written = res->err;
}

clave_err candidate_write(struct candidate *s, const char *path, const char *text)
{
    clave_err err = guarded_set(of_latch(s->l), path, text, strlen(text), -1, on_written, s);
    memnet_settle(s->p);
    return err;
}

bool candidate_leads(const struct candidate *s)
{
    return clave_async_latch_has_leadership(s->l, s->p->now);
}

struct grant_facts candidate_grant(const struct candidate *s)
{
    struct grant_facts g = {0};
    (void)clave__latch_held(s->l, &g);
    return g;
}

bool candidate_was_told(struct candidate *s, const char *news)
{
    bool same = strcmp(s->news, news) == 0;
    if (!same)
        fprintf(stderr, "heard \"%s\" instead of \"%s\"\n", s->news, news);
    memset(s->news, 0, sizeof s->news);
    return same;
}

size_t candidate_count_leaders(const struct candidate *s, size_t n)
{
    size_t leaders = 0;
    for (size_t i = 0; i < n; i++)
        leaders += s[i].l && candidate_leads(&s[i]);
    return leaders;
}
