#include "http/http_roles.h"
#include "http/http_fleet.h"
#include "http/http_group.h"

const struct web_access *http_roles_read(struct http_roles *r, int64_t now, const bool *may)
{
    static const char *const paths[HTTP_SITES] = {"/http/a", "/http/b"};
    static const struct web_grant all[] = {{WEB_LOCK, "/"}};
    static const struct web_grant whole[] = {{WEB_LOCK, "/"}, {WEB_WRITE, FLEET_PATH}};
    static const struct web_grant group[] = {
        {WEB_LOCK, "/"}, {WEB_READ, GROUP_PATH}, {WEB_WRITE, GROUP_PATH}};
    r->file = !r->file;
    struct http_role_file *f = &r->files[r->file];
    size_t n = 0;
    f->grants[n++] = (struct web_grant){WEB_READ, "/"};
    f->grants[n++] = (struct web_grant){WEB_WRITE, "/writes"};
    for (unsigned i = 0; i < HTTP_SITES; i++) {
        if (may[i])
            f->grants[n++] = (struct web_grant){WEB_LOCK, paths[i]};
        r->took_at[i] = may[i] ? HTTP_NEVER : r->took_at[i] == HTTP_NEVER ? now : r->took_at[i];
    }
    f->users[0] = (struct web_user){
        .name = "users", .token = "of-the-users-0001", .uid = -1, .grants = all, .ngrants = 1};
    f->users[1] = (struct web_user){
        .name = "team", .token = "of-the-team-00001", .uid = -1, .grants = f->grants, .ngrants = n};
    f->users[2] = (struct web_user){
        .name = "fleet", .token = "of-the-fleet-0001", .uid = -1, .grants = whole, .ngrants = 2};
    f->users[3] = (struct web_user){
        .name = "group", .token = "of-the-group-0001", .uid = -1, .grants = group, .ngrants = 3};
    f->access = (struct web_access){
        .users = f->users, .nusers = 4, .owner_uid = -1, .fleetlock = FLEET_PATH};
    return &f->access;
}
