#!/usr/bin/env bash
# Replays recordings of one scheduler under the others, beside recordings of those others.
#
# Usage: sudo tests/predict.sh [DEVICE] [FOLDER]    (default: hdd-7200 of data/devices, a folder of its own)
#
# Four loads run on an emulated disk under none, mq-deadline, kyber and bfq, each recorded by `iosched record`. Each
# recording is replayed in the simulator under the other three schedulers. Makespan for the same I/Os and the 99th
# percentile of reads are laid beside those of the recording under that scheduler. Prints a Markdown table and the three
# figures of docs/traces.md. Needs root, fio, e2fsprogs, sqlite3, dbench, jq. Takes 6 minutes on an idle machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

device=${1:-hdd-7200}
work=${2:-$(mktemp -d)}
iosched=${IOSCHED:-iosched}
schedulers=(none mq-deadline kyber bfq)
loads=(readers streams sqlite dbench)
mount=$work/mnt
disk='' server='' recorder=''
mkdir -p "$mount"

for tool in fio mkfs.ext4 sqlite3 dbench jq "$iosched"; do
  command -v "$tool" > /dev/null || { echo "predict.sh: $tool is not installed" >&2; exit 2; }
done
[ "$(id -u)" = 0 ] || { echo "predict.sh: needs root" >&2; exit 2; }

finish() {
  [ -z "$recorder" ] || kill -INT "$recorder" 2> /dev/null || true
  mountpoint -q "$mount" && umount "$mount" || true
  [ -z "$server" ] || { kill -INT "$server" 2> /dev/null; wait "$server"; } || true
  server='' recorder=''
}
trap finish EXIT

serve() {
  "$iosched" emulate "$device" > "$work/disk" 2> "$work/emulate.err" &
  server=$!
  for _ in $(seq 100); do
    disk=$(head -1 "$work/disk")
    [ -b "$disk" ] && return
    sleep 0.1
  done
  cat "$work/emulate.err" >&2
  exit 1
}

of_fio() {
  fio --filename="$disk" --direct=1 --ioengine=psync --randrepeat=1 --output=/dev/null "$@"
}

# The same work under each scheduler.
load() {
  case $1 in
    readers) of_fio --name=r --rw=randread --bs=4k --thinktime=3ms --numjobs=6 --number_ios=150 --size=50% ;;
    streams)
      of_fio --name=s --rw=read --bs=64k --numjobs=2 --size=20% --offset_increment=20% --runtime=8 --time_based \
        --name=w --rw=write --bs=256k --numjobs=1 --size=20% --offset=60% --ioengine=libaio --iodepth=16 --runtime=8 --time_based
      ;;
    sqlite)
      { echo "create table t(a, b);"; for i in $(seq 150); do echo "insert into t values($i, hex(randomblob(200)));"; done; } |
        sqlite3 "$mount/t.db" > /dev/null
      ;;
    dbench) dbench -D "$mount" -t 6 4 > /dev/null ;;
  esac
}

recorded() { # load scheduler: records it into $work/LOAD.SCHEDULER.csv
  serve
  case $1 in
    sqlite | dbench)
      mkfs.ext4 -q -E lazy_itable_init=1,lazy_journal_init=1 "$disk"
      # The kernel writes no inode tables and reads no bitmaps ahead beside the load.
      mount -o noinit_itable,no_prefetch_block_bitmaps "$disk" "$mount"
      ;;
  esac
  echo "$2" > "/sys/block/${disk#/dev/}/queue/scheduler"
  sync
  "$iosched" record "$disk" -o "$work/$1.$2.csv" 2> "$work/record.err" &
  recorder=$!
  sleep 1.5
  load "$1"
  kill -INT "$recorder"
  wait "$recorder" || { cat "$work/record.err" >&2; exit 1; }
  recorder=''
  finish
}

# The kernel's driver of the emulated disk may have other tags than the device's own; under none nr_requests are the tags.
modelled() {
  local tags
  tags=$(sed -n 's/^# nr_requests: //p' "$work/readers.none.csv")
  sed "s/^queue_depth = .*/queue_depth = $tags/" "data/devices/$device.toml" > "$work/disk.toml"
}

