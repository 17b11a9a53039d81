/* all_loops.c - the loops of this process; see all_loops.h. */
#include "runtime/blocking/all_loops.h"

#include <stdlib.h>

static pthread_mutex_t loops_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct list loops = {&loops, &loops};
static struct client_totals loops_past;
static bool loops_have_past;

static void all_loops_begin_past(void)
{
    if (!loops_have_past)
        clave__client_totals_init(&loops_past);
    loops_have_past = true;
}

void clave__loops_add(clave_loop *l)
{
    pthread_mutex_lock(&loops_mutex);
    list_push_back(&loops, &l->in_loops);
    pthread_mutex_unlock(&loops_mutex);
}

void clave__loops_remove(clave_loop *l)
{
    pthread_mutex_lock(&loops_mutex);
    all_loops_begin_past();
    clave__client_totals_add(&loops_past, &l->past);
    list_remove(&l->in_loops);
    pthread_mutex_unlock(&loops_mutex);
}

void clave__loops_forget(void)
{
    pthread_mutex_init(&loops_mutex, NULL);
    list_init(&loops);
    loops_have_past = false;
}

clave_err clave__loops_list(clave_loop ***out, size_t *n, struct client_totals *past)
{
    clave_err err = CLAVE_OK;
    size_t count = 0;
    *out = NULL;
    *n = 0;
    pthread_mutex_lock(&loops_mutex);
    all_loops_begin_past();
    *past = loops_past;
    for (struct list *e = loops.next; e != &loops; e = e->next)
        count++;
    *out = count > 0 ? malloc(count * sizeof **out) : NULL;
    if (count > 0 && !*out)
        err = CLAVE_ENOMEM;
    for (struct list *e = loops.next; e != &loops && *out; e = e->next) {
        clave_loop *l = LIST_ENTRY(e, struct clave_loop, in_loops);
        clave__loop_ref(l);
        (*out)[(*n)++] = l;
    }
    pthread_mutex_unlock(&loops_mutex);
    return err;
}
