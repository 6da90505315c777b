#!/bin/bash
# Kills experiments, their load, their guardians and `iosched restore` at random points and checks that schedulers,
# tunables, queue attributes, loop devices, trace instances, state files, locks of disks, directories of loads and
# load processes are as they were. Before that two experiments at a time want one disk, in ways in which the second could
# miss the first, and one is killed. The settings of all other disks of the machine must stay, too.
#
#   tests/chaos.sh [KILLS] [SEED]        default 200 kills
#   tests/chaos.sh --short [SEED]        as many as 40 s allow; at most 60 s in all
#
# Needs root, /dev/fuse, loop devices and fio. The script touches and checks only what it started itself, so other users
# of iosched or loop devices on this machine do not disturb it.
set -u
short=0 kills=${1:-200}
if [ "${1:-}" = --short ]; then short=1 kills=1000; fi
RANDOM=${2:-1}
program=${IOSCHED:-target/debug/iosched}
[ -x "$program" ] || { echo "build it first: cargo build" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "SKIPPED: no root"; exit 0; }
[ -c /dev/fuse ] && [ -c /dev/loop-control ] || { echo "SKIPPED: no /dev/fuse or loop"; exit 0; }
command -v fio >/dev/null || { echo "SKIPPED: no fio"; exit 0; }

dir=$(mktemp -d)
# The mark in the environment of every process that we start, and of their children.
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

# The disk with the settings that must survive. A process that is never killed emulates it.
IOSCHED_STATE=$dir/base "$program" emulate "$dir/$model.toml" >"$dir/base.log" 2>&1 &
base=$!
patience=60
if [ $short = 1 ]; then
    patience=10
    # If something hangs, TERM runs the trap below.
    { sleep 48 && kill -TERM $$; } >/dev/null 2>&1 </dev/null &
fi
trap clean EXIT
trap 'echo "ended before its time was over"; exit 1' TERM INT HUP

# ended SECONDS PID: waits for a process of ours, but not for ever (one that sleeps on a dead disk cannot die).
ended() {
    local end=$((SECONDS + $1))
    while kill -0 "$2" 2>/dev/null; do
        # A zombie is gone except for its exit code.
        case $(sed 's/.*) //' "/proc/$2/stat" 2>/dev/null) in Z* | '') return 0 ;; esac
        ((SECONDS < end)) || return 1
        sleep 0.02
    done
}

# Removes everything of ours, however we end.
clean() {
    trap - EXIT TERM INT HUP
    marked | xargs -r kill -KILL 2>/dev/null
    timeout -k 1 5 "$program" restore >/dev/null 2>&1
    kill -INT "$base" 2>/dev/null
    if ! ended 10 "$base"; then
        kill -KILL "$base" 2>/dev/null
        IOSCHED_STATE=$dir/base timeout -k 1 5 "$program" restore >/dev/null 2>&1
    fi
    rm -rf "$dir"
}

for _ in $(seq 400); do
    [ -s "$dir/base.log" ] && break
    kill -0 $base 2>/dev/null || break
    sleep 0.05
done
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
        # The process that serves the base disk.
        [ "$(awk '$1 == "PPid:" {print $2}' "/proc/$p/status" 2>/dev/null)" = "$base" ] && continue
        case $(tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null) in
        *" guardian $dir/base/"* | '' | grep* | *chaos.sh*) ;;
        *) echo "$p" ;;
        esac
    done
}

# Guardians of the experiment, not of the base disk.
guardians() {
    local p
    for p in /proc/[0-9]*; do
        tr '\0' ' ' <"$p/cmdline" 2>/dev/null | grep -q " guardian $IOSCHED_STATE/" && echo "${p#/proc/}"
    done
}

# fio and its jobs.
load() {
    local p
    for p in $(marked); do
        [ "$(cat "/proc/$p/comm" 2>/dev/null)" = fio ] && echo "$p"
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

# settings DISK: its queue.
settings() {
    local f
    for f in scheduler nr_requests read_ahead_kb rotational write_cache max_sectors_kb nomerges \
        rq_affinity iostats wbt_lat_usec; do
        grep -sH . "/sys/block/$1/queue/$f"
    done
    grep -sH . "/sys/block/$1/queue/iosched/"*
}

# held DISK: whether an experiment has its lock.
held() {
    local f=/run/iosched/disks/$(cat "/sys/block/$1/dev" 2>/dev/null)
    [ -f "$f" ] && ! flock -n "$f" true
}

# The disks that are there before we begin: none of them is named, so none may change. A disk on which another user's
# experiment runs meanwhile is not looked at from then on, nor is one whose queue was made anew. A queue that outlives
# its disk (of a loop device that was given another file) keeps its scheduler; other settings come with the next disk.
identity() { stat -c %i "/sys/block/$1/queue" 2>/dev/null; cat "/sys/block/$1/diskseq" 2>/dev/null; }
chosen() { grep -E '/queue/(scheduler|iosched/[^:]*):' "$1"; }
mkdir "$dir/disks" "$dir/identities"
for f in /sys/block/*; do
    f=${f##*/}
    [ "$f" = "$name" ] || held "$f" || { settings "$f" >"$dir/disks/$f"; identity "$f" >"$dir/identities/$f"; }
