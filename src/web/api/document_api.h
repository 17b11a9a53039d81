/* document_api.h - what is the same for everybody: /v1/openapi.json, and the files of the page
 * below /ui/. */
#ifndef CLAVE_WEB_API_DOCUMENT_API_H
#define CLAVE_WEB_API_DOCUMENT_API_H

#include "web/http/exchange.h"

web_handler clave__web_get_openapi, clave__web_get_page, clave__web_get_to_page;

#endif
