# shellcheck shell=bash
# Commands and files of a GitHub workflow, for the scripts beside this one, which source it.

# escape TEXT: the text as the data of a command.
escape() {
  local text=$1
  text=${text//'%'/%25}
  text=${text//$'\r'/%0D}
  printf '%s' "${text//$'\n'/%0A}"
}

# escape_property TEXT: the text as the value of a property of a command.
escape_property() {
  local text
  text=$(escape "$1")
  text=${text//:/%3A}
  printf '%s' "${text//,/%2C}"
}

# annotate LEVEL TEXT: an annotation of the job.
annotate() {
  printf '::%s title=Qualitytrace::%s\n' "$1" "$(escape "$2")"
}

# output NAME VALUE: an output of the step. A line break would begin an output of another name.
output() {
  case $2 in
    *$'\n'* | *$'\r'*)
      annotate error "The value of the output \`$1\` has a line break."
      exit 2
      ;;
  esac
  printf '%s=%s\n' "$1" "$2" >> "$GITHUB_OUTPUT"
}
