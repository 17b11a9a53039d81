# What the tests share: a server with the packaged configuration, on a port and a directory of its own.
set -eu
work=$AUTOPKGTEST_TMP
port=$((20000 + $$ % 20000))
export CLAVE_CONNECT=127.0.0.1:$port

# Begins a server; returns when it answers.
serve() {
    clave serve --config "$work/serve.conf" >"$work/serve.log" 2>&1 &
    server=$!
    clave ping -n 1 --timeout 20s
}

sed "s#/var/lib/clave#$work/data#; s#127.0.0.1:2181#$CLAVE_CONNECT#" /etc/clave/serve.conf >"$work/serve.conf"

# hold PATH: a lock is held in the background until release. The file `held` has its token.
hold() {
    rm -f "$work/held" "$work/release"
    clave lock --session-timeout 30s "$1" -- sh -c "
        echo \$CLAVE_TOKEN >'$work/token' && mv '$work/token' '$work/held'
        while [ ! -e '$work/release' ]; do sleep 0.1; done" &
    holder=$!
    for i in $(seq 200); do [ -e "$work/held" ] && return; sleep 0.1; done
    echo "$1 was not granted in 20 s" >&2
    exit 1
}

# A second holder is refused, and the first still runs.
still_held() {
    code=0
    clave lock -n "$1" -- true || code=$?
    [ "$code" = 75 ] && kill -0 "$holder"
}
