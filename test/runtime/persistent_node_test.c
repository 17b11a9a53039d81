/* persistent_node_test.c - a node that stays as long as its owner, for threads. */
#include "rig.h"

#include <stdatomic.h>

enum { PATIENCE = 10000, SHORT = 50 };

static atomic_uint conflicts;

static void on_event(clave_async_persistent_node *n, const clave_persistent_node_event *ev,
                     void *arg)
{
    (void)n;
    if (ev->type == CLAVE_PERSISTENT_NODE_CONFLICT)
        atomic_fetch_add((atomic_uint *)arg, 1);
}

static clave_persistent_node *keep(clave_client *s, const char *path, const char *data)
{
    const clave_persistent_node_options o = {.size = sizeof o,
                                             .data = data,
                                             .len = strlen(data),
                                             .event_cb = on_event,
                                             .event_arg = &conflicts};
    clave_persistent_node *n;
    assert_int_equal(clave_persistent_node_new(&n, s, path, &o), CLAVE_OK);
    return n;
}

static void expect(clave_client *s, const char *path, const char *data)
{
    clave_reply *reply;
    assert_int_equal(clave_get(s, path, PATIENCE, &reply), CLAVE_OK);
    assert_int_equal(reply->len, strlen(data));
    assert_memory_equal(reply->data, data, reply->len);
    clave_reply_free(reply);
}

TEST(testBasic_of_GroupMember)
{
    char path[64];
    clave_client *a = rig_session(rig->connect), *b = rig_session(rig->connect);
    clave_persistent_node *one = keep(a, "/group/one", "1"), *two = keep(b, "/group/two", "2");
    assert_int_equal(clave_persistent_node_await(one, PATIENCE), CLAVE_OK);
    assert_int_equal(clave_persistent_node_await(two, PATIENCE), CLAVE_OK);
    assert_true(clave_persistent_node_is_present(one));
    assert_int_equal(clave_persistent_node_path(one, path, sizeof path), strlen("/group/one"));
    assert_string_equal(path, "/group/one");
    expect(b, "/group/one", "1");
    assert_int_equal(clave_persistent_node_set(one, "new", 3, PATIENCE), CLAVE_OK);
    expect(b, "/group/one", "new");
    assert_int_equal(clave_persistent_node_close(one, PATIENCE), CLAVE_OK);
    assert_false(clave_persistent_node_is_present(one));
    assert_int_equal(clave_persistent_node_await(one, PATIENCE), CLAVE_EINVAL);
    assert_int_equal(clave_persistent_node_set(one, "x", 1, PATIENCE), CLAVE_EINVAL);
    assert_int_equal(clave_exists(b, "/group/one", PATIENCE, NULL), CLAVE_ENONODE);
    clave_persistent_node_free(one);
    clave_client_close(b, PATIENCE); /* before its node is freed */
    assert_false(clave_persistent_node_is_present(two));
    assert_int_equal(clave_persistent_node_await(two, PATIENCE), CLAVE_ECLOSED);
    assert_int_equal(clave_persistent_node_set(two, "x", 1, PATIENCE), CLAVE_ECLOSED);
    clave_persistent_node_free(two);
    assert_int_equal(clave_exists(a, "/group/two", PATIENCE, NULL), CLAVE_ENONODE);
    clave_client_close(a, PATIENCE);
}

TEST(a_conflict_is_busy_until_the_other_is_gone)
{
    clave_client *a = rig_session(rig->connect), *b = rig_session(rig->connect);
    clave_persistent_node *first = keep(a, "/group/same", "a");
    assert_int_equal(clave_persistent_node_await(first, PATIENCE), CLAVE_OK);
    atomic_store(&conflicts, 0);
    clave_persistent_node *second = keep(b, "/group/same", "b");
    while (atomic_load(&conflicts) == 0)
        assert_int_not_equal(clave_persistent_node_await(second, SHORT), CLAVE_OK);
    assert_int_equal(clave_persistent_node_await(second, SHORT), CLAVE_EBUSY);
    /* a set that is given up is answered late, or never: with the node */
    assert_int_equal(clave_persistent_node_set(second, "late", 4, SHORT), CLAVE_ETIMEDOUT);
    clave_persistent_node_free(first);
    assert_int_equal(clave_persistent_node_await(second, PATIENCE), CLAVE_OK);
    expect(a, "/group/same", "late");
    first = keep(a, "/group/same", "a");
    assert_int_equal(clave_persistent_node_set(first, "never", 5, SHORT), CLAVE_ETIMEDOUT);
    clave_persistent_node_free(first);
    clave_persistent_node_free(second);
    clave_client_close(a, PATIENCE);
    clave_client_close(b, PATIENCE);
}

TEST_GROUP(rig_start_group, rig_stop_group)
