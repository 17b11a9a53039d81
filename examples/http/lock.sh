#!/bin/bash
# lock.sh PATH COMMAND [ARG]...   runs a command while it holds a lock, with nothing but curl.
#
#   CLAVE_GATE=http://127.0.0.1:8080 CLAVE_GATE_TOKEN=... lock.sh /jobs/nightly make report
#
# For https with an authority of your own, CLAVE_GATE_CA is the file of its certificate.
#
# The command finds the fencing token in CLAVE_TOKEN. It gets SIGTERM a tenth of the session's time before
# the lock could belong to somebody else, and SIGKILL half of that later. Exit code: the command's; 75 when the
# lock was not acquired, or was lost.
#
# The rule that makes it safe: valid_ms counts from when the request was SENT, by a clock that goes on while
# the machine sleeps. Only an answer to our own question moves the deadline.
set -u
[ $# -ge 2 ] || { echo "usage: lock.sh PATH COMMAND [ARG]..." >&2 && exit 64; }
gate=${CLAVE_GATE:-http://127.0.0.1:8080} ttl=${CLAVE_TTL_MS:-10000}
gate=${gate%/} path=$1
shift
secret= id= child=
case $path in *[\"\\]*) echo "lock.sh: no quotes or backslashes in the path" >&2 && exit 64 ;; esac

now() { # milliseconds since the start of the machine, its sleep included
    local up rest
    read -r up rest </proc/uptime
    echo $((10#${up/./} * 10))
}

# ask SECONDS METHOD TARGET [BODY [HEADER HEADER]]: sets status (000: no answer) and answer. Secrets are not arguments
# of curl, which everybody can see.
ask() {
    local out
    out=$(curl -sS --max-time "$1" -w '\n%{http_code}' -X "$2" "$gate$3" ${4:+-d "$4" -H 'Content-Type: application/json'} \
        ${5:+-H "$5" -H "$6"} ${CLAVE_GATE_CA:+--cacert "$CLAVE_GATE_CA"} -K <(printf 'header = "Clave-Session: %s"\n' "$secret"
            [ -z "${CLAVE_GATE_TOKEN:-}" ] || printf 'header = "Authorization: Bearer %s"\n' "$CLAVE_GATE_TOKEN") 2>/dev/null)
    status=${out##*$'\n'} answer=${out%$'\n'*}
    [ -n "$status" ] || status=000
}

field() { sed -n 's/.*"'"$1"'": *"\{0,1\}\([^",}]*\).*/\1/p' <<<"$answer"; }

finish() { # EXIT-CODE MESSAGE: what is held is free at once
    [ -z "$child" ] || kill -KILL "$child" 2>/dev/null
    [ -z "$secret" ] || ask 2 DELETE "/v1/sessions/$id"
    [ -z "${2:-}" ] || echo "lock.sh: $2" >&2
    exit "$1"
}
trap 'finish 143' TERM
trap 'finish 130' INT

ask 20 POST /v1/sessions "{\"ttl_ms\":$ttl,\"name\":\"lock.sh\"}"
[ "$status" != 000 ] || finish 75 "no answer from $gate"
[ "$status" = 201 ] || finish 75 "no session: $status $answer"
id=$(field id) secret=$(field secret) ttl=$(field ttl_ms)

# A repeated request with the same key finds the same place in the queue, at whichever gate it arrives.
read -r key </proc/sys/kernel/random/uuid
claim() { # SECONDS WAIT
    asked=$(now)
    ask "$1" POST /v1/claims "{\"session\":\"$id\",\"path\":\"$path\",\"kind\":\"lock\"}" "Idempotency-Key: $key" "Prefer: wait=$2"
}

while :; do
    claim 60 30
    case $status in
    200 | 201) [ "$(field state)" = held ] && break ;;
    202) ;;                           # it waits
    000 | 429 | 502 | 503 | 504) sleep 1 ;; # nobody knows, or too many wait: ask again
    *) finish 75 "no lock: $status $answer" ;;
    esac
done
deadline=$((asked + $(field valid_ms)))
CLAVE_TOKEN=$(field token)
export CLAVE_TOKEN

"$@" &
child=$! every=$((ttl / 3))
while kill -0 "$child" 2>/dev/null; do
    left=$((deadline - $(now) - ttl / 10))
    if [ "$left" -le 0 ]; then
        kill -TERM "$child"
        sleep "$(printf '%d.%03d' $((ttl / 20000)) $((ttl / 20 % 1000)))" &
        wait -n "$child" $!
        finish 75 "the lock is lost: not renewed in time"
    fi
    pause=$((left < every ? left : every)) every=$((ttl / 20)) # sooner when it was not answered
    sleep "$(printf '%d.%03d' $((pause / 1000)) $((pause % 1000)))" &
    nap=$!
    wait -n "$child" "$nap"
    kill "$nap" 2>/dev/null
    kill -0 "$child" 2>/dev/null || break
    left=$((deadline - $(now) - ttl / 10))
    [ "$left" -gt 0 ] || continue
    asked=$(now)
    ask "$(printf '%d.%03d' $((left / 2000)) $((left / 2 % 1000)))" POST "/v1/sessions/$id/renew"
    if [ "$status" = 200 ] && [ -z "$(field state)" ]; then # by a gate that does not know the claim yet
        claim "$(printf '%d.%03d' $((left / 2000)) $((left / 2 % 1000)))" 1
    fi
    case $status in
    200 | 201)
        if [ "$(field state)" = held ] && [ "$(field token)" = "$CLAVE_TOKEN" ]; then
            deadline=$((asked + $(field valid_ms))) every=$((ttl / 3))
        else
            deadline=0
        fi
        ;;
    410) deadline=0 ;; # the session is over
    esac
done
wait "$child"
code=$? child=
finish "$code"
