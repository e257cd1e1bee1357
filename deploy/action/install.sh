#!/usr/bin/env bash
# The first step of the GitHub action: checks the inputs, and installs the program or takes the one of the input `binary`.
set -euo pipefail
# shellcheck source=deploy/action/workflow.sh
. "$GITHUB_ACTION_PATH/deploy/action/workflow.sh"

fail() {
  annotate error "$1"
  exit 2
}

sha256() {
  if command -v sha256sum > /dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

for input in "trust=$INPUT_TRUST" "annotations=$INPUT_ANNOTATIONS" "summary=$INPUT_SUMMARY" "comment=$INPUT_COMMENT"; do
  case ${input#*=} in
    true | false) ;;
    *) fail "The input \`${input%%=*}\` is \`${input#*=}\`: write true or false." ;;
  esac
done
for program in curl jq; do
  command -v "$program" > /dev/null || fail "The runner has no \`$program\`: install it, or use a runner of GitHub."
done

checksum=
if [ -n "$INPUT_BINARY" ]; then
  [ -z "$INPUT_CHECKSUM" ] || fail "The input \`checksum\` is of what is installed, and with \`binary\` nothing is: leave one of them out."
  program=$INPUT_BINARY
  case $program in /*) ;; *) program=$PWD/$program ;; esac
  [ -f "$program" ] && [ -x "$program" ] || fail "The input \`binary\` names \`$INPUT_BINARY\`, which is no program: give its path from the root of the workspace."
else
  case $INPUT_VERSION in
    '' | *[!0-9A-Za-z.+-]* | [!0-9]*) fail "The input \`version\` is \`$INPUT_VERSION\`: write the version of a release, such as 0.1.0." ;;
  esac
  # The files of the release belong to the repository that the action is from, which may be a fork. A local action is from none.
  base=${INPUT_BASE_URL:-$GITHUB_SERVER_URL/${ACTION_REPOSITORY:-qualitytrace/qualitytrace}/releases/download/v$INPUT_VERSION}
  base=${base%/}
  folder=$RUNNER_TEMP/qualitytrace-$INPUT_VERSION
  script=$folder/install.sh
  mkdir -p "$folder"
  curl --fail --silent --show-error --location --retry 3 --connect-timeout 10 --max-time 300 --output "$script" "$base/install.sh" ||
    fail "$base/install.sh could not be downloaded: is there a release $INPUT_VERSION? The inputs \`version\` and \`base-url\` say which one."
  # The script has the checksums of the archives: with its own checksum, all of the release is fixed.
  checksum=$(sha256 "$script")
  if [ -n "$INPUT_CHECKSUM" ] && [ "$INPUT_CHECKSUM" != "$checksum" ]; then
    fail "The SHA-256 of $base/install.sh is $checksum, and the input \`checksum\` is $INPUT_CHECKSUM: nothing was installed. Each version has its own."
  fi
  QUALITYTRACE_PREFIX=$folder QUALITYTRACE_DOWNLOAD=$base sh "$script" ||
    fail "Qualitytrace $INPUT_VERSION could not be installed from $base: the log has the reason."
  program=$folder/bin/qualitytrace
fi

version=$("$program" --version | head -n 1)
if [ -z "$INPUT_BINARY" ]; then
  case "$version " in
    "qualitytrace $INPUT_VERSION "*) ;;
    *) fail "The input \`version\` is $INPUT_VERSION, and what $base has is $version: the input \`base-url\` names another release." ;;
  esac
fi
echo "$version${checksum:+, the SHA-256 of its install.sh is $checksum}"
output program "$program"
output version "$version"
output checksum "$checksum"
dirname "$program" >> "$GITHUB_PATH"
