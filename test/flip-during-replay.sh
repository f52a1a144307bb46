#!/usr/bin/env bash
# A replay whose segment files another process rots meanwhile: 50 payload bits, one a second. No restored byte may be
# wrong and damage must be found. Flags are those of `orbitkv replay`, for example
#
#   test/flip-during-replay.sh --trace conversation_trace.jsonl --block-bytes 65536 --pool-size 128mb --ssd-cache-capacity 1200mb
#
#   FLIPS, MILLIS  how many flips, how far apart
set -euo pipefail
home=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
data=$(mktemp -d "${TMPDIR:-/var/tmp}/orbitkv-flips-XXXXXX")
trap 'rm -rf -- "$data"' EXIT
"$home/bin/orbitkv" --version >&2 # builds, where nothing is built: the flips are for the replay
"$java" "$home/test/suite/src/test/java/io/orbitkv/suite/FlipPayload.java" "$data" "${FLIPS:-50}" "${MILLIS:-1000}" >&2 &
flipper=$!
out=$("$home/bin/orbitkv" replay --data "$data" --json "$@")
kill "$flipper" 2>/dev/null && echo "the replay ended before all flips were done" >&2
wait "$flipper" || true
tail -n 1 <<<"$out"
grep -q '"wrong_blocks":0,' <<<"$out" || { echo "wrong bytes were restored" >&2; exit 1; }
! grep -q '"corrupt_blocks":0,' <<<"$out" || { echo "no damage was found: are the flips too few, or too late?" >&2; exit 1; }
