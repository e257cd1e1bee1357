#!/bin/sh
# Arguments: deb `remove` or `upgrade NEW-VERSION`, rpm the number of versions that will be left.
set -e

[ -d /run/systemd/system ] || exit 0

# During an upgrade the server runs on, and is restarted at its end.
case "$1" in
  remove | 0) systemctl disable --now qualitytrace.service ;;
esac
