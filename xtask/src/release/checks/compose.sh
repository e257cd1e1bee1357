#!/bin/sh
# The Compose files as a user starts them. Runs in a copy of deploy/compose, in the network of the container engine; the arguments
# are the released program, with which the user works, crane, and an image in a registry that crane reaches.
set -eu

program="$1"
crane="$2"
pushed="$3"
URL=http://127.0.0.1:11633
work="$PWD/../work"

fail() {
    echo "FAILED: $1"
    docker ps -a
    for container in $(docker ps -aq); do docker logs --tail 15 "$container" 2>&1; done
    exit 1
}
now_ms() { date +%s%3N; }
# Waits until a command succeeds: SECONDS, WHAT, COMMAND.
until_true() {
    seconds="$1" what="$2" ends=$(($(now_ms) + $1 * 1000))
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ "$(now_ms)" -lt "$ends" ] || fail "not within $seconds s: $what"
        sleep 0.2
    done
}
up() { sh up.sh "$@" >"$work/up" 2>&1 || { cat "$work/up"; fail "up.sh $*"; }; }
# The client of the user: the address, and the file with the token.
client() { QUALITYTRACE_TOKEN="$(cat secrets/bootstrap-token)" "$program" "$@"; }
run() { client run --server $URL "$@" >"$work/report" 2>&1 || { cat "$work/report"; fail "run $*"; }; }
runs() { client runs list --server $URL --limit 200 --format name; }
# Starts the test N times on the server, and waits until all have passed.
repeat() {
    goal=$(($(client runs list --server $URL --test shop --verdict passed --limit 200 --format name | wc -l) + $1))
    left="$1"
    while [ "$left" -gt 0 ]; do
        client api POST /api/v1/tests/shop/runs --server $URL >/dev/null || fail 'a run is not accepted'
        left=$((left - 1))
    done
    until_true 60 "$goal runs passed" have_passed "$goal"
}
have_passed() { [ "$(client runs list --server $URL --test shop --verdict passed --limit 200 --format name | wc -l)" -ge "$1" ]; }
down() { docker-compose "$@" >"$work/down" 2>&1 || { cat "$work/down"; fail "docker-compose $*"; }; }
# As the comment in the configurations has it, for a shop in the network of the containers.
allow_private() { sed -i 's/# triggers: {networks: {allow: .*$/triggers: {networks: {allow: [private]}}/' "$1"; }

mkdir -p "$work"
for file in compose.yaml 'compose.yaml -f compose.observability.yaml' compose.replicas.yaml; do
    # shellcheck disable=SC2086
    docker-compose -f $file config -q || fail "docker-compose config refuses $file"
done

# --- pin.sh writes the digests that a registry has: here, the one of the release for every name ---
registry="${pushed%%/*}"
cp -r . ../pinned
sed -n 's/^ *image: \([^"$]*\)$/\1/p; s/^QUALITYTRACE_IMAGE=[^/]*\/\(.*\)/\1/p' compose.*yaml .env | sort -u >"$work/images"
while read -r image; do "$crane" copy "$pushed" "$registry/$image" 2>/dev/null </dev/null; done <"$work/images"
sed -i "s#image: \([a-z]\)#image: $registry/\1#; s#QUALITYTRACE_IMAGE=[^/]*/#QUALITYTRACE_IMAGE=$registry/#" ../pinned/compose.*yaml ../pinned/.env
digest=$("$crane" digest "$pushed")
for attempt in first second; do
    PATH="$(dirname "$crane"):$PATH" sh ../pinned/pin.sh >"$work/pins" || fail "the $attempt pin.sh"
    pins=$(cat ../pinned/compose.*yaml ../pinned/.env | grep -c "$registry/[^@]*:[^@]*@$digest\$")
    [ "$pins" -eq $(($(cat compose.*yaml | grep -c 'image: [a-z]') + 1)) ] || fail "the $attempt pin.sh wrote $pins digests: $(cat "$work/pins")"
done
echo "pin.sh: $pins digests written, and the same ones again"

# --- compose.yaml: one command, one address, one file with a token ---
began=$(now_ms)
up
up_ms=$(($(now_ms) - began))
grep -q "^ready:  http://localhost:11633$" "$work/up" || fail "up.sh does not print the address: $(cat "$work/up")"
[ "$(stat -c %a secrets)" = 700 ] || fail 'other users of this machine reach the secrets'

