# cmake -DIN=FILE -DOUT=FILE.c -DNAME=SYMBOL -P embed.cmake: the bytes of a file as an array.
file(READ ${IN} hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR bytes "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," list "${hex}")
string(REGEX REPLACE "(................................................................................)"
    "\\1\n" list "${list}")
file(WRITE ${OUT} "#include <stddef.h>\n\nextern const unsigned char ${NAME}[];\n"
    "extern const size_t ${NAME}_len;\nconst size_t ${NAME}_len = ${bytes};\n"
    "const unsigned char ${NAME}[] = {\n${list}\n};\n")
