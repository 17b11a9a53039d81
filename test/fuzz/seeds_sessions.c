/* seeds_sessions.c - what sessions and owners of locks do, in the steps of fuzz.h. */
#include <string.h>

#include "fuzz/seeds.h"

/* Each kind of request by each session, after a node made by another; watches; a multi. */
static void keep_sessions(void)
{
    enum { OPERATIONS = 25, PATHS = 8, SESSIONS = 3 };
    static const uint8_t make[] = {
        SESSION_REQUEST, 0, 0,  0x00, 1, 'x', /* create /a */
        SESSION_REQUEST, 4, 1,  0x01, 0,      /* ... /a/b, ephemeral */
        SESSION_REQUEST, 2, 9,  1,    0,      /* getData /a, watched */
        SESSION_REQUEST, 2, 14, 1,    0,      /* a persistent recursive watch */
    };
    static const uint8_t trouble[] = {
        SESSION_DISK,
        0,
        SESSION_REQUEST,
        0,
        5,
        0,
        2,
        'y',
        'z',
        SESSION_SPLIT,
        1,
        9,
        SESSION_REQUEST,
        1,
        9,
        0,
        0,
        SESSION_REQUEST,
        1,
        23,
        0,
        0,
        SESSION_MOVE,
        1,
        SESSION_RESTART,
        0,
        128,
        SESSION_AGAIN,
        0,
        SESSION_AGAIN,
        2,
        SESSION_DEAF,
        2,
        SESSION_REQUEST,
        2,
        9,
        1,
        0,
        SESSION_TIME,
        0,
        200,
    };
    static const uint8_t multi[] = {SESSION_REQUEST, 1, 12, 0, 4, 0x00, 0x0a, 0x0b, 0x24,
                                    SESSION_REQUEST, 1, 13, 0, 2, 0x00, 0x01};
    uint8_t all[512] = {3};
    size_t n = 1;
    memcpy(all + n, make, sizeof make);
    n += sizeof make;
    for (uint8_t op = 0; op < OPERATIONS; op++) {
        const uint8_t one[] = {
            SESSION_REQUEST, (uint8_t)(op % SESSIONS + SESSIONS * (op % PATHS)), op, 0x11, 1, 'd'};
        keep("session_fuzz", all, 1 + sizeof make, one, sizeof one);
        memcpy(all + n, one, sizeof one);
        n += sizeof one;
    }
    keep("session_fuzz", all, n, "", 0);
    keep("session_fuzz", all, 1 + sizeof make, trouble, sizeof trouble);
    keep("session_fuzz", all, 1 + sizeof make, multi, sizeof multi);
}

/* Everything a recipe can be asked, each twice with its answers; with each of the options; then a
 * connection that goes, and strangers. */
static void keep_recipes(void)
{
    enum { USES = 7 };
    static const uint8_t connect[] = {RECIPE_RELAY, RECIPE_RELAY, RECIPE_RELAY};
    static const uint8_t again[] = {RECIPE_HANG_UP, RECIPE_TIME,  5, RECIPE_RELAY, RECIPE_RELAY,
                                    RECIPE_RELAY,   RECIPE_CLOSE, 0, RECIPE_RELAY};
    static const uint8_t foreign[] = {RECIPE_FOREIGN,
                                      0,
                                      0,
                                      15,
                                      'l',
                                      'o',
                                      'c',
                                      'k',
                                      '-',
                                      '0',
                                      '0',
                                      '0',
                                      '0',
                                      '0',
                                      '0',
                                      '0',
                                      '0',
                                      '0',
                                      '9',
                                      RECIPE_FOREIGN,
                                      2,
                                      0,
                                      10,
                                      '_',
                                      '_',
                                      'R',
                                      'E',
                                      'V',
                                      'O',
                                      'K',
                                      'E',
                                      '_',
                                      '_',
                                      RECIPE_RELAY,
                                      RECIPE_FOREIGN,
                                      3,
                                      0,
                                      0,
                                      RECIPE_RELAY,
                                      RECIPE_RELAY};
    for (uint8_t use = 0; use < USES; use++)
        for (unsigned how = 0; how < 64; how += 7) {
            uint8_t all[64] = {(uint8_t)(1 << how % 7)};
            size_t n = 1;
            memcpy(all + n, connect, sizeof connect);
            n += sizeof connect;
            for (unsigned turn = 0; turn < 3; turn++) {
                /* A lock is taken; then what is looked at. */
                const uint8_t one[] = {RECIPE_ASK,
                                       (uint8_t)(turn == 0 ? 0 : use),
                                       (uint8_t)(turn == 0 ? 25 : how + turn - 1),
                                       RECIPE_RELAY,
                                       RECIPE_RELAY,
                                       RECIPE_RELAY};
                memcpy(all + n, one, sizeof one);
                n += sizeof one;
            }
            keep("recipe_fuzz", all, n, how % 2 ? again : foreign,
                 how % 2 ? sizeof again : sizeof foreign);
        }
}

/* Slots: two are taken and a third waits; then one is given, broken, listed, or the limit set. */
static void keep_slots(void)
{
    static const uint8_t then[] = {4, 36, 8, 40, 12, 76, 16, 3};
    for (size_t i = 0; i < sizeof then; i++) {
        uint8_t all[96] = {0};
        size_t n = 1;
        const uint8_t asked[] = {32, 33, 34, then[i], 35};
        for (size_t k = 0; k < sizeof asked; k++) {
            all[n++] = RECIPE_ASK;
            all[n++] = 6;
            all[n++] = asked[k];
            memset(all + n, RECIPE_RELAY, 12);
            n += 12;
        }
        const uint8_t again[] = {RECIPE_HANG_UP, RECIPE_TIME,  9,           RECIPE_RELAY,
                                 RECIPE_RELAY,   RECIPE_RELAY, RECIPE_RELAY};
        keep("recipe_fuzz", all, n, again, i % 2 ? sizeof again : 0);
    }
}

void keep_plays(void)
{
    keep_slots();
    keep_sessions();
    keep_recipes();
}