figures() { # trace: time from the first arrival to the last completion in s, I/Os, p99 of reads in us
  "$iosched" trace info "$1" --format json |
    jq -r '[.span_ns / 1e9, .ios, ((.operations[] | select(.operation == "read") | .latency.p99_ns) // 0) / 1e3] | @tsv'
}

replayed() { # load from: SCHEDULER makespan p99, one line each
  "$iosched" run "$work/$1.$2.csv" --device "$work/disk.toml" --scheduler "$(IFS=,; echo "${schedulers[*]}")" --no-store \
    --replay dependent --format json 2> /dev/null |
    jq -r '.experiments[0].records[] | (.metrics | map({(.name): .value}) | add) as $m
      | [(.trial.scheduler | split("@")[0]), $m.makespan, ($m["read p99 latency"] // 0)] | @tsv'
}

for l in "${loads[@]}"; do
  for s in "${schedulers[@]}"; do
    [ -s "$work/$l.$s.csv" ] || recorded "$l" "$s"
    figures "$work/$l.$s.csv" > "$work/$l.$s.is"
  done
done
modelled
for l in "${loads[@]}"; do
  for from in "${schedulers[@]}"; do
    read -r _ ios _ < "$work/$l.$from.is"
    replayed "$l" "$from" | while read -r to makespan p99; do
      [ "$to" = "$from" ] && continue
      read -r was_span was_ios was_p99 < "$work/$l.$to.is"
      echo "$l $from $to $ios $makespan $p99 $was_ios $was_span $was_p99"
    done
  done
done > "$work/pairs"

# I/Os a second, since a load of fixed time makes more of them under a better scheduler.
awk '
  function abs(x) { return x < 0 ? -x : x }
  function median(v, n,   i, j, t) {
    for (i = 2; i <= n; i++) { t = v[i]; for (j = i - 1; j > 0 && v[j] > t; j--) v[j + 1] = v[j]; v[j + 1] = t }
    return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
  }
  BEGIN {
    print "| load | recorded under | replayed under | I/Os/s | recorded there | error | read p99, ms | recorded there | error |"
    print "|---|---|---|---|---|---|---|---|---|"
  }
  {
    rate = $4 / $5; was = $7 / $8; e = rate / was - 1; rates[++n] = abs(e)
    said[$1, $2, $3, "rate"] = rate; is[$1, $3, "rate"] = was
    said[$1, $2, $3, "p99"] = $6; is[$1, $3, "p99"] = $9
    q = "–"; if ($9 > 0 && $6 > 0) { q = sprintf("%+.0f %%", 100 * ($6 / $9 - 1)); tails[++m] = abs($6 / $9 - 1) }
    printf "| %s | %s | %s | %.1f | %.1f | %+.1f %% | %.1f | %.1f | %s |\n", $1, $2, $3, rate, was, 100 * e, $6 / 1e3, $9 / 1e3, q
    loads[$1]; names[$2]
  }
  END {
    split("rate p99", kinds, " ")
    for (k in kinds) for (l in loads) for (f in names) for (a in names) for (b in names) {
      if (a >= b || a == f || b == f) continue
      if (!(said[l, f, a, kinds[k]] > 0 && said[l, f, b, kinds[k]] > 0)) continue
      if (abs(is[l, a, kinds[k]] / is[l, b, kinds[k]] - 1) <= 0.1) continue
      all++; right += (said[l, f, a, kinds[k]] > said[l, f, b, kinds[k]]) == (is[l, a, kinds[k]] > is[l, b, kinds[k]])
    }
    printf "\nMedian error of the rate %.1f %%, of the 99th percentile of reads %.0f %%; ", 100 * median(rates, n), 100 * median(tails, m)
    printf "order right in %d of %d pairs of figures that differ by more than 10 %%.\n", right, all
  }' "$work/pairs"
echo "recordings: $work" >&2