done
unnamed() {
    local f now="$dir/now"
    for f in "$dir/disks/"*; do
        f=${f##*/}
        settings "$f" >"$now"
        cmp -s "$now" "$dir/disks/$f" && continue
        if held "$f" || [ "$(stat -c %i "/sys/block/$f/queue" 2>/dev/null)" != "$(head -n 1 "$dir/identities/$f")" ]; then
            rm -f "$dir/disks/$f"
        elif [ "$(identity "$f")" = "$(cat "$dir/identities/$f")" ] ||
            [ "$(chosen "$now")" != "$(chosen "$dir/disks/$f")" ]; then
            echo "not named, but changed: $f"
            diff "$dir/disks/$f" "$now"
        fi
    done
}

snapshot() {
    local f
    settings "$name"
    unnamed
    # Made, but not bound: it has no owner for a moment only.
    for f in $(unbound); do [[ $stale == *" $f "* ]] || echo "unbound: $f"; done
    # Loop devices with our model's name (the base disk is one).
    for f in /sys/block/loop*/loop/backing_file; do
        case $(cat "$f" 2>/dev/null) in *:"$model") echo "loop: $f" ;; esac
    done
    ls -A "$IOSCHED_STATE" "$dir/files"
    # Trace instances are named by their owner's process.
    for f in "${owners[@]}"; do ls -d /sys/kernel/tracing/instances/iosched-"$f"-* 2>/dev/null; done
    # The lock of the base disk belongs to experiments on it. A file without a holder means nothing.
    held "$name" && echo "locked: $name"
    marked | while read -r p; do echo "process: $(tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null)"; done
    true
}

owners=()
snapshot >"$dir/before"
declare -A count
slowest=0 slowest_what=none bad=0
done_kills=0

# restored WHAT: waits until everything is as before.
restored() {
    for _ in $(seq $((patience * 5))); do
        snapshot >"$dir/after"
        cmp -s "$dir/before" "$dir/after" && return
        sleep 0.1
    done
    bad=$((bad + 1))
    echo "$1 left something behind:"
    diff "$dir/before" "$dir/after" | head -20
    IOSCHED_STATE=$dir/one timeout -k 1 5 "$program" restore
    IOSCHED_STATE=$dir/two timeout -k 1 5 "$program" restore
    settings_back
}
settings_back() {
    echo mq-deadline >/sys/block/$name/queue/scheduler
    echo 200 >/sys/block/$name/queue/iosched/read_expire
    echo 96 >/sys/block/$name/queue/nr_requests
    echo 512 >/sys/block/$name/queue/read_ahead_kb
}

# Two experiments on one disk, each with a state folder of its own as two users have it.
on_disk=("$dir/job.fio" --backend real --device "$disk" --runs 2 --no-warm-up --no-store --quiet --scheduler kyber,bfq)
one() {
    IOSCHED_STATE=$dir/one "$program" run "${on_disk[@]}" >"$dir/log" 2>&1 &
    pid=$!
    owners=("$pid")
}
# The first has switched the disk.
switched() {
    for _ in $(seq 200); do
        grep -q '\[mq-deadline\]' /sys/block/$name/queue/scheduler || return 0
        sleep 0.05
    done
    echo "the first experiment did not switch the disk"
    cat "$dir/log"
    bad=$((bad + 1))
}
# refused WHAT PREFIX...: the second must not begin (3), or the first one's scheduler would be put "back" by it.
refused() {
    local what=$1 code
    shift
    IOSCHED_STATE=$dir/two timeout -k 1 20 "$@" "$program" run "${on_disk[@]}" >"$dir/log.two" 2>&1
    code=$?
    [ $code = 3 ] && return
    bad=$((bad + 1))
    echo "$what: the second was not refused, exit code $code"
    tail -3 "$dir/log.two"
}
leave() {
    kill "$1" $pid 2>/dev/null
    [ -z "${2:-}" ] || rm -rf "$2"
    ended $patience $pid
    wait $pid 2>/dev/null
    restored "$3"
    rm -rf "$dir/one" "$dir/two"
}
pairs=1
[ $short = 1 ] || pairs=$((kills / 20))
for _ in $(seq $pairs); do
    one; switched
    refused "a second state folder" env
    refused "a /run of its own" unshare -m sh -c 'mount -t tmpfs none /run && exec "$@"' sh
    rm -f "/run/iosched/disks/$(cat /sys/block/$name/dev)"
    refused "a lock file that was removed" env
    leave -INT '' "two at once, SIGINT"

    # A script that kills its run and removes its files.
    one; switched
    leave -KILL "$dir/one" "SIGKILL, the state folder removed"

    # Both start at the same moment; the second is killed on its way, then the first.
    one
    IOSCHED_STATE=$dir/two "$program" run "${on_disk[@]}" >"$dir/log.two" 2>&1 &
    two=$!
    owners+=("$two")
    sleep 0.$((RANDOM % 500 + 100))
    kill -KILL $two
    wait $two 2>/dev/null
    sleep 0.$((RANDOM % 300 + 100))
    leave -KILL '' "SIGKILL of two that start"
