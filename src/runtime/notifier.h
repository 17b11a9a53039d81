/* notifier.h - lets other threads wake a loop: disk_thread.h, for the server and for the gate.
 *
 * It is an eventfd that the loop polls, and no uv_async_t. A loop that is woken while the sender is
 * still in uv_async_send spins in libuv 1.44 until the sender has left it. If the loop has a higher
 * priority than the sender, it keeps it from the processor meanwhile: turns of 50 to 136 ms were
 * measured (bench/stalls --realtime loop). */
#ifndef CLAVE_RUNTIME_NOTIFIER_H
#define CLAVE_RUNTIME_NOTIFIER_H

#include <uv.h>

struct notifier {
    uv_poll_t poll;
    int fd;
    void (*notified)(void *arg);
    void *arg;
};

/* `notified` runs on the loop's thread, once or more after each _send: those that come together
 * are one. Keeps the loop alive. Returns 0 or an errno; then only _close is legal. */
int clave__notifier_open(struct notifier *n, uv_loop_t *loop, void (*notified)(void *arg),
                         void *arg);
/* On any thread; never waits. What the sender wrote before, `notified` sees. */
void clave__notifier_send(struct notifier *n);
/* On the loop's thread, when nobody sends any more. `notified` is not called again. The memory is
 * the loop's until its next turn is over. */
void clave__notifier_close(struct notifier *n);

#endif
