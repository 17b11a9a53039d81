/* queue_text.h - what a queue is in the model of locks, as a line to compare. */
#ifndef CLAVE_TEST_QUEUE_TEXT_H
#define CLAVE_TEST_QUEUE_TEXT_H

#include "observe/lock_model.h"

/* "KIND holders | waiters", by their numbers, and " ! numbers" if any are left over; "none" of
 * NULL. Valid until the next call. */
const char *queue_text(const struct lock_queue *q);

#endif
