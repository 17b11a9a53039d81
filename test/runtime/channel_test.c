/* channel_test.c - two channels on the ends of one socket, with a filter on each: the order of
 * bytes, back-pressure, the states, and that closing is reported once. */
#include "rig.h"

#include <sys/socket.h>

#include "base/list.h"
#include "base/memory.h"
#include "lib/failmem.h"
#include "runtime/channel.h"

enum { TOTAL = 2 * 1000 * 1000, PIECE = 300 * 1000 };

/* Turns every byte over, through a buffer of its own. */
struct inverter {
    struct filter filter;
    uint8_t bytes[4096];
    size_t n, at;
};

struct end {
    struct channel channel;
    struct inverter inverter;
    uint8_t input[8192], output[PIECE];
    size_t to_send, sent, got; /* byte i of what is sent is i % 251 */
    size_t output_len;         /* in `output`, of which output_at has been sent */
    size_t output_at;
    bool ends_after; /* is_done, when all is sent */
    unsigned wrong, drained, closings, closeds, frees;
    enum channel_state was;
    int why;
};

static struct end *end_of(struct channel *ch)
{
    return LIST_ENTRY(ch, struct end, channel);
}

/* ---- the owner ---------------------------------------------------------------------------- */

static uv_buf_t end_buffer(struct channel *ch)
{
    return uv_buf_init((char *)end_of(ch)->input, sizeof end_of(ch)->input);
}

static bool end_input(struct channel *ch, const void *p, size_t n)
{
    struct end *e = end_of(ch);
    const uint8_t *bytes = p;
    for (size_t i = 0; i < n; i++, e->got++)
        e->wrong += bytes[i] != e->got % 251;
    return true;
}

static size_t end_output(struct channel *ch, const void **p)
{
    struct end *e = end_of(ch);
    if (e->output_at == e->output_len) {
        size_t left = e->to_send - e->sent;
        e->output_at = 0;
        e->output_len = left < PIECE ? left : PIECE;
        for (size_t i = 0; i < e->output_len; i++)
            e->output[i] = (uint8_t)((e->sent + i) % 251);
    }
    *p = e->output + e->output_at;
    return e->output_len - e->output_at;
}

static void end_sent(struct channel *ch, size_t n)
{
    end_of(ch)->output_at += n;
    end_of(ch)->sent += n;
}

static bool end_is_done(struct channel *ch)
{
    return end_of(ch)->ends_after && end_of(ch)->sent == end_of(ch)->to_send;
}

static void end_write(struct channel *ch)
{
    while (clave__channel_write(ch))
        continue;
}

static void end_drained(struct channel *ch)
{
    end_of(ch)->drained++;
    end_write(ch);
}

static void end_closing(struct channel *ch, enum channel_state was, int why)
{
    struct end *e = end_of(ch);
    e->closings++;
    e->was = was;
    e->why = why;
}

static void end_closed(struct channel *ch)
{
    end_of(ch)->closeds++;
    assert_int_equal(ch->state, CHANNEL_CLOSED);
}

static const struct channel_ops end_ops = {
    .buffer = end_buffer,
    .input = end_input,
    .output = end_output,
    .sent = end_sent,
    .is_done = end_is_done,
    .received = end_write,
    .drained = end_drained,
    .closing = end_closing,
    .closed = end_closed,
};

/* ---- the filter --------------------------------------------------------------------------- */

static struct inverter *inverter_of(struct filter *f)
{
    return LIST_ENTRY(f, struct inverter, filter);
}

static bool inverter_input(struct filter *f, const void *p, size_t n)
{
    uint8_t bytes[sizeof((struct end *)0)->input];
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t) ~((const uint8_t *)p)[i];
    return clave__channel_input(f->channel, f->above, bytes, n);
}

static size_t inverter_output(struct filter *f, const void **p)
{
    struct inverter *v = inverter_of(f);
    const void *above;
    if (v->at == v->n) {
        size_t n = clave__channel_output(f->channel, f->above, &above);
        v->at = 0;
        v->n = n < sizeof v->bytes ? n : sizeof v->bytes;
        for (size_t i = 0; i < v->n; i++)
            v->bytes[i] = (uint8_t) ~((const uint8_t *)above)[i];
        if (v->n > 0)
            clave__channel_sent(f->channel, f->above, v->n);
    }
    *p = v->bytes + v->at;
    return v->n - v->at;
}

