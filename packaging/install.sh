#!/bin/sh
# Installs Qualitytrace @VERSION@ for one user, without root: downloads the archive for this machine and verifies its checksum.
# Each release has its own script, with the checksums of its archives. Needs curl or wget, tar and gzip.
#
# Usage: sh install.sh [--prefix DIR] [--from URL]
#   --prefix DIR   installs into DIR/bin and DIR/share [default: $QUALITYTRACE_PREFIX, else ~/.local]
#   --from URL     the folder of the archives, such as a mirror [default: $QUALITYTRACE_DOWNLOAD, else the release's page]
set -eu

version='@VERSION@'
repository='@REPOSITORY@'
sums='@SUMS@'

fail() {
  echo "error: $1" >&2
  exit 1
}

has() {
  command -v "$1" > /dev/null 2>&1
}

target() {
  system=$(uname -s)
  processor=$(uname -m)
  case "$system $processor" in
    'Linux x86_64' | 'Linux amd64') echo x86_64-unknown-linux-musl ;;
    'Linux aarch64' | 'Linux arm64') echo aarch64-unknown-linux-musl ;;
    *) fail "there is no program for $system on $processor: build it from the sources, see $repository" ;;
  esac
}

download() {
  if has curl; then
    curl --fail --silent --show-error --location --retry 2 --output "$2" "$1"
  elif has wget; then
    wget --quiet --output-document "$2" "$1"
  else
    fail "neither curl nor wget is installed"
  fi || fail "$1 cannot be downloaded"
}

checksum() {
  if has sha256sum; then
    line=$(sha256sum "$1")
  elif has shasum; then
    line=$(shasum -a 256 "$1")
  elif has openssl; then
    line=$(openssl dgst -sha256 -r "$1")
  else
    fail "no program computes SHA-256: install sha256sum, shasum or openssl"
  fi
  echo "${line%% *}"
}

# Replaces a file in one step: it may be executed just now.
place() {
  mkdir -p "${2%/*}"
  cp "$1" "$2.new"
  chmod "$3" "$2.new"
  mv -f "$2.new" "$2"
}

main() {
  prefix=${QUALITYTRACE_PREFIX:-${HOME:?}/.local}
  from=${QUALITYTRACE_DOWNLOAD:-$repository/releases/download/v$version}
  while [ $# -gt 0 ]; do
    case "$1" in
      --prefix | --from) [ $# -gt 1 ] || fail "\`$1\` wants a value" ;;
      *) fail "\`$1\` is not a flag: expected \`--prefix DIR\` or \`--from URL\`" ;;
    esac
    if [ "$1" = --prefix ]; then prefix=$2; else from=$2; fi
    shift 2
  done

  name=qualitytrace-$version-$(target)
  expected=$(echo "$sums" | while read -r sum file; do [ "$file" = "$name.tar.gz" ] && echo "$sum"; done) || true
  [ -n "$expected" ] || fail "this release has no archive $name.tar.gz"

  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  echo "downloading $from/$name.tar.gz" >&2
  download "$from/$name.tar.gz" "$work/archive.tar.gz"
  found=$(checksum "$work/archive.tar.gz")
  [ "$found" = "$expected" ] ||
    fail "the checksum of $name.tar.gz is wrong: expected $expected, found $found; nothing was installed"
  tar -xzf "$work/archive.tar.gz" -C "$work"

  folder=$work/$name
  for page in "$folder"/man/*.1; do
    place "$page" "$prefix/share/man/man1/${page##*/}" 644
  done
  place "$folder/completions/qualitytrace.bash" "$prefix/share/bash-completion/completions/qualitytrace" 644
  place "$folder/completions/_qualitytrace" "$prefix/share/zsh/site-functions/_qualitytrace" 644
  place "$folder/completions/qualitytrace.fish" "$prefix/share/fish/vendor_completions.d/qualitytrace.fish" 644
  place "$folder/qualitytrace" "$prefix/bin/qualitytrace" 755
  echo "installed $prefix/bin/qualitytrace $version" >&2
  case ":${PATH:-}:" in
    *":$prefix/bin:"*) ;;
    *) echo "note: $prefix/bin is not in PATH" >&2 ;;
  esac
}

# The last line: a script that arrived in part does nothing.
main "$@"
