/* seeds_web.c - the first inputs of http_fuzz, web_fuzz and target_fuzz. */
#include <string.h>

#include "fuzz/seeds.h"

#define SEND_ "Content-Type: application/octet-stream\n"
#define JSON_ "Content-Type: application/json\n"

/* The requests of a play have a NUL between them, which ends it here. */
#define KEEP_PLAY(play) keep("web_fuzz", "", 0, play, sizeof play - 1)

/* Connections: bytes as they come. */
static void keep_connections(void)
{
    static const char *const connections[] = {
        "GET /a%20b?c=d HTTP/1.1\r\nHost: a\r\n\r\nHEAD / HTTP/1.0\r\nConnection: "
        "keep-alive\r\n\r\n",
        "POST /v1/claims HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: "
        "100-continue\r\n\r\n{}GET",
        "PUT /v1/znodes/a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: "
        "u\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nX: a\r\n b\r\n\r\n",
        "\r\n\r\nOPTIONS * HTTP/1.1\nHost : a\n\n"};
    for (size_t i = 0; i < sizeof connections / sizeof *connections; i++)
        keep("http_fuzz", "\7", 1, connections[i], strlen(connections[i]));
}

void keep_http(void)
{
    static const char *const targets[] = {"/v1/locks/a%2Fb?prefix=%2Fjobs+x&limit=3&flag&&e=&a=b",
                                          "/znodes/v1/a?view=children&callback=f", "/%zz?%4=%00"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        keep("target_fuzz", "", 0, targets[i], strlen(targets[i]));
    keep_connections();
    KEEP_PLAY("GET /healthz\nHost: evil\n\0GET /v1/openapi.json\n\0GET /v1/whoami\nAuthorization: "
              "Bearer ann\nOrigin: http://x\n");
    KEEP_PLAY("POST /v1/znodes/a?parents&mode=persistent_sequential\n" SEND_
              "\nxyz\0GET /v1/znodes/?children&limit=1&after=a\n\0GET /v1/znodes/a?acl&sync\n");
    KEEP_PLAY("PUT /v1/znodes/a\nIf-None-Match: *\n\nx\0PUT /v1/znodes/a\nIf-Match: \"0\"\n\ny\0"
              "PUT /v1/znodes/a?acl\n" JSON_
              "\n{\"acl\":[{\"perms\":\"ra\",\"scheme\":\"world\",\"id\":\"anyone\"}]}\0"
              "DELETE /v1/znodes/a\nClave-Guard: /l;token=4\n");
    KEEP_PLAY("POST /v1/multi\n" JSON_
              "\n{\"ops\":[{\"op\":\"create\",\"path\":\"/a\",\"data_base64\":\"AP8=\"},"
              "{\"op\":\"check\",\"path\":\"/a\",\"version\":0}]}");
    KEEP_PLAY("POST /v1/sessions\n" JSON_ "\n{\"ttl_ms\":4000,\"auth\":[\"digest:a:b\"]}\0"
              "9\0POST /v1/claims\n" JSON_
              "Clave-Session: x\n\n{\"path\":\"/l\",\"kind\":\"lock\"}\0"
              "GET /v1/locks?prefix=/\n\0GET /v1/events\nLast-Event-ID: 1-2\n\0-\0GET "
              "/v1/elections\n\0GET /v1/deadlocks\n\0GET /v1/history?limit=3\n");
    KEEP_PLAY(
        "POST /v1/sessions\nHost: a\nHost: b\nTransfer-Encoding: gzip\nContent-Length: 2\n\n{}\0"
        "GET /v1/history?path=/a&since=2026-11-23T09:35:19Z&limit=2\n\0"
        "GET /v1/events?prefix=/l&path=/l&claims=1\nClave-Session: x\n\0"
        "GET /v1/locks/l?token=4294967301\n\0PUT /v1/elections/e/value\n" SEND_ "\nv\0"
        "POST /v1/elections/e/transfer\n" JSON_ "\n{\"to\":\"n\",\"reason\":\"r\"}");
    KEEP_PLAY("POST /v1/hold\n" JSON_ "Prefer: wait=3\ntraceparent: 00-1-2-01\n\n{\"path\":\"/l\","
              "\"kind\":\"semaphore\",\"limit\":2,\"lock_delay_ms\":5,\"ttl_ms\":4000}\0"
              "POST /v1/locks/l/break\n" JSON_ "\n{\"token\":\"3\",\"force\":true}\0"
              "GET /v1/sessions?limit=2&after=1\n\0GET /metrics\n\0005\0-\0GET /v1/claims/x\n");
    KEEP_PLAY("POST /znodes/v1/?name=a&dataformat=utf8&op=create\n" SEND_
              "\nx\0GET /znodes/v1/a?callback=f\nAccept: application/javascript\n\0"
              "GET /znodes/v1/?view=children\nAccept: application/xml\n\0"
              "POST /sessions/v1?op=create&expire=2\n\0"
              "3\0PUT /znodes/v1/a?null=true\n");
}
