#!/bin/sh
# Starts what the coordinator of a federation of FedLap runs:
#   start.sh             both processes; one that ends is started again, until Ctrl-C or SIGTERM
#   start.sh superlink   the server that all connect to, in the foreground
#   start.sh superexec   what runs the ServerApp, in the foreground
set -eu
umask 077
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

stop() {
    echo "start.sh: $*" >&2
    exit 2
}

for file in coordinator.env ca.crt server.crt server.key superexec-secret; do
    [ -r "$here/$file" ] || stop "there is no $here/$file: run 'fedlap keys issue' again"
done
# shellcheck source=/dev/null
. "$here/coordinator.env"

PATH="$FEDLAP_BIN:$PATH"
FLWR_HOME="$here/state/flwr"
FEDLAP_HOME="${FEDLAP_HOME:-$here/state/fedlap}"
FEDLAP_FEDERATION="$here/federation.toml"
FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1
FLWR_DISABLE_UPDATE_CHECK=1
FLWR_TELEMETRY_ENABLED=0
FLWR_SUPEREXEC_TASK_POLL_INTERVAL=0.5
FEDLAP_LOG="${FEDLAP_LOG:-text}"
FEDLAP_LOG_FILE="${FEDLAP_LOG_FILE:-$here/state/serverapp.log}"
export PATH FLWR_HOME FEDLAP_HOME FEDLAP_LOG FEDLAP_LOG_FILE FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION FLWR_DISABLE_UPDATE_CHECK FLWR_TELEMETRY_ENABLED FEDLAP_FEDERATION FLWR_SUPEREXEC_TASK_POLL_INTERVAL
mkdir -p "$FLWR_HOME"

good() {
    [ ! -x "$FEDLAP_BIN/python" ] || "$FEDLAP_BIN/python" -I -m fedlap_app.deploy.expiry "$here/$1" \
        "run 'fedlap keys issue --renew' at the coordinator, then start the SuperLink again" || exit 2
}

superlink() {
    good server.crt
    exec flower-superlink \
        --host @listen-host@ --port @listen-port@ \
        --ssl-ca-certfile "$here/ca.crt" \
        --ssl-certfile "$here/server.crt" \
        --ssl-keyfile "$here/server.key" \
        --enable-supernode-auth \
        --isolation process \
        --superexec-auth-secret-file "$here/superexec-secret" \
        --database "$here/state/state.db" \
        --disable-runtime-dependency-installation
}

superexec() {
    exec flower-superexec \
        --root-certificates "$here/ca.crt" \
        --runtime-api-address @own-address@ \
        --superexec-auth-secret-file "$here/superexec-secret"
}

@supervisor@
case "${1:-both}" in
    superlink) superlink ;;
    superexec) superexec ;;
    both) both superlink superexec ;;
    *) stop "unknown process '$1': say superlink, superexec or nothing" ;;
esac
