/* channel.h - a stream socket on a libuv loop, and the filters between it and its owner.
 *
 *   owner ◀── input ── [filter] ◀── [filter] ◀── socket
 *   owner ─── output ▶ [filter] ──▶ [filter] ──▶ socket
 *
 * Owners are uv_client.c and server_conn.c, filters tls_filter.c and fault_injector.c. Bytes that
 * arrive are passed up. Bytes to send are fetched from above when the socket takes them, and stay
 * in the owner's buffer until then; only what the kernel does not take at once is copied, and
 * nothing more is fetched before that is written. An idle channel has no buffer.
 *
 *          _connect                connected             _opened
 *   CLOSED ───────▶ CONNECTING ──────────────▶ SECURING ────────▶ OPEN
 *     ▲  │               │        ▲                │ │ _linger      │ │ _finish
 *     │  └───────────────┼────────┘                │ └──▶ LINGERING◀┘ │
 *     │  _adopt          ▼                         ▼          ▼       ▼
 *     └─────────────────────────────── CLOSING ◀──────────────────────┘
 *
 * SECURING: connected, but a filter still shakes hands. LINGERING: what is left is sent, what
 * arrives is dropped, and the other side or the owner closes it. However a channel ends, _closing
 * is called once, and later _closed. Everything belongs to the loop's thread. */
#ifndef CLAVE_RUNTIME_CHANNEL_H
#define CLAVE_RUNTIME_CHANNEL_H

#include <stdbool.h>
#include <uv.h>

#include "clave/mem.h"

enum channel_state {
    CHANNEL_CLOSED, /* of zeroed memory */
    CHANNEL_CONNECTING,
    CHANNEL_SECURING,
    CHANNEL_OPEN,
    CHANNEL_LINGERING,
    CHANNEL_CLOSING,
};

struct channel;
struct filter;

/* What a channel calls in its owner. */
struct channel_ops {
    /* The memory for one read, and its return after it, when _input has seen what was read. The
     * memory may be NULL then; _release itself may be NULL. Memory of no bytes: the channel reads
     * no more until _set_reading. */
    uv_buf_t (*buffer)(struct channel *ch);
    void (*release)(struct channel *ch, void *p);
    /* As of a filter, below. None of these closes the channel. */
    bool (*input)(struct channel *ch, const void *p, size_t n);
    size_t (*output)(struct channel *ch, const void **p);
    void (*sent)(struct channel *ch, size_t n);
    bool (*is_done)(struct channel *ch);
    /* It is SECURING, after _connect. May be NULL: _connect is never called. */
    void (*connected)(struct channel *ch);
    /* A read has been passed up, or a write that had to wait is finished: the owner sends what it
     * has (_write), and says whether it reads on. */
    void (*received)(struct channel *ch);
    void (*drained)(struct channel *ch);
    /* A read found that the other side is gone; the owner closes the channel with `why`, soon.
     * NULL: it is closed at once. */
    void (*hung_up)(struct channel *ch, int why);
    /* It was in state `was`. why: libuv's error of the socket, UV_EOF included; 0: of the owner, a
     * filter, or is_done. */
    void (*closing)(struct channel *ch, enum channel_state was, int why);
    /* It can be used again, or freed. */
    void (*closed)(struct channel *ch);
};

/* What a channel calls in a filter, and a filter in what is above it (clave__channel_input ...). */
struct filter_ops {
    /* Bytes from below. false: close the channel. */
    bool (*input)(struct filter *f, const void *p, size_t n);
    /* Bytes for below, valid until the next call; 0: none for now. */
    size_t (*output)(struct filter *f, const void **p);
    /* The first n of them have been taken. */
    void (*sent)(struct filter *f, size_t n);
    /* true: close the channel, after all output. */
    bool (*is_done)(struct filter *f);
    /* The last bytes, sent if the socket takes them at once; may be NULL. */
    size_t (*farewell)(struct filter *f, const void **p);
    void (*free)(struct filter *f);
};

struct filter {
    const struct filter_ops *ops;
    struct channel *channel;
    struct filter *above; /* NULL: the owner */
};

struct channel {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } socket;
    const struct channel_ops *ops;
    const struct clave_mem *mem;
    struct filter *filter; /* next to the socket; NULL: none */
    enum channel_state state;
    bool reading;
    bool writing;        /* the kernel has not taken everything yet */
    unsigned full_reads; /* in a row: there may be more */
    size_t thrown_away;  /* bytes that came in CHANNEL_LINGERING */
};

/* The channel is zeroed, and part of its owner. `mem` outlives it. */
void clave__channel_init(struct channel *ch, const struct channel_ops *ops,
                         const struct clave_mem *mem);

/* These open a CLOSED channel: by connecting, TCP or Unix; or from a connected socket, which they
 * take in any case. An error of libuv: it is still CLOSED. 0: it is CONNECTING or SECURING, or
 * CLOSING, and _closing has been called with the reason. */
int clave__channel_connect(struct channel *ch, uv_loop_t *loop, const struct sockaddr *addr);
int clave__channel_adopt(struct channel *ch, uv_loop_t *loop, int fd, bool is_tcp);

/* Puts a filter next to the owner, before anything has been passed up. The channel frees it. */
void clave__channel_add_filter(struct channel *ch, struct filter *f, const struct filter_ops *ops);

/* From SECURING. The filter that shakes hands calls them, or without one the owner. */
void clave__channel_opened(struct channel *ch);
void clave__channel_linger(struct channel *ch);

/* The socket is connected: reading and writing are allowed. */
static inline bool clave__channel_is_live(const struct channel *ch)
{
    return ch->state >= CHANNEL_SECURING && ch->state <= CHANNEL_LINGERING;
}

/* From OPEN or LINGERING: the filters say farewell, nothing more is sent, and what arrives is
 * dropped. The other side can read what it was told; a socket that is closed with unread bytes
 * would not let it. */
void clave__channel_finish(struct channel *ch);
/* How many bytes the kernel has that the other side's has not taken, or of a Unix socket the other
 * side. Only while it is live. */
size_t clave__channel_unsent(const struct channel *ch);

/* Only while it is live. */
void clave__channel_set_reading(struct channel *ch, bool wanted);
/* Sends one piece, or closes the channel if that fails or it is done. true: there may be more to
 * send now. */
bool clave__channel_write(struct channel *ch);
/* why: as of _closing. Ignored if it is CLOSED or CLOSING. */
void clave__channel_close(struct channel *ch, int why);

/* What is below `f`, the owner if that is NULL, calls these. */
static inline bool clave__channel_input(struct channel *ch, struct filter *f, const void *p,
                                        size_t n)
{
    return f ? f->ops->input(f, p, n) : ch->ops->input(ch, p, n);
}

static inline size_t clave__channel_output(struct channel *ch, struct filter *f, const void **p)
{
    return f ? f->ops->output(f, p) : ch->ops->output(ch, p);
}

static inline void clave__channel_sent(struct channel *ch, struct filter *f, size_t n)
{
    if (f)
        f->ops->sent(f, n);
    else
        ch->ops->sent(ch, n);
}

static inline bool clave__channel_is_done(struct channel *ch, struct filter *f)
{
    return f ? f->ops->is_done(f) : ch->ops->is_done(ch);
}

#endif
