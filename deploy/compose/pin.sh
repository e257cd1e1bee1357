#!/bin/sh
# Writes the digest of each image beside its version, as its registry has it now: `image: name:version@sha256:…`.
# A version that has a digest gets the present one. Needs crane.
set -eu
cd "${1:-$(dirname "$0")}"

command -v crane >/dev/null || { echo "error: there is no crane to read digests with; see docs/deploy/compose.md" >&2; exit 2; }
own=$(sed -n 's/^QUALITYTRACE_IMAGE=//p' .env)
others=$(sed -n 's/^ *image: \([^"$]*\)$/\1/p' compose.*yaml | sort -u)
for image in $own $others; do
    version="${image%%@*}"
    digest=$(crane digest "$version") || { echo "error: the digest of $version cannot be read" >&2; exit 1; }
    case "$digest" in
        sha256:????????????????????????????????????????????????????????????????) ;;
        *) echo "error: the registry has \`$digest\` for $version, which is no digest" >&2; exit 1 ;;
    esac
    for file in .env compose.*yaml; do
        sed -e "s#\(image: $version\)\(@sha256:[0-9a-f]*\)\{0,1\}\$#\1@$digest#" \
            -e "s#\(QUALITYTRACE_IMAGE=$version\)\(@sha256:[0-9a-f]*\)\{0,1\}\$#\1@$digest#" "$file" >"$file.new"
        mv "$file.new" "$file"
    done
    echo "$version@$digest"
done
