#!/bin/bash
# Kills experiments at random points and checks that schedulers, tunables, queue attributes, loop
# devices, mounts, trace instances, state files and load processes are as they were.
#
#   tests/chaos.sh [KILLS] [SEED]        default 200 kills
#
# Needs root, /dev/fuse, loop devices and fio. Nothing but loop devices made by this script is touched.
set -u
kills=${1:-200}
RANDOM=${2:-1}
live=${LIVE:-target/debug/examples/live}
[ -x "$live" ] || { echo "build it first: cargo build -p iosched-backends --example live" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "SKIPPED: no root"; exit 0; }
[ -c /dev/fuse ] && [ -c /dev/loop-control ] || { echo "SKIPPED: no /dev/fuse or loop"; exit 0; }
command -v fio >/dev/null || { echo "SKIPPED: no fio"; exit 0; }

dir=$(mktemp -d)
export LIVE_STATE=$dir/state
mkdir "$LIVE_STATE"
cat >"$dir/disk.toml" <<'T'
title = "slow"
[model]
kind = "fixed"
cap = "256MiB"
lat_ns = 4000000
par = 2
[queue]
queue_depth = 4
rotational = true
T
cat >"$dir/job.fio" <<'T'
[r]
filename=/dev/disk
rw=randread
bs=4k
direct=1
ioengine=libaio
iodepth=16
numjobs=2
runtime=1
time_based
T

# The disk whose settings must survive: emulated by a process that nobody kills.
LIVE_STATE=$dir/base "$live" emulate "$dir/disk.toml" >"$dir/base.log" 2>&1 &
base=$!
trap 'kill -INT $base 2>/dev/null; wait $base; rm -rf "$dir"' EXIT
for _ in $(seq 200); do [ -s "$dir/base.log" ] && break; sleep 0.05; done
disk=$(head -1 "$dir/base.log")
name=${disk#/dev/}
[ -b "$disk" ] || { cat "$dir/base.log" >&2; exit 3; }
# Values that are nobody's default, so that "reset to default" would show.
echo mq-deadline >/sys/block/$name/queue/scheduler
echo 200 >/sys/block/$name/queue/iosched/read_expire
echo 96 >/sys/block/$name/queue/nr_requests
echo 512 >/sys/block/$name/queue/read_ahead_kb

snapshot() {
    local a=(scheduler nr_requests read_ahead_kb rotational write_cache max_sectors_kb nomerges
        rq_affinity iostats wbt_lat_usec)
    local files=()
    for f in "${a[@]}"; do files+=(/sys/block/*/queue/"$f"); done
    grep -sH . "${files[@]}" /sys/block/*/queue/iosched/*
    ls /sys/block
    cat /proc/self/mountinfo
    ls "$LIVE_STATE" /sys/kernel/tracing/instances 2>/dev/null
    # Load that outlived its experiment.
    grep -lsa "IOSCHED_OWNER=" /proc/[0-9]*/environ
    true
}

snapshot >"$dir/before"
declare -A count
slowest=0 bad=0
for i in $(seq "$kills"); do
    if ((RANDOM % 2)); then target=$disk; else target=$dir/disk.toml; fi
    "$live" rounds "$target" "$dir/job.fio" 2 >"$dir/log" 2>&1 &
    pid=$!
    sleep "$((RANDOM % 3)).$((RANDOM % 900 + 100))"
    how=$((RANDOM % 4))
    case $how in
    0) word="SIGKILL"; kill -KILL $pid ;;
    1) word="SIGTERM"; kill -TERM $pid ;;
    2) word="SIGINT"; kill -INT $pid ;;
    3) word="SIGKILL of both"
        # The guardians first, as an out-of-memory killer might.
        for p in /proc/[0-9]*; do
            tr '\0' ' ' <"$p/cmdline" 2>/dev/null | grep -q " guardian $LIVE_STATE/" &&
                kill -KILL "${p#/proc/}" 2>/dev/null
        done
        kill -KILL $pid ;;
    esac 2>/dev/null
    began=$(date +%s%N)
    rm -f "$dir/restore.log"
    # Before waiting: a killed run may need help to die.
    [ $how = 3 ] && "$live" restore >"$dir/restore.log" 2>&1
    wait $pid 2>/dev/null
    ok=0
    for _ in $(seq 300); do
        snapshot >"$dir/after"
        cmp -s "$dir/before" "$dir/after" && { ok=1; break; }
        sleep 0.1
    done
    ms=$((($(date +%s%N) - began) / 1000000))
    ((ms > slowest)) && slowest=$ms
    ((i % 20 == 0)) && echo "$i kills, $bad left something behind so far"
    count["$word $([[ $target = "$disk" ]] && echo real || echo emulated)"]=$((${count["$word $([[ $target = "$disk" ]] && echo real || echo emulated)"]:-0} + 1))
    if [ $ok = 0 ]; then
        bad=$((bad + 1))
        echo "kill $i ($word, $target) left something behind:"
        diff "$dir/before" "$dir/after" | head -20
        cat "$dir/log" "$dir/restore.log" 2>/dev/null | tail -5
        "$live" restore
    fi
done
for k in "${!count[@]}"; do echo "$k: ${count[$k]}"; done | sort
echo "$kills kills, $bad left something behind, slowest recovery $slowest ms"
[ $bad = 0 ]
