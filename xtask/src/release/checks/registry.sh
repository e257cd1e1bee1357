# Publishes every package to a registry on loopback, and installs by name. `version` is the release's.
fail() {
  cat ~/registry/log
  echo "error: $1"
  exit 1
}
npm() {
  node /opt/npm/bin/npm-cli.js "$@" --registry http://127.0.0.1:4873/ --//127.0.0.1:4873/:_authToken=none --fetch-retries 0
}
mkdir ~/registry
cp /opt/verdaccio/config.yaml ~/registry/config.yaml
node /opt/verdaccio/node_modules/verdaccio/bin/verdaccio --config ~/registry/config.yaml --listen 127.0.0.1:4873 \
  > ~/registry/log 2>&1 &
for _ in $(seq 300); do
  if curl --silent --output /dev/null http://127.0.0.1:4873/; then break; fi
  sleep 0.1
done
for package in /srv/*.tgz; do
  npm publish "$package" || fail "$package cannot be published"
done
npm install --global --prefix ~/by-name --ignore-scripts --no-audit --no-fund "qualitytrace@$version" ||
  fail 'npm cannot install it by name'
printed=$(~/by-name/bin/qualitytrace --version)
case "$printed" in qualitytrace*) ;; *) fail "\`qualitytrace --version\` prints \`$printed\`" ;; esac
# The program of the other platform stays away.
other=~/by-name/lib/node_modules/qualitytrace/node_modules/qualitytrace-linux-arm64
[ ! -e "$other/bin/qualitytrace" ] || fail 'npm installed the program of another platform too'
