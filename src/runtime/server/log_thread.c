/* log_thread.c - appends batches to the log (log_thread.h); uv_server.c posts them. A batch is not
 * DONE before its fdatasync has returned. After a fault the server posts no more. */
#include "runtime/server/log_thread.h"

static int log_thread_append(struct disk_thread *thread)
{
    struct log_thread *t = (struct log_thread *)(void *)thread; /* its first member */
    int fault = 0;
    t->grown = -clave__log_file_length(&t->file);
    if (t->new_file || t->file.fd < 0) {
        clave__log_file_close(&t->file);
        t->grown += clave__log_file_length(&t->file);
        fault = clave__log_file_create(&t->file, t->dir, t->first_zxid);
    }
    t->took_ns = uv_hrtime();
    if (fault == 0)
        fault = clave__log_file_append(&t->file, clave__buf_bytes(&thread->bytes),
                                       clave__buf_len(&thread->bytes));
    t->took_ns = uv_hrtime() - t->took_ns;
    t->grown += clave__log_file_length(&t->file);
    return fault;
}

clave_err clave__log_thread_start(struct log_thread *t, int dir, const struct clave_mem *mem,
                                  uv_async_t *done)
{
    t->dir = dir;
    t->file.fd = -1;
    return clave__disk_thread_start(&t->thread, "clave-log", log_thread_append, mem, done);
}

void clave__log_thread_stop(struct log_thread *t)
{
    if (!t->thread.running)
        return;
    clave__disk_thread_stop(&t->thread);
    clave__log_file_close(&t->file);
}
