/* snapshot_save.c - the pieces of a snapshot (snapshot_save.h); the driver asks for one after the
 * other. snapshot_copy_on_write.c adds to them what is about to change. */
#include <assert.h>

#include "base/memory.h"
#include "server/server_internal.h"
#include "server/store/adler32.h"
#include "server/store/snapshot_copy_on_write.h"
#include "server/store/snapshot_record.h"

enum { DIGEST_VERSION = 2 };

/* A piece ends after server_options.snapshot_piece elements, or as many bytes as if each had so
 * many: both are about a millisecond's work. */
enum { ELEMENT_BYTES = 256 };
/* As much may be written ahead before the log waits. */
enum { PIECES_AHEAD = 8 };

static size_t save_piece_bytes(const struct server *s)
{
    return (size_t)s->limits.snapshot_piece * ELEMENT_BYTES;
}

/* One piece of the file under way. */
struct save_piece {
    struct jwriter w;
    size_t items;  /* that may still be looked at */
    size_t end;    /* bytes in the buffer at which the piece is large enough */
    size_t summed; /* bytes in the buffer that are in the sum */
    bool waits;    /* for the log, before the end */
};

static void save_sum(struct snapshot_save *v, struct save_piece *p)
{
    size_t n = clave__buf_len(p->w.b) - p->summed;
    v->sum = clave__checksum(v->sum, clave__buf_bytes(p->w.b) + p->summed, n);
    p->summed += n;
}

/* The checksum of the file so far. */
static void save_put_seal(struct snapshot_save *v, struct save_piece *p)
{
    save_sum(v, p);
    clave__jput_long(&p->w, v->sum);
    clave__jput_str(&p->w, "/");
}

