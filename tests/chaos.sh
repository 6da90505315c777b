#!/bin/bash
# Kills experiments at random points and checks that schedulers, tunables, queue attributes, loop
# devices, trace instances, state files, directories of loads and load processes are as they were.
#
#   tests/chaos.sh [KILLS] [SEED]        default 200 kills
#
# Needs root, /dev/fuse, loop devices and fio. Nothing but what this script started is touched, and nothing but
# that is looked at: whoever else uses iosched or loop devices on this machine does not disturb it.
set -u
kills=${1:-200}
RANDOM=${2:-1}
program=${IOSCHED:-target/debug/iosched}
[ -x "$program" ] || { echo "build it first: cargo build" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "SKIPPED: no root"; exit 0; }
[ -c /dev/fuse ] && [ -c /dev/loop-control ] || { echo "SKIPPED: no /dev/fuse or loop"; exit 0; }
command -v fio >/dev/null || { echo "SKIPPED: no fio"; exit 0; }

dir=$(mktemp -d)
# What every process that we start, and every process that those start, has in its environment.
export CHAOS_MARK=$dir IOSCHED_STATE=$dir/state IOSCHED_DB=$dir/results.db
mkdir "$IOSCHED_STATE" "$dir/files"
# The name of the model is in the name of the loop device: that is how we know ours.
model=chaos-$$
cat >"$dir/$model.toml" <<'T'
title = "slow"
[model]
kind = "fixed"
cap = "256MiB"
lat_ns = 4000000
par = 2
[queue]
queue_depth = 4
max_hw_sectors_kb = 64
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
cat >"$dir/startup.toml" <<T
name = "startup"
backend = "emulated"
devices = ["$dir/$model.toml"]
schedulers = ["none", "mq-deadline", "kyber", "bfq"]
runs = 2
workloads = [{ startup = { command = "bash -c :", load = "3r-seq", file_size = "16MiB", idle = 1 } }]
T

# The disk whose settings must survive: emulated by a process that nobody kills.
IOSCHED_STATE=$dir/base "$program" emulate "$dir/$model.toml" >"$dir/base.log" 2>&1 &
base=$!
trap 'kill -INT $base 2>/dev/null; wait $base; rm -rf "$dir"' EXIT
for _ in $(seq 400); do [ -s "$dir/base.log" ] && break; sleep 0.05; done
disk=$(head -1 "$dir/base.log")
name=${disk#/dev/}
[ -b "$disk" ] || { cat "$dir/base.log" >&2; exit 3; }
# Values that are nobody's default, so that "reset to default" would show.
echo mq-deadline >/sys/block/$name/queue/scheduler
echo 200 >/sys/block/$name/queue/iosched/read_expire
echo 96 >/sys/block/$name/queue/nr_requests
echo 512 >/sys/block/$name/queue/read_ahead_kb

# Processes of an experiment: guardians, load, the command, and the program itself. Ours have the mark.
marked() {
    local p
    for p in $(grep -lsza "^CHAOS_MARK=$dir\$" /proc/[0-9]*/environ 2>/dev/null); do
        p=${p#/proc/} p=${p%/environ}
        [ "$p" = "$base" ] || [ "$p" = $$ ] || [ "$p" = "$BASHPID" ] && continue
        case $(tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null) in
        *" guardian $dir/base/"* | '' | grep* | *chaos.sh*) ;;
        *) echo "$p" ;;
        esac
    done
}