if "$program" runs list --server $URL >/dev/null 2>&1; then fail 'a caller without the token lists runs'; fi
[ "$(curl -s -o "$work/page" -w '%{http_code}' $URL/)" = 200 ] || fail 'there is no page at /'
client api POST /api/v1/demo --server $URL >/dev/null || fail 'the shop does not open'
client get tests checkout --server $URL >"$work/checkout.yaml"
run "$work/checkout.yaml"
echo "ms compose.yaml: $up_ms $(($(now_ms) - began - up_ms))"

server=$(docker-compose ps -q server)
pid=$(docker inspect -f '{{.State.Pid}}' "$server")
grep -q '^Uid:[[:space:]]*65532[[:space:]]*65532' "/proc/$pid/status" || fail 'the server is another user than 65532'
grep -q '^CapBnd:[[:space:]]*0000000000000000$' "/proc/$pid/status" || fail 'the server has capabilities'
[ "$(docker inspect -f '{{.HostConfig.ReadonlyRootfs}}' "$server")" = true ] || fail 'the root of the server can be written'

# --- down and up again keeps the history, and the token ---
runs >"$work/before"
[ -s "$work/before" ] || fail 'there is no run before down'
down down
up
runs >"$work/after"
cmp "$work/before" "$work/after" || fail 'the runs before down are not those after up'
while read -r one; do
    client runs view "$one" --server $URL >"$work/view" || fail "run $one cannot be read"
done <"$work/after"
echo "history: $(wc -l <"$work/after") runs before down and after up"

# --- compose.observability.yaml: the spans come through the Collector, and a panel shows the run ---
began=$(now_ms)
allow_private observability/quality-trace-config.yaml
up observability server collector prometheus
up_ms=$(($(now_ms) - began))
image=$(docker inspect -f '{{.Image}}' "$(docker-compose ps -q server)")
docker run -d --name shop --network qualitytrace_default "$image" \
    demo --http 0.0.0.0:11634 --otlp http://collector:4317 >/dev/null
(cd "$work" && "$program" init >/dev/null && cp qualitytrace/*.yaml shop.yaml)
sed -i 's|http://127.0.0.1:11634|http://shop:11634|; s/id: checkout/id: shop/' "$work/shop.yaml"
through_collector() { client run --server $URL "$work/shop.yaml"; }
until_true 60 'a green run of a shop that sends to the Collector' through_collector
echo "ms compose.observability.yaml: $up_ms $(($(now_ms) - began - up_ms))"
docker exec "$(docker-compose -f compose.yaml -f compose.observability.yaml ps -q prometheus)" \
    promtool check config /etc/prometheus/prometheus.yaml || fail 'promtool refuses the configuration'
# The first panel of the first dashboard, as Grafana queries it.
panel=$(sed -n 's/^ *"expr": "\(.*\)",$/\1/p' observability/dashboards/runs.json | head -n 1)
panel() { curl -s -G --data-urlencode "query=$panel" http://127.0.0.1:9090/api/v1/query; }
shows_run() { run "$work/shop.yaml"; panel | grep -q '"qualitytrace_run_verdict":"passed"},"value":\[[0-9.]*,"[0-9.]*[1-9]'; }
until_true 60 "a value of the panel $panel" shows_run
echo "panel: $panel: $(panel)"
docker rm -f shop >/dev/null
down -f compose.yaml -f compose.observability.yaml down -v

# --- compose.replicas.yaml: three servers, one address; a run goes on when a server has gone ---
began=$(now_ms)
allow_private replicas/quality-trace-config.yaml
up replicas
up_ms=$(($(now_ms) - began))
ingest=$(client token create --server $URL --name shop --role ingest)
docker run -d --name shop --network qualitytrace_default -e OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer $ingest" \
    "$image" demo --http 0.0.0.0:11634 --otlp http://balancer:4317 >/dev/null
until_true 60 'a green run of a shop that sends to the balancer' through_collector
echo "ms compose.replicas.yaml: $up_ms $(($(now_ms) - began - up_ms))"
repeat 12
docker kill "$(docker-compose -f compose.replicas.yaml ps -q server-2)" >/dev/null
repeat 12
echo 'replicas: 12 runs passed, and 12 after a server was killed'
docker rm -f shop >/dev/null
down -f compose.replicas.yaml down -v
