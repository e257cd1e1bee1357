#!/bin/sh
# Starts Qualitytrace with Docker Compose, and waits until it is ready. The secrets are made at the first start.
#
#   sh up.sh                  server and Postgres
#   sh up.sh observability    and a Collector, Prometheus and Grafana
#   sh up.sh replicas         three servers behind a load balancer, with NATS and Postgres
#
# Further words are names of services: only those are started.
set -eu
cd "$(dirname "$0")"

READY_SECONDS=180

case "${1:-}" in
    '') files='-f compose.yaml' servers='server' ;;
    observability) files='-f compose.yaml -f compose.observability.yaml' servers='server' ;;
    replicas) files='-f compose.replicas.yaml' servers='server-1 server-2 server-3' ;;
    *) echo "error: \`$1\` is not known: sh up.sh [observability | replicas] [SERVICE...]" >&2; exit 2 ;;
esac
kind="${1:-}"
[ $# -eq 0 ] || shift

if docker compose version >/dev/null 2>&1; then
    tool='docker compose'
elif docker-compose version >/dev/null 2>&1; then
    tool='docker-compose'
else
    echo "error: there is neither \`docker compose\` nor \`docker-compose\`: install Docker Compose" >&2
    exit 2
fi
# Both are lists of words.
# shellcheck disable=SC2086
compose() { $tool $files "$@"; }

# The containers have users of their own, so that the files are readable for all; the folder is not.
mkdir -p -m 700 secrets
# Writes a secret, unless there is one: NAME, and the command that prints it.
secret() {
    file="secrets/$1"
    shift
    [ -s "$file" ] && return
    "$@" >"$file.new"
    [ -s "$file.new" ] || { echo "error: \`$*\` printed nothing for $file" >&2; exit 1; }
    chmod 644 "$file.new"
    mv "$file.new" "$file"
}
hexadecimal() { od -An -v -tx1 -N "$1" /dev/urandom | tr -d ' \n'; }
token() { printf 'qtt_%s' "$(head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n')"; }
encryption_key() { printf 'first:%s' "$(hexadecimal 32)"; }
# A token of the server for a part beside it, for ten years: NAME and ROLE. Without the end of its line, which a header may not have.
issued() { compose exec -T server qualitytrace token create --name "$1" --role "$2" --days 3650 | tr -d '\r\n'; }

wait_for() {
    seconds=0
    until [ "$(docker inspect -f '{{.State.Health.Status}}' "$(compose ps -q "$1")" 2>/dev/null)" = healthy ]; do
        if [ "$seconds" -ge "$READY_SECONDS" ]; then
            compose logs --tail 20 "$1" >&2
            echo "error: \`$1\` is not ready after $READY_SECONDS s; its log is above" >&2
            exit 1
        fi
        seconds=$((seconds + 1))
        sleep 1
    done
}

secret postgres-password hexadecimal 16
secret bootstrap-token token
secret encryption-key encryption_key
if [ "$kind" = observability ]; then
    secret grafana-password hexadecimal 16
    # The server makes these, so it is started first.
    compose up -d server
    wait_for server
    secret collector-token issued collector ingest
    secret prometheus-token issued prometheus viewer
fi
compose up -d "$@"
for server in $servers; do wait_for "$server"; done
if [ "$kind" = replicas ]; then
    seconds=0
    until compose exec -T server-1 qualitytrace status --ready --server http://balancer:11633 >/dev/null 2>&1; do
        if [ "$seconds" -ge "$READY_SECONDS" ]; then
            compose logs --tail 20 balancer >&2
            echo "error: \`balancer\` passes nothing on after $READY_SECONDS s; its log is above" >&2
            exit 1
        fi
        seconds=$((seconds + 1))
        sleep 1
    done
fi

echo "ready:  http://localhost:${QUALITYTRACE_PORT:-11633}"
echo "token:  $PWD/secrets/bootstrap-token"
echo "stop:   $tool $files down    (in $PWD; the volumes keep the history)"
