#!/bin/sh
# Flower's own command with the connection `fedlap` to this SuperLink, for example:
#   flwr.sh run /path/to/the/app fedlap --stream
#   flwr.sh supernode list fedlap
# FEDLAP_SUPERLINK names another HOST:PORT of it, as in a container.
set -eu
umask 077
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
# shellcheck source=/dev/null
. "$here/coordinator.env"

PATH="$FEDLAP_BIN:$PATH"
FLWR_HOME="$here/state/flwr"
FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1
FLWR_DISABLE_UPDATE_CHECK=1
FLWR_TELEMETRY_ENABLED=0
export PATH FLWR_HOME FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION FLWR_DISABLE_UPDATE_CHECK FLWR_TELEMETRY_ENABLED
[ ! -x "$FEDLAP_BIN/python" ] || "$FEDLAP_BIN/python" -I -m fedlap_app.deploy.expiry "$here/server.crt" \
    "run 'fedlap keys issue --renew' at the coordinator, then start the SuperLink again" || exit 2
mkdir -p "$FLWR_HOME"
cat > "$FLWR_HOME/config.toml" <<END
[superlink]
default = "fedlap"

[superlink.fedlap]
address = "${FEDLAP_SUPERLINK:-@own-address@}"
root-certificates = "$here/ca.crt"
END
exec flwr "$@"
