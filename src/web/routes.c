/* routes.c - the one table of all endpoints. Invariant: the first line that matches counts, so a
 * pattern with more literal text stands before one with less. */
#include "web/api/api.h"

static const struct route routes[] = {
    /* server.c */
    {"GET", "/healthz", WEB_NONE, clave__web_get_healthz, NULL, 0},
    {"GET", "/readyz", WEB_NONE, clave__web_get_readyz, NULL, 0},
    {"GET", "/v1/server", WEB_READ, clave__web_get_server, "samples", 0},
    {"GET", "/v1/whoami", WEB_NONE, clave__web_get_whoami, NULL, 0},
    {"GET", "/v1/openapi.json", WEB_NONE, clave__web_get_openapi, NULL, 0},
    {"GET", "/", WEB_NONE, clave__web_get_to_page, NULL, 0},
    {"GET", "/ui", WEB_NONE, clave__web_get_to_page, NULL, 0},
    {"GET", "/ui/{path}", WEB_NONE, clave__web_get_page, "*", 0},
    /* sessions.c */
    {"POST", "/v1/sessions", WEB_LOCK, clave__web_post_session, NULL, 0},
    {"GET", "/v1/sessions", WEB_ADMIN, clave__web_list_sessions, "limit after", 0},
    {"GET", "/v1/sessions/{id}", WEB_LOCK, clave__web_get_session, NULL, ROUTE_OWN},
    {"POST", "/v1/sessions/{id}/renew", WEB_LOCK, clave__web_renew_session, NULL,
     ROUTE_QUIET | ROUTE_OWN},
    {"DELETE", "/v1/sessions/{id}", WEB_LOCK, clave__web_delete_session, NULL, ROUTE_OWN},
    /* claims.c, which hands claims of kind "slot" to slots.c */
    {"POST", "/v1/claims", WEB_LOCK, clave__web_post_claim, NULL, ROUTE_KEYED},
    {"GET", "/v1/claims/{id}", WEB_LOCK, clave__web_get_claim, NULL, ROUTE_OWN},
    {"POST", "/v1/claims/{id}/alive", WEB_LOCK, clave__web_claim_alive, NULL,
     ROUTE_QUIET | ROUTE_OWN},
    {"PATCH", "/v1/claims/{id}", WEB_LOCK, clave__web_patch_claim, NULL, 0},
    {"DELETE", "/v1/claims/{id}", WEB_LOCK, clave__web_delete_claim, "token", ROUTE_OWN},
    /* hold.c */
    {"POST", "/v1/hold", WEB_LOCK, clave__web_post_hold, NULL, 0},
    /* slots.c */
    {"GET", "/v1/slots/{path}", WEB_READ, clave__web_get_slots, NULL, 0},
    {"PUT", "/v1/slots/{path}", WEB_WRITE, clave__web_put_slots_limit, NULL, 0},
    {"POST", "/v1/slots/{path}/break", WEB_ADMIN, clave__web_break_slot, NULL, 0},
    {"POST", "/v1/pre-reboot", WEB_LOCK, clave__web_fleetlock_take, NULL, ROUTE_FLEETLOCK},
    {"POST", "/v1/steady-state", WEB_LOCK, clave__web_fleetlock_give, NULL, ROUTE_FLEETLOCK},
    /* locks.c, lock_token.c, lock_actions.c, leads.c */
    {"GET", "/v1/locks", WEB_READ, clave__web_get_locks, "prefix limit after fresh", 0},
    {"POST", "/v1/locks/{path}/revoke", WEB_LOCK, clave__web_post_revoke, NULL, 0},
    {"POST", "/v1/locks/{path}/break", WEB_ADMIN, clave__web_post_break, NULL, 0},
    {"GET", "/v1/locks/{path}", WEB_READ, clave__web_get_lock_or_token, "token fresh", 0},
    {"GET", "/v1/elections", WEB_READ, clave__web_get_elections, "prefix limit after fresh", 0},
    {"PUT", "/v1/elections/{path}/value", WEB_LOCK, clave__web_put_value, NULL, 0},
    {"POST", "/v1/elections/{path}/transfer", WEB_LOCK, clave__web_post_transfer, NULL, 0},
    {"GET", "/v1/elections/{path}", WEB_READ, clave__web_get_election_or_leads,
     "fresh leads min_term", 0},
    {"GET", "/v1/leader/{path}", WEB_READ, clave__web_get_leader, "id min_term", 0},
    {"GET", "/v1/replica/{path}", WEB_READ, clave__web_get_replica, "id", 0},
    {"GET", "/v1/deadlocks", WEB_READ, clave__web_get_deadlocks, "prefix fresh", 0},
    {"GET", "/metrics", WEB_READ, clave__web_get_metrics, NULL, 0},
    {"GET", "/v1/history", WEB_READ, clave__web_get_history, "path since limit", 0},
    {"GET", "/v1/events", WEB_READ, clave__web_get_events, "prefix path claims", 0},
    /* services.c */
    {"GET", "/v1/services", WEB_READ, clave__web_get_services, "base format ready fresh", 0},
    {"GET", "/v1/services/{id}", WEB_READ, clave__web_get_services, "base format ready fresh", 0},
    {"PUT", "/v1/services/{service}/{id}", WEB_WRITE, clave__web_put_service, "base replace", 0},
    {"DELETE", "/v1/services/{service}/{id}", WEB_WRITE, clave__web_delete_service, "base",
     ROUTE_OWN},
    /* members.c, counters.c */
    {"GET", "/v1/members/{path}", WEB_READ, clave__web_get_members, "fresh", 0},
    {"PUT", "/v1/members/{path}", WEB_WRITE, clave__web_put_member, "replace", 0},
    {"DELETE", "/v1/members/{path}", WEB_WRITE, clave__web_delete_member, NULL, ROUTE_OWN},
    {"GET", "/v1/counters/{path}", WEB_READ, clave__web_get_counter, NULL, 0},
    {"POST", "/v1/counters/{path}", WEB_WRITE, clave__web_post_counter, NULL, 0},
    /* znodes.c, znodes_write.c */
    {"GET", "/v1/znodes/{path}", WEB_READ, clave__web_get_znode,
     "stat children acl sync fresh limit after", 0},
    {"PUT", "/v1/znodes/{path}", WEB_WRITE, clave__web_put_znode, "acl",
     ROUTE_GUARDED | ROUTE_CONDITIONAL},
    {"POST", "/v1/znodes/{path}", WEB_WRITE, clave__web_post_znode, "mode ttl parents",
     ROUTE_GUARDED | ROUTE_CONDITIONAL},
    {"DELETE", "/v1/znodes/{path}", WEB_WRITE, clave__web_delete_znode, "recursive max",
     ROUTE_GUARDED | ROUTE_CONDITIONAL},
    {"POST", "/v1/multi", WEB_WRITE, clave__web_post_multi, NULL, ROUTE_GUARDED},
    /* contrib.c */
    {"GET", "/znodes/v1{path}", WEB_READ, clave__web_rest_get, "*", 0},
    {"PUT", "/znodes/v1{path}", WEB_WRITE, clave__web_rest_put, "*", 0},
    {"POST", "/znodes/v1{path}", WEB_WRITE, clave__web_rest_post, "*", 0},
    {"DELETE", "/znodes/v1{path}", WEB_WRITE, clave__web_rest_delete, "*", 0},
    {"POST", "/sessions/v1", WEB_WRITE, clave__web_rest_post_session, "*", 0},
    {"PUT", "/sessions/v1/{id}", WEB_WRITE, clave__web_rest_put_session, "*",
     ROUTE_QUIET | ROUTE_OWN},
    {"DELETE", "/sessions/v1/{id}", WEB_WRITE, clave__web_rest_delete_session, "*", ROUTE_OWN},
};

const struct route_table clave__routes = {routes, sizeof routes / sizeof *routes};