unbound() {
    local f n
    for f in /sys/block/loop*; do
        n=${f#/sys/block/loop}
        if ((n >= 64)) && [ ! -e "$f/loop/backing_file" ]; then echo "loop$n"; fi
    done
}
stale=" $(unbound | tr '\n' ' ')"

snapshot() {
    local f
    for f in scheduler nr_requests read_ahead_kb rotational write_cache max_sectors_kb nomerges \
        rq_affinity iostats wbt_lat_usec; do
        grep -sH . "/sys/block/$name/queue/$f"
    done
    grep -sH . "/sys/block/$name/queue/iosched/"*
    # Made, but not bound: nobody's for more than a moment.
    for f in $(unbound); do [[ $stale == *" $f "* ]] || echo "unbound: $f"; done
    # Loop devices with our model's name (the base disk is one).
    for f in /sys/block/loop*/loop/backing_file; do
        case $(cat "$f" 2>/dev/null) in *:"$model") echo "loop: $f" ;; esac
    done
    ls -A "$IOSCHED_STATE" "$dir/files"
    # Trace instances are named by their owner's process.
    for f in "${owners[@]}"; do ls -d /sys/kernel/tracing/instances/iosched-"$f"-* 2>/dev/null; done
    marked | while read -r p; do echo "process: $(tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null)"; done
    true
}

owners=()
snapshot >"$dir/before"
declare -A count
slowest=0 bad=0
for i in $(seq "$kills"); do
    run=(--runs 2 --trace --no-warm-up --no-store --quiet --scheduler none,mq-deadline,kyber,bfq)
    case $((RANDOM % 3)) in
    0) what=real run=("$dir/job.fio" --backend real --device "$disk" "${run[@]}") ;;
    1) what=emulated run=("$dir/job.fio" --backend emulated --device "$dir/$model.toml" "${run[@]}") ;;
    2) what=startup run=("$dir/startup.toml" --trace --quiet) ;;
    esac
    "$program" run "${run[@]}" >"$dir/log" 2>&1 &
    pid=$!
    owners=("$pid")
    sleep "$((RANDOM % 4)).$((RANDOM % 900 + 100))"
    how=$((RANDOM % 4))
    case $how in
    0) word="SIGKILL"; kill -KILL $pid ;;
    1) word="SIGTERM"; kill -TERM $pid ;;
    2) word="SIGINT"; kill -INT $pid ;;
    3) word="SIGKILL of both"
        # The guardians first, as an out-of-memory killer might.
        for p in /proc/[0-9]*; do
            tr '\0' ' ' <"$p/cmdline" 2>/dev/null | grep -q " guardian $IOSCHED_STATE/" &&
                kill -KILL "${p#/proc/}" 2>/dev/null
        done
        kill -KILL $pid ;;
    esac 2>/dev/null
    began=$(date +%s%N)
    rm -f "$dir/restore.log"
    # Before waiting: a killed run may need help to die.
    [ $how = 3 ] && "$program" restore >"$dir/restore.log" 2>&1
    wait $pid 2>/dev/null
    code=$?
    ok=0
    for _ in $(seq 300); do
        snapshot >"$dir/after"
        cmp -s "$dir/before" "$dir/after" && { ok=1; break; }
        sleep 0.1
    done
    # A signal that can be answered must be: 4, or 0 when the experiment was over before.
    # (Before it can answer, SIGTERM ends the program.)
    case $how.$code in 1.0 | 1.4 | 1.143 | 2.0 | 2.4 | [03].137 | [03].0) ;; *) ok=0; echo "exit code $code" >>"$dir/after" ;; esac
    ms=$((($(date +%s%N) - began) / 1000000))
    ((ms > slowest)) && slowest=$ms
    ((i % 20 == 0)) && echo "$i kills, $bad left something behind so far"
    count["$word, $what"]=$((${count["$word, $what"]:-0} + 1))
    if [ $ok = 0 ]; then
        bad=$((bad + 1))
        echo "kill $i ($word, $what) left something behind:"
        diff "$dir/before" "$dir/after" | head -20
        cat "$dir/log" "$dir/restore.log" 2>/dev/null | tail -5
        "$program" restore
    fi
done
for k in "${!count[@]}"; do echo "$k: ${count[$k]}"; done | sort
echo "$kills kills, $bad left something behind, slowest recovery $slowest ms"
[ $bad = 0 ]
