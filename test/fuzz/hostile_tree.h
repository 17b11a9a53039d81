/* hostile_tree.h - trees as strangers may have left them: the nodes of every recipe, of clave,
 * Curator and kazoo, with names and data that are cut, doubled, damaged or of another recipe,
 * persistent where they should be ephemeral, not to be read, in directories where they do not
 * belong. */
#ifndef CLAVE_TEST_FUZZ_HOSTILE_TREE_H
#define CLAVE_TEST_FUZZ_HOSTILE_TREE_H

#include "fuzz/fuzz.h"

enum { HOSTILE_PATH = 512, HOSTILE_DATA = 2048, HOSTILE_NODES = 24 };

struct hostile_node {
    char path[HOSTILE_PATH]; /* valid for the server; may be there already */
    char data[HOSTILE_DATA];
    size_t n;
    int mode;       /* CLAVE_PERSISTENT, ... */
    unsigned owner; /* which of two strangers makes it, 0 or 1 */
    int perms;      /* of everybody: CLAVE_PERM_ALL, or not to read */
};

/* Reads the recipe of a tree from the input, and gives its nodes to `make`, parents first, at most
 * HOSTILE_NODES without these. All of them are at or below `prefix`, "" or "/x", or beside it as
 * "/x-held". The locks are at hostile_root(0, ...) and others. */
void hostile_tree(struct input *in, const char *prefix,
                  void (*make)(void *arg, const struct hostile_node *node), void *arg);
/* Where locks may be: the path of that number; false: there are no more. */
bool hostile_root(size_t number, const char *prefix, char out[HOSTILE_PATH]);

/* What a node may say, at most `cap` bytes; returns the length. */
size_t hostile_data(struct input *in, char *out, size_t cap);

/* An input made from a number: the same bytes every time. */
void hostile_seed(uint64_t seed, uint8_t *out, size_t n);

#endif
