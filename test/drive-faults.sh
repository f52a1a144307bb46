#!/usr/bin/env bash
# Real drives that fail, under a store with traffic: hung writes (fsfreeze of ext4 on a loop device), ENOSPC (ext4 on a loop device
# whose file lies in a tmpfs that is full), EIO, and hung reads and writes (a FUSE pass-through that fails or is stopped).
# Prints for each how long until the drive is out (bound 2 s), what the fault costs a host hit (p99, bound 2 x), how long until it
# is back (bound 10 s), and wrong blocks (0); exits 1 beyond a bound. Needs root, loop devices, /dev/fuse, and Debian's
# fuse3 and python3-fusepy.
#
#   test/drive-faults.sh [fault ...]   of: freeze enospc eio hang late; all of them without an argument
#
#   ROUNDS        faults of each kind (5; of late, 1)
#   CLASSPATH     run these classes instead of the built ones
set -euo pipefail
home=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
work=$(mktemp -d "${TMPDIR:-/var/tmp}/orbitkv-faults-XXXXXX")
fuse=
obeys=
classes=${CLASSPATH:-$home/test/suite/target/test-classes:$home/test/kit/target/classes:$home/cli/target/lib/*}

end_fuse() {
    [[ -z $fuse ]] && return
    kill -CONT "$fuse" 2>/dev/null || true
    fusermount3 -u -z "$work/fuse" 2>/dev/null || umount -l "$work/fuse" 2>/dev/null || true
    kill "$fuse" 2>/dev/null || true
    wait "$fuse" 2>/dev/null || true
    fuse=
}
clean_up() {
    kill "$obeys" 2>/dev/null || true
    fsfreeze -u "$work/ext4" 2>/dev/null || true
    end_fuse
    umount -l "$work/ext4" 2>/dev/null || true
    umount -l "$work/tmpfs" 2>/dev/null || true
    rm -rf --one-file-system -- "$work"
}
trap clean_up EXIT

loop() { # file, bytes, options of mkfs
    truncate -s "$2" "$1"
    mkfs.ext4 -q -F -O ^has_journal -E nodiscard "$1"
    mkdir -p "$work/ext4"
    mount -o loop "$1" "$work/ext4"
}
end_loop() {
    umount "$work/ext4" 2>/dev/null || umount -l "$work/ext4"
    rm -f -- "$1"
}
start_fuse() {
    mkdir -p "$work/source" "$work/fuse" "$work/control"
    rm -rf -- "$work/source/"* "$work/control/"*
    /usr/bin/python3 "$home/test/fuse-faults.py" "$work/source" "$work/fuse" "$work/control" &
    fuse=$!
    for _ in $(seq 100); do mountpoint -q "$work/fuse" && return; sleep 0.1; done
    echo "the FUSE pass-through does not start" >&2
    exit 3
}
obey() { # does what the test writes into a file, until it ends
    while sleep 0.005; do
        [[ -e $work/command ]] || continue
        bash -c "$(cat "$work/command")" || echo "a command has failed: $(cat "$work/command")" >&2
        date +%s%3N >"$work/done"
        rm -f -- "$work/command"
    done
}
faults() { # name, folder, rounds, seconds, cap in MiB, command that breaks, command that mends
    # shellcheck disable=SC2046
    "$java" $(cat "$home/bin/jvm.17") -cp "$classes" io.orbitkv.suite.DriveFaults "$@" "$work"
}

result=0
obey &
obeys=$!
for kind in "${@:-freeze enospc eio hang late}"; do
    for fault in $kind; do
        case $fault in
            freeze)
                loop "$work/disk" 600M
                faults freeze "$work/ext4/store" "${ROUNDS:-5}" 5 384 "fsfreeze -f $work/ext4" "fsfreeze -u $work/ext4" || result=1
                end_loop "$work/disk"
                ;;
            enospc)
                mkdir -p "$work/tmpfs"
                mount -t tmpfs -o size=1200m tmpfs "$work/tmpfs"
                loop "$work/tmpfs/disk" 4G
                faults enospc "$work/ext4/store" "${ROUNDS:-5}" 5 3072 \
                    "dd if=/dev/zero of=$work/tmpfs/filler bs=1M 2>/dev/null || true" "rm $work/tmpfs/filler" || result=1
                end_loop "$work/tmpfs/disk"
                umount "$work/tmpfs"
                ;;
            eio)
                start_fuse
                faults eio "$work/fuse/store" "${ROUNDS:-5}" 5 256 "touch $work/control/eio" "rm $work/control/eio" || result=1
                end_fuse
                ;;
            hang)
                start_fuse
                faults hang "$work/fuse/store" "${ROUNDS:-5}" 5 256 "kill -STOP $fuse" "kill -CONT $fuse" || result=1
                end_fuse
                ;;
            late)
                start_fuse
                faults late "$work/fuse/store" 1 60 256 "kill -STOP $fuse" "kill -CONT $fuse" || result=1
                end_fuse
                ;;
            *)
                echo "unknown fault '$fault'; give freeze, enospc, eio, hang or late" >&2
                exit 2
                ;;
        esac
    done
done
exit $result
