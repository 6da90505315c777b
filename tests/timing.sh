#!/usr/bin/env bash
# The simulator's jobs by the wall clock. Each job of crates/backends/tests/timing/jobs.fio runs with the real fio on an
# emulated disk of constant service time, and in the simulator. IOPS by job and direction must be within 5 %, mean
# latencies within 10 % or 20 us.
#
#   tests/timing.sh [--short | WORD]
#
# --short takes every fifth job (up to a minute), a word the jobs with that word in their names. All jobs take 3 to 5
# minutes. Needs root, fio and /dev/fuse, and says so if it has to skip. Prints how many jobs held, were off and could not
# be measured. Fails if one was off in every try, or if more than a quarter could not be measured although no other
# program used the CPUs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case ${1-} in
    --short) jobs=short ;;
    -*) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 2 ;;
    *) jobs=${1:-full} ;;
esac
IOSCHED_TIMING=$jobs exec cargo test --quiet --package iosched-backends --test timing -- --ignored --nocapture
