/* channel.h - a stream socket on a libuv loop, and the filters between it and its owner.
 *
 *   owner ◀── input ── [filter] ◀── [filter] ◀── socket
 *   owner ─── output ▶ [filter] ──▶ [filter] ──▶ socket
 *
 * Owners are uv_client.c, server_loop.c and http_connection.c, filters tls_filter.c and
 * fault_injector.c. Bytes that arrive are passed up. Bytes to send are fetched from above when the
 * socket can take them, and stay in the owner's buffer until then. Only what the kernel does not
 * take at once is copied, and nothing more is fetched until that has been written. An idle channel
 * has no buffer.
 *
 *          _connect                connected             _opened
 *   CLOSED ───────▶ CONNECTING ──────────────▶ SECURING ────────▶ OPEN
 *     ▲  │               │        ▲                │ │ _linger      │ │ _finish
 *     │  └───────────────┼────────┘                │ └──▶ LINGERING◀┘ │
 *     │  _adopt          ▼                         ▼          ▼       ▼
 *     └─────────────────────────────── CLOSING ◀──────────────────────┘
 *
 * SECURING: connected, but a filter is still shaking hands. LINGERING: what is left is sent, what
 * arrives is dropped, and the other side or the owner closes the channel. However a channel ends,
 * _closing is called once, and later _closed. Everything belongs to the loop's thread. */
#ifndef CLAVE_RUNTIME_CHANNEL_H
#define CLAVE_RUNTIME_CHANNEL_H

#include <stdbool.h>
#include <uv.h>

#include "clave/mem.h"

enum channel_state {
    CHANNEL_CLOSED, /* the state of zeroed memory */
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
    /* Returns the memory for one read, which _release gives back when _input has seen what was
     * read. _release may get NULL, and may itself be NULL. Returning no bytes stops reading until
     * _set_reading. */
    uv_buf_t (*buffer)(struct channel *ch);
    void (*release)(struct channel *ch, void *p);
    /* As in a filter, below. None of these may close the channel. */
    bool (*input)(struct channel *ch, const void *p, size_t n);
    size_t (*output)(struct channel *ch, const void **p);
    void (*sent)(struct channel *ch, size_t n);
    bool (*is_done)(struct channel *ch);
    /* The channel is SECURING after _connect. May be NULL if _connect is never used. */
    void (*connected)(struct channel *ch);
    /* A read has been passed up, or a write that had to wait has finished. The owner sends what it
     * has (_write), and says whether to go on reading. */
    void (*received)(struct channel *ch);
    void (*drained)(struct channel *ch);
    /* A read found that the other side is gone. The owner has to close the channel with `why`,
     * soon. NULL: the channel is closed at once. */
    void (*hung_up)(struct channel *ch, int why);
    /* The channel is closing; `was` is its state before. `why` is libuv's error from the socket,
     * including UV_EOF, or 0 if the owner, a filter or is_done closed it. */
    void (*closing)(struct channel *ch, enum channel_state was, int why);
    /* The channel can be used again, or freed. */
    void (*closed)(struct channel *ch);
};

/* What a channel calls in a filter, and a filter calls in what is above it (clave__channel_input
 * ...). */
struct filter_ops {
    /* Takes bytes from below. Return false to close the channel. */
    bool (*input)(struct filter *f, const void *p, size_t n);
    /* The bytes to send, valid until the next call; 0: none at the moment. */
    size_t (*output)(struct filter *f, const void **p);
    /* The first n of them have been taken. */
    void (*sent)(struct filter *f, size_t n);
    /* Return true to close the channel after all output. */
    bool (*is_done)(struct filter *f);
    /* The last bytes, sent only if the socket takes them at once; may be NULL. */
    size_t (*farewell)(struct filter *f, const void **p);
    void (*free)(struct filter *f);
};

struct filter {
    const struct filter_ops *ops;
    struct channel *channel;
    struct filter *above; /* NULL: the owner is */
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
    struct filter *filter; /* the one next to the socket; NULL: none */
    enum channel_state state;
    bool reading;
    bool writing;        /* the kernel has not taken everything yet */
    unsigned full_reads; /* full reads in a row, after which there may be more */
    size_t thrown_away;  /* bytes that arrived in CHANNEL_LINGERING */
};

/* The channel must be zeroed; it is part of its owner. `mem` must outlive it. */
void clave__channel_init(struct channel *ch, const struct channel_ops *ops,
                         const struct clave_mem *mem);

/* These open a CLOSED channel: by connecting, over TCP or a Unix socket, or with a connected
 * socket, which they take over even if they fail. They return libuv's error, and the channel is
 * still CLOSED; or 0, and it is CONNECTING, SECURING or already CLOSING, in which case _closing was
 * called with the reason. */
int clave__channel_connect(struct channel *ch, uv_loop_t *loop, const struct sockaddr *addr);
int clave__channel_adopt(struct channel *ch, uv_loop_t *loop, int fd, bool is_tcp);

/* Adds a filter next to the owner, before anything has been passed up. The channel frees it. */
void clave__channel_add_filter(struct channel *ch, struct filter *f, const struct filter_ops *ops);

/* These leave SECURING. The filter that shakes hands calls them or, if there is none, the owner. */
void clave__channel_opened(struct channel *ch);
void clave__channel_linger(struct channel *ch);

/* True if the socket is connected, so that reading and writing are allowed. */
static inline bool clave__channel_is_live(const struct channel *ch)
{
    return ch->state >= CHANNEL_SECURING && ch->state <= CHANNEL_LINGERING;
}

/* From OPEN or LINGERING: the filters send their farewell, nothing more is sent, and what arrives
 * is dropped. So the other side can read what it was told, which it could not if the socket were
 * closed with unread bytes. */
void clave__channel_finish(struct channel *ch);
/* How many bytes are in the kernel that the other side's kernel (for a Unix socket, the other side)
 * has not taken. Only while the channel is live. */
size_t clave__channel_unsent(const struct channel *ch);

/* Only while the channel is live. */
void clave__channel_set_reading(struct channel *ch, bool wanted);
/* Sends one piece, or closes the channel if that fails or it is done. Returns true if there may be
 * more to send now. */
bool clave__channel_write(struct channel *ch);
/* `why` is as in _closing. Ignored if the channel is CLOSED or CLOSING. */
void clave__channel_close(struct channel *ch, int why);

/* These are called by whatever is below `f`; NULL stands for the owner. */
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
