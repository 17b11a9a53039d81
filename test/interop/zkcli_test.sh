#!/bin/sh
# Apache's own shell on the server: create, watch, multi (deleteall), ephemeral nodes, and a
# session that goes on when the server is killed and started again.
#   zkcli_test.sh CONNECT RESTART, where RESTART is a file whose creation asks for a restart
set -eu
connect=$1
restart=$2
scratch=$(mktemp -d)
zkcli=/usr/share/zookeeper/bin/zkCli.sh
client=

finish() {
    test -z "$client" || kill "$client" 2>/dev/null || true
    rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 1' INT TERM

# Waits until $1 is in what the shell has printed.
expect() {
    tries=0
    until grep -q -- "$1" "$scratch/out"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 600 ] || ! kill -0 "$client" 2>/dev/null; then
            echo "zkcli_test: '$1' did not come; there is:" >&2
            cat "$scratch/out" >&2
            exit 1
        fi
        sleep 0.1
    done
}

mkfifo "$scratch/in"
set -- "$zkcli"
if [ -n "${CLAVE_APACHE_JARS:-}" ]; then
    set -- java -Xmx128m -cp "$CLAVE_APACHE_JARS" org.apache.zookeeper.ZooKeeperMain
fi
JVMFLAGS="-Xmx128m" "$@" -timeout 20000 -server "$connect" <"$scratch/in" >"$scratch/out" 2>&1 &
client=$!
exec 3>"$scratch/in"

say() {
    echo "$1" >&3
}

say 'create /shell one'
expect 'Created /shell'
say 'get /shell'
expect '^one$'
say 'create -s /shell/s-'
expect 'Created /shell/s-0000000000'
say 'create -c /shell/container'
expect 'Created /shell/container'
say 'get -w /shell'
say 'set /shell two'
expect 'type:NodeDataChanged path:/shell\( zxid:.*\)\{0,1\}$'
say 'ls -w /shell'
say 'create -e /shell/mine'
expect 'Created /shell/mine'
expect 'type:NodeChildrenChanged path:/shell\( zxid:.*\)\{0,1\}$'
say 'stat /shell/mine'
expect 'ephemeralOwner = 0x[1-9a-f]'
say 'set -v 9 /shell three'
expect 'version No is not valid'
say 'addWatch -m PERSISTENT /shell'
say 'addauth digest joe:secret'
say 'create /shell/locked x digest:joe:oesAybBun9icKJjQSTRN8OBueSc=:r'
say 'getAcl /shell'
expect "'world,'anyone"

touch "$restart"
while [ -e "$restart" ]; do
    sleep 0.1
done
# The first answers may be "connection loss"; the node's owner shows twice once it is back.
tries=0
until [ "$(grep -c 'ephemeralOwner = 0x[1-9a-f]' "$scratch/out")" -ge 2 ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt 30 ]; then
        echo "zkcli_test: the session did not go on:" >&2
        cat "$scratch/out" >&2
        exit 1
    fi
    say 'stat -w /shell/mine'
    sleep 1
done
say 'deleteall /shell'
expect 'type:NodeDeleted path:/shell/mine'
say 'create /shell again'
say 'quit'
exec 3>&-
wait "$client"
client=
! grep -q 'Session expired' "$scratch/out"
echo "zkCli: fine"
