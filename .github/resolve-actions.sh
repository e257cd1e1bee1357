#!/usr/bin/env bash
# Reads the commit of every action in actions.txt from its repository, and writes it there and into the workflows.
# It changes files of the checkout only: the workflow `actions` uploads the difference, and a person reviews it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# resolve REPOSITORY TAG: prints the commit. An annotated tag is an object of its own: `^{}` is the commit that it is for.
resolve() {
  local references commit
  references=$(git ls-remote --exit-code "https://github.com/$1" "refs/tags/$2" "refs/tags/$2^{}" "refs/heads/$2")
  commit=$(awk '$2 ~ /\^\{\}$/ { print $1 }' <<< "$references")
  if [ -z "$commit" ]; then commit=$(awk 'NR == 1 { print $1 }' <<< "$references"); fi
  if ! [[ $commit =~ ^[0-9a-f]{40}$ ]]; then
    echo "error: \`$2\` of \`$1\` is at no commit: $references" >&2
    exit 1
  fi
  echo "$commit"
}

new=$(mktemp)
trap 'rm -f "$new"' EXIT
while IFS= read -r line; do
  case $line in
    '#'* | '') printf '%s\n' "$line" ;;
    *)
      read -r name tag _ <<< "$line"
      # An action may be in a folder of its repository.
      repository=$(cut -d / -f 1,2 <<< "$name")
      commit=$(resolve "$repository" "$tag")
      printf '%-32s %-11s %s\n' "$name" "$tag" "$commit"
      for workflow in workflows/*.yml; do
        sed -E -i "s|(uses: $name)@($tag\|[0-9a-f]{40} # $tag)\$|\\1@$commit # $tag|" "$workflow"
      done
      ;;
  esac
done < actions.txt > "$new"
cat "$new" > actions.txt
