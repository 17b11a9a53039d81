/* each_node_and_session.c - walks the nodes and sessions that a server has loaded; see
 * each_node_and_session.h. `clave data` and the tests call it. Invariant: nothing is changed here.
 */
#include "server/store/each_node_and_session.h"

#include "server/server_internal.h"

void clave__server_each_node(const struct server *s,
                             void (*visit)(void *arg, const struct node_view *n), void *arg)
{
    for (const struct node *n = s->tree.root; n; n = clave__tree_next(n, s->tree.root)) {
        struct node_view v = {
            .path = clave__node_path_bytes(n),
            .data = clave__node_data(n),
            .acl = clave__acl_entries(n->acl),
            .stat = clave__node_wire_stat(n),
            .stored_cversion = n->stat.cversion,
            .stored_owner = n->stat.owner,
        };
        visit(arg, &v);
    }
}

void clave__server_each_session(const struct server *s,
                                void (*visit)(void *arg, int64_t id, int32_t timeout_ms), void *arg)
{
    const struct map *table = &s->sessions.table;
    for (struct map_node *at = NULL; (at = clave__map_next(table, at));) {
        const struct session *session = MAP_ENTRY(at, struct session, in_table);
        visit(arg, session->id, session->logged_timeout_ms);
    }
}
