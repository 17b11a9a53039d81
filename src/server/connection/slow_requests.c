/* slow_requests.c - finds the requests that took longer than slow_ms and logs them; see conn.h.
 * request.c notes each request, conn_output.c reports when replies are released.
 *
 * The engine has no clock of its own, so it learns how long a turn took only when the turn ends.
 * Therefore, while slow_ms is set, it remembers what a log line would need: for each request whose
 * reply waits for the disk, and for the ten most telling of the others in each turn (those that
 * waited longest to be read or, if equal, did the most work). Nothing is kept while slow_ms is
 * 0. */
#include "server/connection/conn.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/log_line.h"
#include "base/memory.h"
#include "wire/opcode.h"

enum { PATH_CAP = 120, LINES_A_SECOND = 10, SECOND_MS = 1000 };

struct slow_info {
    int64_t since; /* when it may have begun to wait to be read */
    int64_t read;  /* when the turn that read it began */
    int32_t op;
    int32_t path_len;
    size_t bytes;
    int64_t session;
};

/* A request whose reply waits for the disk. */
struct slow_request {
    struct list link;
    uint64_t end; /* where its reply ends in the output, as in struct mark */
    struct slow_info what;
    char path[];
};

/* A request whose reply waits only for the end of the turn. */
struct slow_in_turn {
    struct slow_info what;
    uint64_t work;
    char path[PATH_CAP];
};

struct slow_turn {
    size_t noted; /* requests in this turn */
    size_t late;  /* of these, how many were slow before they were even read */
    size_t n;
    size_t least; /* index in `most` of the entry to be replaced next */
    struct slow_in_turn most[LINES_A_SECOND];
};

/* ---- noting ---------------------------------------------------------------------------------- */

/* The path is the first field of every request that has one. */
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

static void slow_note_waiting(struct server_conn *c, const struct slow_info *what,
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

/* Orders requests by how much they explain: those that waited longest to be read first, then those
 * that did the most work, since they are what the rest of the turn waited for. */
static bool slow_comes_before(const struct slow_info *a, uint64_t work,
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

static void slow_note_in_turn(struct server *s, const struct slow_info *what, struct jbytes path,
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
        return; /* without memory we lose a line of the log, never a request */
    struct jbytes path = slow_path(c, frame, n);
    int64_t since = c->unread_since < s->turn.input_since ? c->unread_since : s->turn.input_since;
    struct slow_info what = {.since = since,
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

/* Logs one request, if it was slow. `turn` is how long its reply waited for the end of the turn
 * that read it, `disk` how long it then waited for the disk, both in ms. */
static void slow_tell(struct server *s, const struct slow_info *q, const char *path, int64_t turn,
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

/* ---- when the times are known ---------------------------------------------------------------- */

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