static void inverter_sent(struct filter *f, size_t n)
{
    inverter_of(f)->at += n;
}

static bool inverter_is_done(struct filter *f)
{
    return clave__channel_is_done(f->channel, f->above);
}

static void inverter_free(struct filter *f)
{
    end_of(f->channel)->frees++;
}

static const struct filter_ops inverter_ops = {
    .input = inverter_input,
    .output = inverter_output,
    .sent = inverter_sent,
    .is_done = inverter_is_done,
    .free = inverter_free,
};

/* ---- tests -------------------------------------------------------------------------------- */

struct pair {
    uv_loop_t loop;
    struct failmem mem;
    struct end *ends[2];
};

static void open_pair(struct pair *p)
{
    int fds[2];
    failmem_init(&p->mem);
    assert_int_equal(uv_loop_init(&p->loop), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    for (int i = 0; i < 2; i++) {
        p->ends[i] = calloc(1, sizeof *p->ends[i]);
        struct channel *ch = &p->ends[i]->channel;
        clave__channel_init(ch, &end_ops, &p->mem.mem);
        assert_int_equal(clave__channel_adopt(ch, &p->loop, fds[i], false), 0);
        assert_int_equal(ch->state, CHANNEL_SECURING);
        clave__channel_add_filter(ch, &p->ends[i]->inverter.filter, &inverter_ops);
    }
}

static void close_pair(struct pair *p)
{
    for (int i = 0; i < 2; i++)
        clave__channel_close(&p->ends[i]->channel, 0);
    uv_run(&p->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&p->loop), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(p->ends[i]->closings, 1);
        assert_int_equal(p->ends[i]->closeds, 1);
        assert_int_equal(p->ends[i]->frees, 1);
        free(p->ends[i]);
    }
    assert_int_equal(p->mem.live, 0);
}

static void open_end(struct end *e)
{
    clave__channel_opened(&e->channel);
    clave__channel_set_reading(&e->channel, true);
}

/* The reader starts late: the writer has to wait for the socket, and fetches nothing meanwhile. */
TEST(bytes_keep_their_order)
{
    CLOSED_BY(close_pair) struct pair p;
    open_pair(&p);
    struct end *from = p.ends[0], *to = p.ends[1];
    from->to_send = TOTAL;
    from->ends_after = true;
    open_end(from);
    end_write(&from->channel);
    assert_true(from->channel.writing);
    size_t sent = from->sent;
    assert_false(clave__channel_write(&from->channel));
    assert_int_equal(from->sent, sent);
    open_end(to);
    uv_run(&p.loop, UV_RUN_DEFAULT);
    assert_int_equal(to->got, TOTAL);
    assert_int_equal(to->wrong, 0);
    assert_true(from->drained > 0);
    assert_int_equal(from->was, CHANNEL_OPEN);
    assert_int_equal(from->why, 0); /* it was done */
    assert_int_equal(to->why, UV_EOF);
}

TEST(what_a_lingering_channel_gets_is_dropped)
{
    CLOSED_BY(close_pair) struct pair p;
    open_pair(&p);
    p.ends[0]->to_send = p.ends[1]->to_send = 1000;
    p.ends[0]->ends_after = true;
    open_end(p.ends[0]);
    clave__channel_linger(&p.ends[1]->channel);
    clave__channel_set_reading(&p.ends[1]->channel, true);
    end_write(&p.ends[1]->channel);
    end_write(&p.ends[0]->channel);
    uv_run(&p.loop, UV_RUN_DEFAULT);
    assert_int_equal(p.ends[1]->sent, 1000);
    assert_int_equal(p.ends[1]->got, 0);
    assert_int_equal(p.ends[1]->was, CHANNEL_LINGERING);
}

/* Without memory for what has to wait the connection is lost. */
TEST(without_memory_it_closes)
{
    CLOSED_BY(close_pair) struct pair p;
    open_pair(&p);
    p.ends[0]->to_send = TOTAL;
    open_end(p.ends[0]);
    failmem_arm(&p.mem, 1, 1);
    end_write(&p.ends[0]->channel);
    assert_int_equal(p.ends[0]->channel.state, CHANNEL_CLOSING);
    assert_int_equal(p.ends[0]->why, UV_ENOMEM);
    assert_false(clave__channel_write(&p.ends[0]->channel));
}
