/* What reading has found, each as a short timeline of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/client.h"
#include "lib/script.h"

enum { T = SCRIPT_TIMEOUT };

/* ---- the hold deadline ------------------------------------------------------------------- */

static void ignore(struct hold *h)
{
    (void)h;
}

static void hold(struct script *s, struct hold *h, const char *path)
{
    *h = (struct hold){.path = path, .on_missing = ignore, .on_settled = ignore};
    clave__client_hold(s->c, h);
}

/* The heartbeat was made and its bytes never left. It goes out on the next connection, which
 * was left at once: its time was counted from the first attempt. */
static void a_heartbeat_that_never_left_has_its_time_on_the_next_connection(void **state)
{
    (void)state;
    struct script s;
    struct hold h;
    script_open(&s, NULL);
    script_connect(&s, false);
    hold(&s, &h, "/l/a");
    script_at(&s, clave_client_deadline(s.c));
    assert_true(clave_client_wants(s.c) & CLAVE_WANT_WRITE);
    script_hang_up(&s); /* and it is not taken */
    s.now += T / 6;
    script_dial(&s);
    script_shake(&s, SCRIPT_SESSION, T, false);
    script_at(&s, s.now);
    assert_true(clave_client_is_connected(s.c));
    assert_true(clave_client_deadline(s.c) > s.now);
    script_expect(&s, OP_MULTI);
    clave__client_unhold(s.c, &h);
    script_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_heartbeat_that_never_left_has_its_time_on_the_next_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
