# Start a process again whenever it ends. The SuperLink refuses a SuperNode that was killed until
# its last heartbeat is over, up to a minute, so trying again is part of normal work.
again() {
    child=
    trap 'trap - TERM INT; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null; wait; exit 0' TERM INT
    while :; do
        sh "$here/start.sh" "$1" &
        child=$!
        wait "$child" || :
        echo "start.sh: the $1 ended; it is started again in 10 seconds" >&2
        sleep 10 &
        child=$!
        wait "$child" || :
    done
}

both() {
    again "$1" &
    one=$!
    again "$2" &
    two=$!
    trap 'trap - TERM INT; kill -TERM "$one" "$two" 2>/dev/null; wait; exit 0' TERM INT
    wait
}
