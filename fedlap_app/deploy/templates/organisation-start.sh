#!/bin/sh
# Starts what an organisation runs in a federation of FedLap; written by its own `fedlap keys request`:
#   start.sh             both processes; one that ends is started again, until Ctrl-C or SIGTERM
#   start.sh supernode   the connection to the SuperLink, in the foreground
#   start.sh superexec   what runs the installed ClientApp beside the data, in the foreground
#   start.sh predict     predictions.csv for the nodes that the organisation has now, once
set -eu
umask 077
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

stop() {
    echo "start.sh: $*" >&2
    exit 2
}

case "$here" in *\'*) stop "the path $here has a quote in it: move the folder" ;; esac
for file in organisation.env keys/supernode keys/superexec-secret keys/runtime.key; do
    [ -r "$here/$file" ] || stop "there is no $here/$file: run 'fedlap keys request' again"
done
for file in ca.crt federation.toml; do
    [ -r "$here/$file" ] || stop "there is no $here/$file: put the file here that the coordinator sent"
done
# Host and port are all that is taken from the coordinator's file, and only in these letters.
address=$(sed -n '@address@' "$here/federation.toml" | head -n 1)
[ -n "$address" ] || stop "$here/federation.toml names no address of a SuperLink: ask the coordinator for the file again"
# shellcheck source=/dev/null
. "$here/organisation.env"
[ -d "$FEDLAP_ORG_DATA" ] || stop "there is no folder $FEDLAP_ORG_DATA: correct FEDLAP_ORG_DATA in $here/organisation.env"

PATH="$FEDLAP_BIN:$PATH"
FLWR_HOME="$here/state/flwr"
FEDLAP_HOME="${FEDLAP_HOME:-$here/state/fedlap}"
FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1
FLWR_DISABLE_UPDATE_CHECK=1
FLWR_TELEMETRY_ENABLED=0
FEDLAP_LOG="${FEDLAP_LOG:-text}"
FEDLAP_LOG_FILE="${FEDLAP_LOG_FILE:-$here/state/clientapp.log}"
export PATH FLWR_HOME FEDLAP_HOME FEDLAP_LOG FEDLAP_LOG_FILE FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION FLWR_DISABLE_UPDATE_CHECK FLWR_TELEMETRY_ENABLED
# No other modules than the installed ones.
unset PYTHONPATH PYTHONHOME
mkdir -p "$FLWR_HOME"

supernode() {
    [ ! -x "$FEDLAP_BIN/python" ] || "$FEDLAP_BIN/python" -I -m fedlap_app.deploy.expiry "$here/ca.crt" \
        "ask the coordinator for a new ca.crt, then start again" || exit 2
    exec flower-supernode \
        --superlink "$address" \
        --root-certificates "$here/ca.crt" \
        --auth-supernode-private-key "$here/keys/supernode" \
        --isolation process \
        --host 127.0.0.1 --port "$FEDLAP_NODE_PORT" \
        --ssl-ca-certfile "$here/keys/runtime-ca.crt" \
        --ssl-certfile "$here/keys/runtime.crt" \
        --ssl-keyfile "$here/keys/runtime.key" \
        --superexec-auth-secret-file "$here/keys/superexec-secret" \
        --node-config "data-dir='$FEDLAP_ORG_DATA' store-dir='$FEDLAP_ORG_STORE' federation='$here/federation.toml'"
}

# SuperNode and SuperExec speak over the loopback only; TLS and the secret keep other users out.
# Flower's own flower-superexec would install and run the code that comes with a run.
superexec() {
    exec "$FEDLAP_BIN/python" -I -m client_app.superexec --root-certificates "$here/keys/runtime-ca.crt" \
        --runtime-api-address "127.0.0.1:$FEDLAP_NODE_PORT" \
        --superexec-auth-secret-file "$here/keys/superexec-secret"
}

# Nothing leaves the organisation, and nobody is asked.
predict() {
    exec "$FEDLAP_BIN/fedlap" predict "$FEDLAP_ORG_DATA" --store-dir "$FEDLAP_ORG_STORE"
}

@supervisor@
case "${1:-both}" in
    supernode) supernode ;;
    superexec) superexec ;;
    predict) predict ;;
    both) both supernode superexec ;;
    *) stop "unknown process '$1': say supernode, superexec, predict or nothing" ;;
esac
