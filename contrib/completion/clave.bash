# bash completion for clave: verbs, flags, and paths from the server.
_clave() {
    local words=("${COMP_WORDS[@]:1:COMP_CWORD}") i
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then # the command's own
            declare -F _command_offset >/dev/null && _command_offset $((i + 1))
            return
        fi
    done
    mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" completion -- "${words[@]}" 2>/dev/null)
    [[ ${COMPREPLY[0]-} == /* ]] && compopt -o nospace
    [[ ${#COMPREPLY[@]} == 0 ]] && compopt -o default
}
complete -F _clave clave
