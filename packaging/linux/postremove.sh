#!/bin/sh
# Arguments: deb `remove`, `purge` and others, rpm the number of versions that are left.
set -e

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi

# rpm has no purge: it leaves changed configuration and the state.
if [ "$1" = purge ]; then
  # The state directory of a dynamic user is a link.
  rm -rf /var/lib/qualitytrace /var/lib/private/qualitytrace /etc/qualitytrace
fi
