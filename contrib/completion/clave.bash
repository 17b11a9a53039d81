# bash completion for clave: verbs, flags, and paths from the server.

# Into words: what is typed up to the cursor. In COMP_WORDS, a word such as host:port or --flag=value is in pieces,
# split at the characters of COMP_WORDBREAKS; pieces of a word have no space between them on the line.
_clave_words() {
    local rest=$COMP_LINE piece i
    words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        piece=${COMP_WORDS[i]}
        if ((i > 0)) && [[ $rest != [[:space:]]* && ($piece == [:=]* || ${words[-1]} == *[:=]) ]]; then
            words[-1]+=$piece
        else
            words+=("$piece")
        fi
        rest=${rest#"${rest%%[![:space:]]*}"}
        rest=${rest#"$piece"}
    done
}

_clave() {
    local words i
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then # the command's own
            declare -F _command_offset >/dev/null && _command_offset $((i + 1))
            return
        fi
    done
    _clave_words
    mapfile -t COMPREPLY < <("${words[0]}" completion -- "${words[@]:1}" 2>/dev/null)
    [[ ${COMPREPLY[0]-} == /* ]] && compopt -o nospace
    [[ ${#COMPREPLY[@]} == 0 ]] && compopt -o default
    if [[ ${words[-1]} == *[:=]* && $COMP_WORDBREAKS == *:* ]]; then # readline replaces the last piece alone
        COMPREPLY=("${COMPREPLY[@]#"${words[-1]%"${words[-1]##*[:=]}"}"}")
    fi
}
complete -F _clave clave
