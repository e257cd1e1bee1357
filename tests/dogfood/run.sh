#!/bin/sh
# Qualitytrace tests Qualitytrace: starts an observer and a subject, and runs the suite, or the command in the arguments.
# It needs `qualitytrace`, `otelcol`, curl, and Postgres: PGHOST, PGPORT, PGUSER, PGPASSWORD, and its programs in PATH.
# Results are in OUT. The observer's database stays, so that the trend has a past. JAEGER is the OTLP address of a Jaeger.
set -eu
here=$(cd "$(dirname "$0")" && pwd) port=${PORT:-14300} pids=
qualitytrace=${QUALITYTRACE:-qualitytrace} otelcol=${OTELCOL:-otelcol}
at() { echo "127.0.0.1:$((port + $1))"; }
export OUT="${OUT:-dogfood}" OBSERVER_DB="${OBSERVER_DB:-observer}" SUBJECT_DB="subject_$port" WORK="$(mktemp -d)"
export OBSERVER="http://$(at 0)" OBSERVER_OTLP="$(at 1)" SUBJECT="http://$(at 3)" SUBJECT_OTLP="$(at 4)" SHOP="http://$(at 6)"
export COLLECTOR="$(at 7)" COLLECTOR_HEALTH="$(at 8)" RELAY="$(at 9)" RELAY_HEALTH="$(at 10)"
rm -rf "$OUT/traces" && mkdir -p "$OUT" # Traces of an earlier run would be taken for ours.

finish() { # Ends all in reverse order. A program that does not end well fails the script.
  code=$? && trap - EXIT INT TERM
  for pid in $pids; do kill "$pid" && wait "$pid" || { code=1 && echo "process $pid did not end well" >&2; }; done
  dropdb --if-exists --force "$SUBJECT_DB" && rm -rf "$WORK"
  exit "$code"
}
trap finish EXIT && trap 'exit 130' INT && trap 'exit 143' TERM
up() { # NAME URL COMMAND…: starts a program, and waits until the URL answers.
  log=$OUT/$1.log url=$2 tries=0 && shift 2
  "$@" > "$log" 2>&1 & pids="$! $pids"
  until curl -sf -o "$WORK/answer" "$url"; do
    tries=$((tries + 1)) && [ "$tries" -lt 600 ] && kill -0 "$!" && sleep 0.1 || { cat "$log" >&2 && exit 1; }
  done
}
serve() { # NAME PORT: starts a server with its file in `stand`.
  up "$1" "http://$(at "$2")/readyz" "$qualitytrace" serve --config "$here/stand/$1.yaml" \
    --http "$(at "$2")" --otlp-grpc "$(at $(($2 + 1)))" --otlp-http "$(at $(($2 + 2)))"
}
psql -qXd "$OBSERVER_DB" -c '' 2> "$WORK/none" || createdb "$OBSERVER_DB"
serve observer 0
up collector "http://$COLLECTOR_HEALTH" "$otelcol" --config "$here/stand/collector.yaml" ${JAEGER:+--config "$here/stand/jaeger.yaml"}
[ -z "${PLANT:-}" ] || export QUALITYTRACE_TEST_PLANT="$PLANT"
createdb "$SUBJECT_DB" && serve subject 3
up relay "http://$RELAY_HEALTH" "$otelcol" --config "$here/stand/relay.yaml"
up shop "$SHOP/products" "$qualitytrace" demo --http "$(at 6)" --otlp "http://$SUBJECT_OTLP"

# The subject gets documents, twelve runs, and a variable set that its key does not open.
token() { "$qualitytrace" token create --config "$here/stand/subject.yaml" --role "$1" --name "$1"; }
TOKEN=$(token admin) VIEWER=$(token viewer) PAST=
fill() { sed "s|@SHOP@|$SHOP|; s|@SUBJECT@|$SUBJECT|; s|@RELAY@|http://$RELAY|; s|@PAST@|$PAST|; s|@TOKEN@|$TOKEN|; s|@VIEWER@|$VIEWER|" "$here/$1"; }
ask() { path=$1 && shift && curl -sf -H "Authorization: Bearer $TOKEN" "$@" "$SUBJECT/api/v1/$path"; }
fill subject/documents.yaml > "$WORK/documents.yaml"
"$qualitytrace" apply "$WORK/documents.yaml" --server "$SUBJECT" --token "$TOKEN"
for n in 0 1 2 3 4 5 6 7 8 9 10 11; do
  PAST=$(ask tests/products/runs -H "Idempotency-Key: dogfood-$n" -d '{"variableSets":["shop"]}' | sed 's/.*"id": *"\([^"]*\)".*/\1/')
  run= && until echo "$run" | grep -q '"state": *"ended"'; do sleep 0.05 && run=$(ask "runs/$PAST"); done
done
psql -qXd "$SUBJECT_DB" -v ON_ERROR_STOP=1 -c "update document_versions set sealed = '\\x00' where document_id = 'lost'"
fill stand/variables.yaml > "$WORK/variables.yaml"
"$qualitytrace" apply "$WORK/variables.yaml" --server "$OBSERVER"

suite() {
  "$qualitytrace" run "$here/tests" --server "$OBSERVER" --variable-set subject --revision "${REVISION:-unknown}" --traces "$OUT/traces" \
    --report html="$OUT/report.html" --report junit="$OUT/junit.xml" --report json="$OUT/report.json" && code=0 || code=$?
  "$qualitytrace" trend --server "$OBSERVER" > "$OUT/trend.txt" && return "$code"
}
"${@:-suite}"
