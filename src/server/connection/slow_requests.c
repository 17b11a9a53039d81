/* slow_requests.c - see conn.h; request.c notes requests, conn_output.c releases them. The
 * engine has no clock of its own: how long a turn took, it learns at the end of it. So while
 * slow_ms is set, and only then, it keeps what a line needs: of each request whose reply waits, and
 * of the others in a turn the few that waited longest or made most work. */
#include "server/connection/conn.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/log_line.h"
#include "base/memory.h"
#include "wire/opcode.h"

enum { PATH_CAP = 120, LINES_A_SECOND = 10, SECOND_MS = 1000 };

struct slow_what {
    int64_t since; /* when it began to wait to be read, as far as is known */
    int64_t read;  /* when the turn began that has read it */
    int32_t op;
    int32_t path_len;
    size_t bytes;
    int64_t session;
};

/* One whose reply waits for the disk. */
struct slow_request {
    struct list link;
    uint64_t end; /* of its reply, as in struct mark */
    struct slow_what what;
    char path[];
};

/* One whose reply waits for the end of the turn only. */
struct slow_in_turn {
    struct slow_what what;
    uint64_t work;
    char path[PATH_CAP];
};

struct slow_turn {
    size_t noted; /* requests */
    size_t late;  /* of these, those that were slow before they were read */
    size_t n;
    size_t least; /* which of the n comes last */
    struct slow_in_turn most[LINES_A_SECOND];
};

/* ---- noting ---------------------------------------------------------------------------------- */

/* The path is the first thing in the body of every request that has one. */
static struct jbytes slow_path(const struct server_conn *c, const void *frame, size_t n)
{
    enum { HEADER = 8 };
    assert(n >= HEADER);
    struct jreader r = clave__jreader((const uint8_t *)frame + HEADER, n - HEADER);
    struct jbytes path = clave__jget_bytes(&r);
    bool is_path = !r.bad && path.n > 0 && *path.p == '/' && c->last_op != OP_SASL;
    if (!is_path)
        return (struct jbytes){"", 0};
    path.n = path.n < PATH_CAP ? path.n : PATH_CAP;
    return path;
}

static void slow_copy_path(char *to, struct jbytes path)
{
    for (int32_t i = 0; i < path.n; i++)
        to[i] = (unsigned char)path.p[i] < ' ' ? '?' : path.p[i];
}

static void slow_note_waiting(struct server_conn *c, const struct slow_what *what,
                              struct jbytes path)
{
    struct slow_request *q = clave__mem_alloc(&c->s->mem, sizeof *q + (size_t)path.n);
    if (!q)
        return;
    q->end = c->written;
    q->what = *what;
    slow_copy_path(q->path, path);
    list_push_back(&c->slow, &q->link);
}

/* What has waited longer to be read comes first, then what made more work: that is why the others
 * of its turn have waited. */
static bool slow_comes_before(const struct slow_what *a, uint64_t work,
                              const struct slow_in_turn *b)
{
    int64_t late_a = a->read - a->since, late_b = b->what.read - b->what.since;
    return late_a != late_b ? late_a > late_b : work > b->work;
}

static void slow_find_least(struct slow_turn *t)
{
    t->least = 0;
    for (size_t i = 1; i < t->n; i++)
        if (slow_comes_before(&t->most[t->least].what, t->most[t->least].work, &t->most[i]))
            t->least = i;
}

static void slow_note_in_turn(struct server *s, const struct slow_what *what, struct jbytes path,
                              uint64_t work)
{
    struct slow_turn *t = s->slow.turn;
    assert(t->n <= LINES_A_SECOND && path.n <= PATH_CAP);
    t->noted++;
    t->late += what->read - what->since >= s->limits.slow_ms;
    if (t->n == LINES_A_SECOND && !slow_comes_before(what, work, &t->most[t->least]))
        return;
    struct slow_in_turn *q = &t->most[t->n < LINES_A_SECOND ? t->n++ : t->least];
    q->what = *what;
    q->work = work;
    slow_copy_path(q->path, path);
    slow_find_least(t);
}