done 2>/dev/null
kinds=4
command -v sqlite3 >/dev/null && kinds=5
for i in $(seq "$kills"); do
    if [ $short = 1 ] && ((SECONDS > 32)); then break; fi
    done_kills=$i
    run=(--runs 2 --trace --no-warm-up --no-store --quiet --scheduler none,mq-deadline,kyber,bfq)
    case $((RANDOM % kinds)) in
    0) what=real run=("$dir/job.fio" --backend real --device "$disk" "${run[@]}") ;;
    1) what=emulated run=("$dir/job.fio" --backend emulated --device "$dir/$model.toml" "${run[@]}") ;;
    2) what=startup run=("$dir/startup.toml" --trace --quiet) ;;
    3) what=program run=("fsops append_fsync . 4 1000000 65536" --backend emulated --device "$dir/$model.toml" \
        --runs 2 --no-store --quiet --scheduler none,mq-deadline,kyber,bfq) ;;
    4) what="real program" run=("sqlite 100000 3" --backend emulated --device "$dir/$model.toml" \
        --runs 2 --no-store --quiet --scheduler none,mq-deadline,kyber,bfq) ;;
    esac
    "$program" run "${run[@]}" >"$dir/log" 2>&1 &
    pid=$!
    owners=("$pid")
    sleep "$((RANDOM % 4)).$((RANDOM % 900 + 100))"
    how=$((RANDOM % 7))
    # A part of a second before the second kill.
    moment=0.$((RANDOM % 400 + 100))
    began=$(date +%s%N)
    rm -f "$dir/restore.log"
    case $how in
    0) word="SIGKILL"; kill -KILL $pid ;;
    1) word="SIGTERM"; kill -TERM $pid ;;
    2) word="SIGINT"; kill -INT $pid ;;
    3) word="SIGKILL of both, restore"
        # The guardians first, as an out-of-memory killer might.
        guardians | xargs -r kill -KILL
        kill -KILL $pid ;;
    4) word="SIGKILL of fio, SIGTERM"
        # The program goes on with the next trial.
        load | xargs -r kill -KILL
        sleep $moment
        began=$(date +%s%N)
        kill -TERM $pid ;;
    5) word="SIGKILL of guardians, SIGINT"
        guardians | xargs -r kill -KILL
        sleep $moment
        began=$(date +%s%N)
        kill -INT $pid ;;
    6) word="SIGKILL of both and of restore, restore"
        guardians | xargs -r kill -KILL
        kill -KILL $pid
        "$program" restore >/dev/null 2>&1 &
        restoring=$!
        sleep 0.0$((RANDOM % 90 + 10))
        kill -KILL $restoring
        ended 10 $restoring || echo "restore cannot be killed" >>"$dir/log"
        wait $restoring ;;
    esac 2>/dev/null
    # Before waiting: a killed run may need help to die.
    case $how in 3 | 6) timeout -k 1 $patience "$program" restore >"$dir/restore.log" 2>&1 ;; esac
    code=none
    if ended $patience $pid; then
        wait $pid 2>/dev/null
        code=$?
    fi
    ok=0
    for _ in $(seq $((patience * 5))); do
        snapshot >"$dir/after"
        cmp -s "$dir/before" "$dir/after" && { ok=1; break; }
        sleep 0.1
    done
    # A signal that can be answered must be: 4, or 0 when the experiment was over before.
    # (Before it can answer, SIGTERM ends the program; a guardian that dies while it starts is a failure, 4 as well.)
    case $how.$code in [1245].0 | [1245].4 | [14].143 | [25].130 | [036].137 | [036].0 | [0346].4) ;; *) ok=0; echo "exit code $code" >>"$dir/after" ;; esac
    ms=$((($(date +%s%N) - began) / 1000000))
    ((ms > slowest)) && slowest=$ms slowest_what="$word, $what"
    ((i % 20 == 0)) && echo "$i kills, $bad left something behind so far"
    count["$word, $what"]=$((${count["$word, $what"]:-0} + 1))
    if [ $ok = 0 ]; then
        bad=$((bad + 1))
        echo "kill $i ($word, $what) left something behind:"
        diff "$dir/before" "$dir/after" | head -20
        cat "$dir/log" "$dir/restore.log" 2>/dev/null | tail -5
        timeout -k 1 $patience "$program" restore
    fi
done
for k in "${!count[@]}"; do echo "$k: ${count[$k]}"; done | sort
echo "$done_kills kills, $bad left something behind, slowest recovery $slowest ms ($slowest_what)"
[ $bad = 0 ]
