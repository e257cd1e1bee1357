#!/bin/sh
# The life of a server under systemd. Runs in a container with systemd as PID 1; the argument is the package.
set -eu

fail() { echo "FAILED: $1"; journalctl -u qualitytrace --no-pager -n 40 || true; systemctl status qualitytrace --no-pager || true; exit 1; }
now_ms() { date +%s%3N; }
# Waits until a command succeeds: SECONDS, WHAT, COMMAND.
until_true() {
    seconds="$1" what="$2" ends=$(($(now_ms) + $1 * 1000))
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ "$(now_ms)" -lt "$ends" ] || fail "not within $seconds s: $what"
        sleep 0.1
    done
}
property() { systemctl show qualitytrace -p "$1" --value; }
is() { [ "$(property "$1")" = "$2" ]; }
is_ready() { [ "$(property StatusText)" = ready ]; }
system_runs() { [ "$(systemctl is-system-running)" = running ]; }

SERVER=http://127.0.0.1:11633

until_true 60 'systemd is running' system_runs

systemctl start postgresql
until_true 30 'Postgres accepts connections' pg_isready -q -h 127.0.0.1
PASSWORD=$(od -An -v -tx1 -N 16 /dev/urandom | tr -d ' \n')
cd /
runuser -u postgres -- psql -q -c "CREATE ROLE qualitytrace LOGIN PASSWORD '$PASSWORD'" -c 'CREATE DATABASE qualitytrace OWNER qualitytrace'

began=$(now_ms)
dpkg -i "$1" >/dev/null
echo "installed_ms $(($(now_ms) - began))"
! systemctl is-active -q qualitytrace || fail 'the package starts a server that has no configuration yet'

# As docs/deploy/systemd.md has it.
install -d -m 700 /etc/qualitytrace/credentials
cd /etc/qualitytrace/credentials
umask 077
printf '%s' "$PASSWORD" >postgres-password
printf 'qtt_%s' "$(head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=')" >bootstrap-token
printf 'first:%s' "$(od -An -v -tx1 -N 32 /dev/urandom | tr -d ' \n')" >encryption-key
umask 022
cd /
# The shop of the test is on this machine.
mkdir -p /etc/systemd/system/qualitytrace.service.d
printf '[Service]\nEnvironment=QUALITYTRACE_SERVER_TRIGGERS_NETWORKS_ALLOW=loopback\n' >/etc/systemd/system/qualitytrace.service.d/test.conf
systemctl daemon-reload

began=$(now_ms)
systemctl start qualitytrace || fail 'it does not start'
until_true 30 'the server reports that it is ready' is_ready
qualitytrace status --ready >/dev/null || fail '/readyz does not agree with the status'

# A user of its own, without rights, and its folder.
PID=$(property MainPID)
USER_ID=$(stat -c %u /proc/"$PID")
[ "$USER_ID" -ge 61184 ] && [ "$USER_ID" -le 65519 ] || fail "the server runs as user $USER_ID, which is no dynamic user"
[ "$(stat -Lc %u:%a /var/lib/qualitytrace/)" = "$USER_ID:700" ] || fail "the state directory is $(stat -Lc %u:%a /var/lib/qualitytrace/), not $USER_ID:700"
[ -n "$(find /var/lib/private/qualitytrace -mindepth 1 -user "$USER_ID" -print -quit)" ] || fail 'the server keeps nothing in its state directory'
grep -q '^CapEff:[[:space:]]*0000000000000000$' /proc/"$PID"/status || fail 'the server has capabilities'
grep -q '^CapBnd:[[:space:]]*0000000000000000$' /proc/"$PID"/status || fail 'the server could get capabilities'
grep -q '^Seccomp:[[:space:]]*2$' /proc/"$PID"/status || fail 'the server may call what it likes'
[ "$(stat -c %u:%a /run/credentials/qualitytrace.service/bootstrap-token)" != '0:644' ] || fail 'every user may read the token'

