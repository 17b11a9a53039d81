/* text_file.h - a text file, read whole. */
#ifndef CLAVE_RUNTIME_TEXT_FILE_H
#define CLAVE_RUNTIME_TEXT_FILE_H

/* The text of a file, to be freed by the caller, without the mark that editors put before UTF-8.
 * NULL: errno, and `why` has the path, the line if it is about one, and the reason. EFBIG: longer
 * than any such file can be; EILSEQ: it has a NUL byte; ENODATA, ETIMEDOUT: a pipe without a
 * writer. */
enum { TEXT_FILE_WHY = 4400 };
char *clave__text_file_read(const char *path, char why[TEXT_FILE_WHY]);

#endif
