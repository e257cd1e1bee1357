#!/bin/sh
# Makes the pictures of `docs/dogfooding.md`: a trace of a subject that notifies workers twice, and the trend of four runs around it.
# It needs what `run.sh` needs, chromium, and in QUALITYTRACE a binary that was built with `--features planted`.
set -eu
cd "$(dirname "$0")"
images=$PWD/../../docs/img out=$(mktemp -d) names="start-run-hint start-run list-runs read-run"
trap 'dropdb --if-exists --force pictures; rm -rf "$out"' EXIT
dropdb --if-exists --force pictures
run() { # FAULT: runs a few tests on a subject with this fault, or with none. That one fails is what is wanted.
  PLANT=$1 OBSERVER_DB=pictures OUT=$out ./run.sh sh -c '
    run() { "$QUALITYTRACE" run tests --server "$OBSERVER" --variable-set subject --revision 4f2c1d0 "$@" || true; }
    run --test start-run-hint --report html="$OUT/${PLANT:-good}.html"
    run --test start-run --test list-runs --test read-run
    "$QUALITYTRACE" trend --server "$OBSERVER" '"$names"' > "$OUT/trend.txt"'
}
picture() { # FILE WIDTH,HEIGHT PAGE
  chromium --headless --no-sandbox --hide-scrollbars --window-size="$2" --screenshot="$images/$1" "file://$3"
}
run '' && run '' && run hint-twice && run ''
{
  echo '<meta charset="utf-8"><body style="margin: 16px"><pre style="font: 14px/1.6 monospace; margin: 0">'
  echo "$ qualitytrace trend --server http://127.0.0.1:14300 $names"
  cat "$out/trend.txt"
} > "$out/trend.html"
picture dogfood-failing.png 1000,1130 "$out/hint-twice.html"
picture dogfood-trend.png 1020,150 "$out/trend.html"