# A test of a shop whose spans need a token, as everywhere.
QUALITYTRACE_TOKEN=$(cat /etc/qualitytrace/credentials/bootstrap-token)
export QUALITYTRACE_TOKEN
INGEST=$(qualitytrace token create --server $SERVER --name shop --role ingest)
OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer $INGEST" systemd-run -q --unit=shop --setenv=OTEL_EXPORTER_OTLP_HEADERS qualitytrace demo
mkdir -p /work && cd /work
qualitytrace init >/dev/null
first_run() { qualitytrace run --server $SERVER --report plain=/work/report; }
until_true 30 'a green run' first_run
echo "green_ms $(($(now_ms) - began))"

list() { qualitytrace runs list --server $SERVER --limit 200 --format name "$@"; }
count() { list "$@" | wc -l; }
have_ended() { [ $(($(count --verdict passed) + $(count --verdict failed) + $(count --verdict inconclusive))) -eq "$(count)" ]; }
# The number of spans in the stored trace of a run.
spans() {
    qualitytrace api GET "/api/v1/runs/$1" --server $SERVER | tr -d ' \n' | grep -o '"trace":{[^}]*}' | grep -o '"spans":[0-9]*' | cut -d: -f2
}
WHOLE=$(spans "$(list | head -n 1)")
[ "$WHOLE" -gt 5 ] || fail "the trace of the first run has $WHOLE spans"

# Starts runs one after the other, until a file is there; a server that is away is tried again. Prints each id that was accepted.
start_runs() {
    while [ ! -e /work/enough ]; do
        answer=$(qualitytrace api POST /api/v1/tests/checkout/runs --server $SERVER 2>/dev/null) || { sleep 0.1; continue; }
        echo "$answer" | tr -d ' \n' | grep -o '"id":"[0-9a-f-]*"' | head -n 1 | cut -d'"' -f4
    done
}
accepted() { [ "$(wc -l </work/accepted)" -ge "$1" ]; }
# Checks that every run that was accepted has ended, none as failed, each with all of its spans. After a kill runs are inconclusive
# for some seconds: the server cannot know that the process before it received no further spans.
check_runs() {
    until_true 60 'every run has ended' have_ended
    list >/work/listed
    while read -r run; do
        grep -q "$run" /work/listed || fail "run $run was accepted and is not there"
        found=$(spans "$run")
        [ "$found" = "$WHOLE" ] || fail "the trace of run $run has $found spans, not $WHOLE: $(qualitytrace runs view "$run" --server $SERVER)"
    done </work/accepted
    [ "$(count --verdict failed)" -eq 0 ] || fail 'a run of a shop without faults failed'
    echo "$1: $(wc -l </work/accepted) runs with $WHOLE spans each; verdicts: $(count --verdict passed) passed, $(count --verdict inconclusive) inconclusive"
}

# Reload: another level of the log, by the same process.
sed -i 's/level: info/level: debug/' /etc/qualitytrace/quality-trace-config.yaml
systemctl reload qualitytrace || fail 'it does not reload'
reloaded() { journalctl -u qualitytrace --no-pager | grep -qi reload && is ActiveState active; }
until_true 10 'the reload is logged' reloaded
[ "$(property MainPID)" = "$PID" ] || fail 'a reload started another process'

# Kill while runs are in progress: systemd starts the server again, and they end.
: >/work/accepted
start_runs >>/work/accepted &
STARTER=$!
until_true 30 'ten runs are accepted' accepted 10
systemctl kill -s KILL qualitytrace
until_true 30 'systemd starts it again' is NRestarts 1
until_true 30 'it is ready again' is_ready
[ "$(property MainPID)" != "$PID" ] || fail 'the process was not killed'
until_true 30 'thirty runs are accepted' accepted 30
touch /work/enough
wait $STARTER
check_runs 'kill -9'

# Restart and stop while runs are in progress: the server ends in its time, and a further start ends the runs.
for action in restart stop; do
    rm /work/enough
    : >/work/accepted
    start_runs >>/work/accepted &
    STARTER=$!
    until_true 30 'ten runs are accepted' accepted 10
    began=$(now_ms)
    systemctl $action qualitytrace || fail "systemctl $action"
    echo "$action took $(($(now_ms) - began)) ms"
    touch /work/enough
    wait $STARTER
    [ "$(property Result)" = success ] || fail "after $action the result is $(property Result)"
    [ $action = restart ] || { is ActiveState inactive || fail 'it is not stopped'; systemctl start qualitytrace; }
    until_true 30 'it is ready again' is_ready
    check_runs "$action"
done
