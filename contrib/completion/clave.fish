# fish completion for clave: verbs, flags, and paths from the server.
function __clave_complete
    set -l words (commandline -opc)
    $words[1] completion -- $words[2..-1] (commandline -ct) 2>/dev/null
end
function __clave_in_command
    contains -- -- (commandline -opc)
end
complete -c clave -n 'not __clave_in_command' -f -a '(__clave_complete)'