static void save_put_end(struct snapshot_save *v, struct save_piece *p)
{
    clave__jput_str(&p->w, "/");
    save_put_seal(v, p);
    clave__jput_long(&p->w, v->zxid);
    clave__jput_int(&p->w, DIGEST_VERSION);
    clave__jput_long(&p->w, (int64_t)v->digest);
    save_put_seal(v, p);
    clave__jput_long(&p->w, v->zxid);
    save_put_seal(v, p);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static bool save_piece_has_room(const struct save_piece *p)
{
    return p->items > 0 && clave__buf_len(p->w.b) < p->end;
}

/* What was written ahead of the phase, and during it: as much as the piece has room for. true: all
 * of it. Until then nothing else may follow, since a node's parent may be in the rest. */
static bool save_take_ahead(struct snapshot_save *v, struct save_piece *p)
{
    assert(v->phase != SAVE_IDLE && v->phase != SAVE_END);
    struct buf *ahead = &v->ahead[v->phase];
    size_t n = clave__buf_len(ahead), used = clave__buf_len(p->w.b);
    size_t room = used < p->end ? p->end - used : 0;
    if (p->w.err == CLAVE_OK && n > room)
        n = room;
    if (p->w.err == CLAVE_OK)
        p->w.err = clave__buf_append(p->w.b, clave__buf_bytes(ahead), n);
    clave__buf_consume(ahead, n);
    return clave__buf_len(ahead) == 0;
}

/* Each of these returns true when its phase is over. */

static bool save_sessions(struct server *s, struct save_piece *p)
{
    struct list *unsaved = &s->snapshot.save.sessions;
    for (; !list_empty(unsaved) && save_piece_has_room(p); p->items--) {
        struct list *at = list_pop_front(unsaved);
        struct session *session = LIST_ENTRY(at, struct session, in_all);
        clave__snapshot_put_session(&p->w, session);
        session->saved = s->sessions.saved;
        list_push_back(&s->sessions.all, at);
    }
    return list_empty(unsaved);
}

static bool save_lists(struct server *s, struct save_piece *p)
{
    struct acls *acls = &s->tree.acls;
    struct list *unsaved = &s->snapshot.save.lists;
    for (; !list_empty(unsaved) && save_piece_has_room(p); p->items--) {
        struct list *at = list_pop_front(unsaved);
        struct acl *list = LIST_ENTRY(at, struct acl, in_all);
        clave__snapshot_put_list(&p->w, list);
        list->saved = acls->saved;
        list_push_back(&acls->all, at);
    }
    return list_empty(unsaved);
}

static bool save_nodes(struct server *s, struct save_piece *p)
{
    struct snapshot_save *v = &s->snapshot.save;
    for (; v->next && save_piece_has_room(p); p->items--) {
        struct node *n = v->next;
        if (n->saved != s->tree.saved)
            clave__snapshot_put_node(&p->w, n);
        n->saved = s->tree.saved;
        v->next = clave__tree_next(n, s->tree.root);
    }
    return !v->next;
}

/* The end says that the file is whole, and a server that finds it loads it instead of the log: so
 * the log has to be on the disk up to there. */
static bool save_end(struct server *s, struct save_piece *p)
{
    struct snapshot_save *v = &s->snapshot.save;
    assert(list_empty(&v->sessions) && list_empty(&v->lists) && !v->next);
    if (p->waits && v->err == CLAVE_OK && s->txn_log.durable_zxid < v->zxid)
        return false;
    save_put_end(v, p);
    return true;
}

static bool save_phase_is_over(struct server *s, struct save_piece *p)
{
    static bool (*const work[])(struct server *, struct save_piece *) = {
        [SAVE_SESSIONS] = save_sessions,
        [SAVE_LISTS] = save_lists,
        [SAVE_NODES] = save_nodes,
        [SAVE_END] = save_end,
    };
    return work[s->snapshot.save.phase](s, p);
}

/* Every element counts as unsaved, without a visit. */
static void save_begin(struct server *s)
{
    assert(s->txn.count == 0); /* a change that is undone must not be in it */
    struct snapshot_save *v = &s->snapshot.save;
    struct jwriter w = clave__jwriter(&v->ahead[SAVE_SESSIONS]);
    struct jwriter lists = clave__jwriter(&v->ahead[SAVE_LISTS]);
    clave__snapshot_put_header(&w);
    clave__snapshot_put_session_count(&w, &s->sessions);
    clave__jput_int(&lists, (int32_t)s->tree.acls.lists.count);
    v->err = w.err != CLAVE_OK ? w.err : lists.err;
    v->sum = CHECKSUM_START;
    v->zxid = s->last_zxid;
    v->digest = s->tree.digest;
    list_splice(&v->sessions, &s->sessions.all);
    list_splice(&v->lists, &s->tree.acls.all);
    v->next = s->tree.root;
    s->sessions.saved = !s->sessions.saved;
    s->tree.acls.saved = !s->tree.acls.saved;
    s->tree.saved = !s->tree.saved;
    v->phase = SAVE_SESSIONS;
    clave__snapshot_copy_on_write(s, true);
}

static clave_err save_step(struct server *s, struct buf *out, bool waits, bool *done)
{
    struct snapshot_save *v = &s->snapshot.save;
    size_t begin = clave__buf_len(out);
    struct save_piece p = {clave__snapshot_writer(v, out), (size_t)s->limits.snapshot_piece,
                           begin + save_piece_bytes(s), begin, waits};
    for (; v->phase != SAVE_IDLE; v->phase = v->phase == SAVE_END ? SAVE_IDLE : v->phase + 1) {
        bool taken = v->phase == SAVE_END || save_take_ahead(v, &p);
        if (!taken || !save_phase_is_over(s, &p))
            break;
    }
    *done = v->phase == SAVE_IDLE;
    v->err = p.w.err;
    save_sum(v, &p);
    for (size_t i = 0; *done && i < SAVE_END; i++)
        clave__buf_trim(&v->ahead[i], 0);
    if (*done)
        clave__snapshot_copy_on_write(s, false);
    return *done ? v->err : CLAVE_OK;
}

/* ---- what the driver calls (server.h) -------------------------------------------------------- */

int64_t clave__server_snapshot_begin(struct server *s)
{
    assert(s->snapshot.save.phase == SAVE_IDLE);
    save_begin(s);
    clave__snapshot_schedule(s);
    return s->snapshot.save.zxid;
}

clave_err clave__server_snapshot_step(struct server *s, struct buf *out, bool *done)
{
    assert(s->snapshot.save.phase != SAVE_IDLE);
    return save_step(s, out, true, done);
}

clave_err clave__server_save_snapshot(struct server *s, struct buf *out, int64_t *zxid)
{
    size_t begin = clave__buf_len(out);
    clave_err err = CLAVE_OK;
    *zxid = clave__server_snapshot_begin(s);
    for (bool done = false; !done;)
        err = save_step(s, out, false, &done);
    if (err != CLAVE_OK)
        out->tail -= clave__buf_len(out) - begin;
    return err;
}

bool clave__server_log_waits(const struct server *s)
{
    const struct snapshot_save *v = &s->snapshot.save;
    size_t ahead = 0;
    for (size_t i = 0; i < SAVE_END; i++)
        ahead += clave__buf_len(&v->ahead[i]);
    return v->err == CLAVE_OK && ahead >= PIECES_AHEAD * save_piece_bytes(s);
}

/* ---- life ------------------------------------------------------------------------------------ */

void clave__snapshot_save_init(struct server *s)
{
    list_init(&s->snapshot.save.sessions);
    list_init(&s->snapshot.save.lists);
    for (size_t i = 0; i < SAVE_END; i++)
        clave__buf_init(&s->snapshot.save.ahead[i], &s->mem, SIZE_MAX / 2);
}

void clave__snapshot_save_fini(struct server *s)
{
    clave__snapshot_copy_on_write(s, false);
    for (size_t i = 0; i < SAVE_END; i++)
        clave__buf_fini(&s->snapshot.save.ahead[i]);
}
