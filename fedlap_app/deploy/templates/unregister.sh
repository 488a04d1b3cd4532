#!/bin/sh
# unregister.sh NAME: the running SuperLink forgets the SuperNode of an organisation.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
[ $# -eq 1 ] || { echo "unregister.sh: name one organisation" >&2; exit 2; }
[ -r "$here/state/nodes/$1" ] || {
    echo "unregister.sh: there is no $here/state/nodes/$1: find the id with 'flwr.sh supernode list fedlap' and run 'flwr.sh supernode unregister ID fedlap'" >&2
    exit 2
}
# `flwr` exits with 0 even when it fails, so its answer decides.
answer=$(sh "$here/flwr.sh" supernode unregister "$(sed -n 1p "$here/state/nodes/$1")" fedlap --format json 2>&1) || :
case "$answer" in
    *'"success": true'*)
        rm "$here/state/nodes/$1"
        echo "$1: its SuperNode is forgotten" ;;
    *)
        echo "$1: not unregistered: $(printf '%s\n' "$answer" | sed -n 's|.*"error-message": *||p') (if this SuperLink never knew it, delete $here/state/nodes/$1)" >&2
        exit 2 ;;
esac
