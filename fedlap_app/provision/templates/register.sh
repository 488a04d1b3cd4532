#!/bin/sh
# Tells the running SuperLink which SuperNodes may connect; the ids that it gives them are kept in
# state/nodes. A SuperNode that is registered already stays so.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
mkdir -p "$here/state/nodes"
failed=0

# `flwr` exits with 0 even when it fails, so its answer decides.
register() {
    tries=0
    while :; do
        answer=$(sh "$here/flwr.sh" supernode register "$here/keys/$1.pub" fedlap --name "$1" --format json 2>&1) || :
        id=$(printf '%s\n' "$answer" | sed -n 's/.*"node-id": *"\{0,1\}\([0-9][0-9]*\).*/\1/p' | head -n 1)
        tries=$((tries + 1))
        case "$id $answer" in
            [0-9]*)
                printf '%s\n' "$id" > "$here/state/nodes/$1"
                echo "$1: registered as SuperNode $id"
                return ;;
            *"already in use"*)
                echo "$1: registered already"
                return ;;
            *"is unavailable"*)
                [ "$tries" -ge 10 ] || { sleep 3; continue; }
                echo "$1: not registered: the SuperLink does not answer: run start.sh first" >&2 ;;
            *)
                echo "$1: not registered: $(printf '%s\n' "$answer" | sed -n 's|.*"error-message": *||p')" >&2 ;;
        esac
        failed=2
        return
    done
}

@members@
exit "$failed"
