#!/usr/bin/env bash
# Instructions a simulated request, counted by callgrind, as the tables of docs/performance.md.
#
#   tests/instructions.sh target/release/iosched devices
#   tests/instructions.sh target/release/iosched processes
#
# Each figure is the difference between two runs of different length, so that start and end cancel out. The counts do
# not depend on what else the machine does; they do depend on the compiler. Needs valgrind.
set -euo pipefail
program=${1:?the program} table=${2:?devices or processes}
command -v valgrind >/dev/null || { echo "needs valgrind" >&2; exit 3; }
out=$(mktemp)
trap 'rm -f "$out" "$out".log' EXIT

# count ARGUMENTS…: instructions of one run.
count() {
    valgrind --tool=callgrind --callgrind-out-file="$out" "$program" bench --no-memory "$@" >/dev/null 2>"$out.log" ||
        { cat "$out.log" >&2; exit 1; }
    sed -n 's/^\(summary\|totals\): *//p' "$out" | head -n 1
}

# cost FEW MANY ARGUMENTS…: instructions a request.
cost() {
    local few=$1 many=$2 a b
    shift 2
    a=$(count --requests "$few" "$@") && b=$(count --requests "$many" "$@")
    echo $(((b - a) / (many - few))) | sed -E ':a; s/([0-9])([0-9]{3})($|,)/\1,\2\3/; ta'
}

schedulers=(none noop deadline mq-deadline kyber bfq cfq anticipatory)
case $table in
devices)
    echo '| scheduler | fixed | hdd | ssd |'
    echo '|---|---|---|---|'
    for s in "${schedulers[@]}"; do
        row="| $s |"
        for d in fixed hdd ssd; do row+=" $(cost 5000 15000 --scheduler "$s" --device $d --depth 32) |"; done
        echo "$row"
    done
    ;;
processes)
    echo '| scheduler | 8 | 100 | 1,000 | 10,000 |'
    echo '|---|---|---|---|---|'
    for s in "${schedulers[@]}"; do
        row="| $s |"
        for p in 8 100 1000 10000; do
            few=$((p > 1000 ? 8 * p : 8000))
            row+=" $(cost $few $((2 * few)) --scheduler "$s" --device hdd --depth 8 --processes "$p") |"
        done
        echo "$row"
    done
    ;;
*)
    echo "unknown table $table: devices or processes" >&2
    exit 2
    ;;
esac
