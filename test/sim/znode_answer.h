/* znode_answer.h - what an error of clave says of a call in a history of znodes. */
#ifndef CLAVE_SIM_ZNODE_ANSWER_H
#define CLAVE_SIM_ZNODE_ANSWER_H

#include "clave/err.h"
#include "znode_history.h"

static inline enum znode_answer znode_answer_of(clave_err err)
{
    if (err == CLAVE_OK)
        return ZNODE_DONE;
    if (err == CLAVE_ENONODE)
        return ZNODE_NO_NODE;
    if (err == CLAVE_ENODEEXISTS)
        return ZNODE_NODE_EXISTS;
    if (err == CLAVE_EBADVERSION)
        return ZNODE_BAD_VERSION;
    return clave_err_classify(err) == CLAVE_CLASS_RETRY ? ZNODE_NOT_DONE : ZNODE_UNKNOWN;
}

#endif
