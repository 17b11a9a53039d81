/* uv_client_test.c - a client on a loop of the program's own, which has other work, too. */
#include "rig.h"

#include "clave/clave.h"
#include "clave/uv.h"

enum { NODE = 64 * 1024, NODES = 16, MOST_A_TURN = 2 * 16384 };

struct program {
    uv_loop_t loop;
    uv_prepare_t turn;
    uv_timer_t limit;
    clave_async_client *client;
    clave_uv *uv;
    unsigned turns, begun; /* when the first answer was there */
    unsigned answers;
    char data[NODE];
};

static void program_on_stopped(void *arg)
{
    struct program *p = arg;
    clave_async_client_free(p->client);
    uv_close((uv_handle_t *)&p->turn, NULL);
    uv_close((uv_handle_t *)&p->limit, NULL);
}

static void program_on_turn(uv_prepare_t *t)
{
    struct program *p = t->data;
    p->turns++;
}

static void program_on_limit(uv_timer_t *t)
{
    (void)t;
    fail_msg("no answer");
}

static void program_on_answer(clave_async_client *c, const clave_result *r, void *arg)
{
    struct program *p = arg;
    (void)c;
    assert_int_equal(r->err, CLAVE_OK);
    assert_int_equal(r->len, NODE);
    if (p->answers++ == 0)
        p->begun = p->turns;
    if (p->answers == NODES)
        clave_uv_stop(p->uv, program_on_stopped, p);
}

static void program_on_created(clave_async_client *c, const clave_result *r, void *arg)
{
    struct program *p = arg;
    (void)c;
    assert_int_equal(r->err, CLAVE_OK);
    for (int i = 0; i < NODES; i++)
        assert_int_equal(clave_async_get(p->client, "/large", NULL, program_on_answer, p),
                         CLAVE_OK);
}

/* However fast the answers come: a turn of the loop reads a bounded part of them. */
TEST(a_turn_reads_a_part_of_what_there_is)
{
    static struct program p;
    clave_client_options o = {.size = sizeof o,
                              .hosts = rig->connect,
                              .session_timeout_ms = 20000,
                              .seed = clave_random_seed()};
    assert_int_equal(uv_loop_init(&p.loop), 0);
    uv_prepare_init(&p.loop, &p.turn);
    uv_timer_init(&p.loop, &p.limit);
    p.turn.data = p.limit.data = &p;
    uv_prepare_start(&p.turn, program_on_turn);
    uv_timer_start(&p.limit, program_on_limit, RIG_PATIENCE_MS, 0);
    assert_int_equal(clave_async_client_new(&p.client, &o), CLAVE_OK);
    assert_int_equal(clave_uv_start(&p.uv, &p.loop, p.client), CLAVE_OK);
    assert_int_equal(
        clave_async_create(p.client, "/large", p.data, NODE, NULL, program_on_created, &p),
        CLAVE_OK);
    clave_uv_flush(p.uv);
    uv_run(&p.loop, UV_RUN_DEFAULT);
    assert_true(p.turns - p.begun >= (NODES - 2) * NODE / MOST_A_TURN);
    assert_int_equal(uv_loop_close(&p.loop), 0);
}

TEST_GROUP(rig_start_group, rig_stop_group)
