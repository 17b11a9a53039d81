# cmake -DIN=FILE -DOUT=FILE.c -DNAME=SYMBOL -P embed.cmake: the bytes of a file as an array, in a
# section of its own: apart from the constants that each start of the program reads.
file(READ ${IN} hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR bytes "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," list "${hex}")
string(REGEX REPLACE "(................................................................................)"
    "\\1\n" list "${list}")
file(WRITE ${OUT} "#include <stddef.h>\n\nextern const unsigned char ${NAME}[];\n"
    "extern const size_t ${NAME}_len;\nconst size_t ${NAME}_len = ${bytes};\n"
    "__attribute__((section(\"clave_served\"))) const unsigned char ${NAME}[] = {\n${list}\n};\n")
