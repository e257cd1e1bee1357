# In a project, by npx; how the program ends; and what the launcher reports without the program.
fail() {
  echo "error: $1"
  exit 1
}
npm() {
  node /opt/npm/bin/npm-cli.js "$@"
}
cd "$(mktemp -d)"
echo '{"name": "project", "version": "1.0.0"}' > package.json
npm install --ignore-scripts --offline --no-audit --no-fund --save-dev "$program" "$launcher"
version=$(node /opt/npm/bin/npx-cli.js qualitytrace --version)
case "$version" in qualitytrace*) ;; *) fail "\`npx qualitytrace --version\` prints \`$version\`" ;; esac

# The exit code is the program's.
code=0
node_modules/.bin/qualitytrace no-such-command 2> /dev/null || code=$?
[ "$code" = 2 ] || fail "wrong usage ends with $code"

# A signal gets to the program, which ends.
node_modules/.bin/qualitytrace demo > demo.log 2>&1 &
launcher_pid=$!
for _ in $(seq 300); do
  if curl --silent --output /dev/null http://127.0.0.1:11634/; then break; fi
  sleep 0.1
done
kill -TERM "$launcher_pid"
wait "$launcher_pid" || true
if curl --silent --output /dev/null http://127.0.0.1:11634/; then fail 'the program runs on'; fi

# Without the program of this platform.
cd "$(mktemp -d)"
echo '{"name": "project", "version": "1.0.0"}' > package.json
npm install --ignore-scripts --offline --no-audit --no-fund --omit=optional "$launcher"
code=0
node_modules/.bin/qualitytrace --version 2> missing.log || code=$?
cat missing.log
[ "$code" = 2 ] || fail "without the program it ends with $code"
grep -q 'is not installed' missing.log || fail 'it does not report what is missing'