void clave__slow_requests_note(struct server_conn *c, uint64_t work, const void *frame, size_t n)
{
    struct server *s = c->s;
    if (!s->slow.turn)
        s->slow.turn = clave__mem_zalloc(&s->mem, sizeof *s->slow.turn);
    if (c->last_op == OP_PING || !s->slow.turn)
        return; /* without memory a line is lost, no request */
    struct jbytes path = slow_path(c, frame, n);
    int64_t since = c->unread_since < s->turn.input_since ? c->unread_since : s->turn.input_since;
    struct slow_what what = {.since = since,
                             .read = s->now,
                             .op = c->last_op,
                             .path_len = path.n,
                             .bytes = n,
                             .session = c->told_id};
    if (c->releasable == c->written)
        slow_note_in_turn(s, &what, path, s->counts.bytes_written - work + n);
    else
        slow_note_waiting(c, &what, path);
}

/* ---- lines ----------------------------------------------------------------------------------- */

void clave__slow_requests_tell_rest(struct server *s)
{
    if (s->now < s->slow.second + SECOND_MS)
        return;
    if (s->slow.untold > 0)
        clave__log(&s->log, CLAVE_LOG_WARN, "%llu more slow request%s in a second",
                   (unsigned long long)s->slow.untold, clave__plural(s->slow.untold));
    s->slow.second = s->now;
    s->slow.told = 0;
    s->slow.untold = 0;
}

/* `turn` and `disk`: how long it has waited for the end of its turn, and then for the disk. */
static void slow_tell(struct server *s, const struct slow_what *q, const char *path, int64_t turn,
                      int64_t disk)
{
    int64_t unread = q->read - q->since;
    if (s->limits.slow_ms == 0 || unread + turn + disk < s->limits.slow_ms)
        return;
    clave__slow_requests_tell_rest(s);
    if (s->slow.told == LINES_A_SECOND) {
        s->slow.untold++;
        return;
    }
    s->slow.told++;
    const struct session *session = clave__sessions_find(&s->sessions, q->session);
    const char *peer = session && session->conn ? session->conn->peer.text : NULL;
    char text[PATH_CAP + 1];
    snprintf(text, sizeof text, "%.*s", (int)q->path_len, path);
    const struct log_about about = {peer, q->session, q->path_len > 0 ? text : NULL};
    clave__log_about(
        &s->log, CLAVE_LOG_WARN, &about,
        "slow request: %s %.*s took %lld ms (%lld unread, %lld in its turn, %lld for the "
        "disk), %zu bytes, session 0x%llx of %s",
        clave__opcode(q->op)->name, q->path_len > 0 ? (int)q->path_len : 1,
        q->path_len > 0 ? path : "-", (long long)(unread + turn + disk), (long long)unread,
        (long long)turn, (long long)disk, q->bytes, (unsigned long long)q->session,
        peer ? peer : "a client that is gone");
}

/* ---- when it is known ------------------------------------------------------------------------ */

void clave__slow_requests_end_turn(struct server *s, int64_t now)
{
    struct slow_turn *t = s->slow.turn;
    assert(t);
    int64_t turn = now - s->now;
    bool is_slow = s->limits.slow_ms > 0 && turn >= s->limits.slow_ms;
    size_t slow = is_slow ? t->noted : t->late;
    if (is_slow) {
        s->slow.turn_at = s->now;
        s->slow.turn_ms = turn;
    }
    for (size_t left = t->n; left > 0; left--) {
        size_t first = 0;
        for (size_t i = 1; i < left; i++)
            if (slow_comes_before(&t->most[i].what, t->most[i].work, &t->most[first]))
                first = i;
        slow_tell(s, &t->most[first].what, t->most[first].path, turn, 0);
        t->most[first] = t->most[left - 1];
    }
    s->slow.untold += slow > t->n ? slow - t->n : 0;
    t->noted = t->late = t->n = 0;
}

void clave__slow_requests_release(struct server_conn *c)
{
    struct server *s = c->s;
    while (!list_empty(&c->slow)) {
        struct slow_request *q = LIST_ENTRY(c->slow.next, struct slow_request, link);
        if (q->end > c->releasable)
            return;
        int64_t turn = q->what.read == s->slow.turn_at ? s->slow.turn_ms : 0;
        int64_t since_read = s->now - q->what.read;
        turn = turn < since_read ? turn : since_read;
        slow_tell(s, &q->what, q->path, turn, since_read - turn);
        list_remove(&q->link);
        clave__mem_free(&s->mem, q);
    }
}

void clave__slow_requests_drop(struct server_conn *c)
{
    struct list *e;
    while ((e = list_pop_front(&c->slow)))
        clave__mem_free(&c->s->mem, LIST_ENTRY(e, struct slow_request, link));
}
