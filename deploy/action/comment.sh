#!/usr/bin/env bash
# The third step of the GitHub action: writes the report as the one comment of this use of the action on the pull request, or
# updates it. What goes wrong here is a warning: a comment that is missing changes no verdict.
set -euo pipefail
# shellcheck source=deploy/action/workflow.sh
. "$GITHUB_ACTION_PATH/deploy/action/workflow.sh"

# 100 comments each.
PAGES_MAX=30

here=$GITHUB_ACTION_PATH/deploy/action
umask 077
scratch=$(mktemp -d "$RUNNER_TEMP/qualitytrace-comment.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

give_up() {
  annotate warning "No comment was written: $1"
  exit 0
}

number=$(jq -r '.pull_request.number // empty' "$GITHUB_EVENT_PATH")
if [ -z "$number" ]; then
  echo "The event \`$GITHUB_EVENT_NAME\` is about no pull request: there is no comment to write."
  exit 0
fi
commit=$(jq -r '.pull_request.head.sha // empty' "$GITHUB_EVENT_PATH")
key=${INPUT_COMMENT_KEY:-$GITHUB_WORKFLOW / $GITHUB_JOB}
# Letters and digits stay, so that nothing in a key ends the HTML comment. Not `@uri`, which differs between versions of jq.
marker=$(jq -nr --arg key "$key" '
  def is_plain: (. >= 48 and . <= 57) or (. >= 65 and . <= 90) or (. >= 97 and . <= 122);
  "<!-- qualitytrace: \($key | explode | map(if is_plain then [.] | implode else "_\(.)_" end) | join("")) -->"')
comments=$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues/$number/comments
# A file, because the arguments of a process are seen by every user of the machine.
printf 'Authorization: Bearer %s\n' "$INPUT_TOKEN" > "$scratch/headers"
printf '%s\n' 'Accept: application/vnd.github+json' 'X-GitHub-Api-Version: 2022-11-28' 'Content-Type: application/json' >> "$scratch/headers"

# request METHOD URL [ARGUMENT…]: the response is in `$scratch/response`, its headers in `$scratch/received`; sets `status`.
request() {
  local method=$1 url=$2
  shift 2
  status=$(curl --silent --show-error --connect-timeout 10 --max-time 60 --request "$method" --header "@$scratch/headers" \
    --dump-header "$scratch/received" --output "$scratch/response" --write-out '%{http_code}' "$@" "$url") ||
    give_up "$method $url got no response. Repeat the job."
  case $status in
    2??) ;;
    401 | 403 | 404) give_up "GitHub responded to $method $url with $status: the token may not do that. Give the job \`permissions: pull-requests: write\`. For pull requests of forks and of Dependabot GitHub gives a token that may only read." ;;
    *) give_up "GitHub responded to $method $url with $status: $(jq -r '.message // empty' "$scratch/response" 2> /dev/null || true)" ;;
  esac
}

# find_comment: sets `id` to the oldest comment with the marker by the author. A comment of any other person is left alone: its author
# could change what we wrote there.
find_comment() {
  local page=1
  id=
  while [ "$page" -le "$PAGES_MAX" ]; do
    request GET "$comments?per_page=100&page=$page" --retry 3
    id=$(jq -r --arg marker "$marker" --arg author "$INPUT_COMMENT_AUTHOR" \
      'map(select(.user.login == $author and (.body // "" | startswith($marker))) | .id) | first // empty' "$scratch/response")
    if [ -n "$id" ] || ! grep -qi '^link:.*rel="next"' "$scratch/received"; then return; fi
    page=$((page + 1))
  done
  give_up "there are more than $((PAGES_MAX * 100)) comments, and an earlier one of ours could be among the others."
}

report=${REPORT_DIRECTORY:+$REPORT_DIRECTORY/summary.md}
if [ -z "$report" ] || [ ! -s "$report" ]; then
  report=$scratch/report.md
  printf '### Qualitytrace: no test ran\n\nThe program could not be installed or started: the log of the job has the reason.\n' > "$report"
fi
jq -n --rawfile report "$report" --arg marker "$marker" --arg key "$key" --arg commit "$commit" \
  --arg url "$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID" \
  --from-file "$here/comment.jq" > "$scratch/body"

find_comment
if [ -n "$id" ]; then
  request PATCH "$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues/comments/$id" --retry 3 --data-binary "@$scratch/body"
else
  # Not repeated: a request without a response may have written it.
  request POST "$comments" --data-binary "@$scratch/body"
  login=$(jq -r '.user.login' "$scratch/response")
  if [ "$login" != "$INPUT_COMMENT_AUTHOR" ]; then
    annotate warning "The token writes as \`$login\`, and the input \`comment-author\` is \`$INPUT_COMMENT_AUTHOR\`: the next run would write a second comment. Set \`comment-author: $login\`."
  fi
fi
url=$(jq -r '.html_url // empty' "$scratch/response")
echo "The comment is $url"
output comment-url "$url"
