#!/bin/sh
# Arguments: deb `configure OLD-VERSION`, rpm the number of versions that are installed now.
set -e

# In a container or a chroot there is no service manager.
[ -d /run/systemd/system ] || exit 0

systemctl daemon-reload
case "$1 $2" in
  "configure " | "1 "*) ;; # The first installation: the server needs its configuration before its first start.
  "configure "* | [2-9]*) systemctl try-restart qualitytrace.service ;;
esac
