#!/bin/sh
# Tells the running SuperLink which SuperNodes may connect; the ids that it gives them are kept in
# state/nodes, each with the key that it belongs to. A SuperNode that is registered already stays so.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
mkdir -p "$here/state/nodes"
failed=0

# The id of a SuperNode in the first line, its key in the second.
note() {
    { printf '%s\n' "$2"; cat "$here/keys/$1.pub"; } > "$here/state/nodes/.part"
    mv "$here/state/nodes/.part" "$here/state/nodes/$1"
}

# `flwr` exits with 0 even when it fails, so its answer decides.
register() {
    known=$(sed -n 1p "$here/state/nodes/$1" 2>/dev/null) || :
    key=$(sed -n 2p "$here/state/nodes/$1" 2>/dev/null) || :
    if [ -n "$key" ] && [ "$key" != "$(cat "$here/keys/$1.pub")" ]; then
        echo "$1: not registered: another key of it is registered as SuperNode $known: run unregister.sh '$1' first" >&2
        failed=2
        return
    fi
    tries=0
    while :; do
        answer=$(sh "$here/flwr.sh" supernode register "$here/keys/$1.pub" fedlap --name "$1" --format json 2>&1) || :
        id=$(printf '%s\n' "$answer" | sed -n 's/.*"node-id": *"\{0,1\}\([0-9][0-9]*\).*/\1/p' | head -n 1)
        tries=$((tries + 1))
        case "$id $answer" in
            [0-9]*)
                note "$1" "$id"
                echo "$1: registered as SuperNode $id"
                return ;;
            *"already in use"*)
                [ -z "$known" ] || note "$1" "$known"
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
