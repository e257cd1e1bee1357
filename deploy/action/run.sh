#!/usr/bin/env bash
# The second step of the GitHub action: runs the tests and writes annotations, summary and outputs. The last step of the action
# ends with the exit code that this one writes.
set -euo pipefail
# shellcheck source=deploy/action/workflow.sh
. "$GITHUB_ACTION_PATH/deploy/action/workflow.sh"

# The last lines of the program's messages that are in the summary of a run without an outcome.
MESSAGE_LINES_MAX=40
MESSAGE_BYTES_MAX=16384
# GitHub shows the first ten errors of a step.
DIAGNOSTICS_MAX=10

directory=$INPUT_REPORT_DIRECTORY
if [ -z "$directory" ]; then
  directory=$(mktemp -d "$RUNNER_TEMP/qualitytrace-report.XXXXXX")
fi
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
scratch=$(mktemp -d "$RUNNER_TEMP/qualitytrace-scratch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
# A refused command line leaves the files of an earlier run as they are.
rm -f "$directory"/{junit.xml,report.html,report.json,annotations.txt,summary.md}

# add_lines TEXT: appends each line that is not empty to `words`.
add_lines() {
  local line
  while IFS= read -r line || [ -n "$line" ]; do
    if [ -n "$line" ]; then words+=("$line"); fi
  done <<< "$1"
}

words=(run --report "junit=$directory/junit.xml" --report "html=$directory/report.html"
  --report "json=$directory/report.json" --report "markdown=$directory/summary.md" --report "github=$directory/annotations.txt")
if [ "$INPUT_TRUST" = true ]; then words+=(--trust); fi
add_lines "$INPUT_ARGS"
add_lines "$INPUT_PATHS"
if [ -n "$INPUT_COMMAND" ]; then words+=(-- sh -c "$INPUT_COMMAND"); fi

# run: runs the program, and passes on that the job is cancelled. Sets `code`.
run() {
  local reader process
  mkfifo "$scratch/messages"
  tee "$scratch/messages.txt" < "$scratch/messages" >&2 &
  reader=$!
  (cd "$INPUT_WORKING_DIRECTORY" && exec "$PROGRAM" "${words[@]}") 2> "$scratch/messages" &
  process=$!
  # A process in the background ignores SIGINT, so it gets SIGTERM for both.
  trap 'kill -TERM "$process" 2> /dev/null || true' INT TERM
  code=0
  wait "$process" || code=$?
  # A signal ends `wait` before the process has ended.
  while kill -0 "$process" 2> /dev/null; do
    code=0
    wait "$process" || code=$?
  done
  trap - INT TERM
  wait "$reader" || true
}

# The output of the system under test could have lines that the runner reads as commands: they have no effect until this word.
resume=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
printf '::stop-commands::%s\n' "$resume"
run
printf '\n::%s::\n' "$resume"

case $code in
  0) verdict=passed ;;
  1) verdict=failed ;;
  3) verdict=inconclusive ;;
  130 | 143) verdict=interrupted ;;
  *) verdict=error ;;
esac

# count VERDICT: the number of outcomes with this verdict.
count() {
  if [ -s "$directory/report.json" ]; then
    jq --slurp --arg verdict "$1" 'map(select(.outcome.verdict == $verdict)) | length' "$directory/report.json"
  else
    echo 0
  fi
}
passed=$(count passed) failed=$(count failed) inconclusive=$(count inconclusive)
tests=$((passed + failed + inconclusive))

# The program names files from its working directory, and GitHub from the root of the workspace.
from=${INPUT_WORKING_DIRECTORY#./}
from=${from%/}
case $from in
  . | '') from= ;;
  *) from=$from/ ;;
esac

# annotate_report: the annotations of the report, with the names of files as GitHub knows them.
annotate_report() {
  local line prefix
  prefix=$(escape_property "$from")
  while IFS= read -r line; do
    case $line in
      '::error file=/'*) ;;
      '::error file='*) line="::error file=$prefix${line#::error file=}" ;;
    esac
    printf '%s\n' "$line"
  done < "$directory/annotations.txt"
}

# annotate_diagnostics: an annotation for each error in a document: a message, and below it an arrow with file, line and column.
annotate_diagnostics() {
  local line message='' place='^ *--> ([^/].*):([0-9]+):([0-9]+)$' left=$DIAGNOSTICS_MAX
  while IFS= read -r line && [ "$left" -gt 0 ]; do
    if [[ $line == 'error: '* ]]; then
      message=${line#error: }
    elif [[ -n $message && $line =~ $place ]]; then
      printf '::error file=%s,line=%s,col=%s,title=Qualitytrace::%s\n' "$(escape_property "$from${BASH_REMATCH[1]}")" \
        "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}" "$(escape "$message")"
      message='' left=$((left - 1))
    fi
  done < "$scratch/messages.txt"
}

if [ "$INPUT_ANNOTATIONS" = true ] && [ "$tests" -gt 0 ]; then
  annotate_report
elif [ "$INPUT_ANNOTATIONS" = true ] && [ "$code" -eq 2 ]; then
  annotate_diagnostics
fi
case $verdict in
  error) annotate error "\`qualitytrace run\` ended with exit code $code: the usage, the configuration or a document is wrong, or a test was refused. The log of this step has the reason." ;;
  interrupted) annotate error "\`qualitytrace run\` was interrupted (exit code $code). The reports have the tests that had ended." ;;
esac

if [ "$tests" -eq 0 ]; then
  {
    printf '### Qualitytrace: no test ran\n\nExit code %s. The messages of the program end with:\n\n<pre>\n' "$code"
    tail -n "$MESSAGE_LINES_MAX" "$scratch/messages.txt" | tail -c "$MESSAGE_BYTES_MAX" | jq -Rr @html
    printf '</pre>\n'
  } > "$directory/summary.md"
fi
if [ "$INPUT_SUMMARY" = true ]; then cat "$directory/summary.md" >> "$GITHUB_STEP_SUMMARY"; fi

output verdict "$verdict"
output exit-code "$code"
output tests "$tests"
output passed "$passed"
output failed "$failed"
output inconclusive "$inconclusive"
output report-directory "$directory"
