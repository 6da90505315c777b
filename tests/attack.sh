#!/usr/bin/env bash
# Tries to make iosched destroy data that is not its own, in every way that came to mind, on throw-away loop
# devices and files, and checks every byte that must not change.
#
#   tests/attack.sh [--short] [--only PATTERN]
#
# Each attack ends with one line: held, BROKE, or skipped with the reason; the exit code is 1 if one BROKE.
# --short is for CI: at most 90 seconds. Needs root, loop devices, fio and e2fsprogs; elsewhere it says so and ends.
# The script touches only what it made itself, and removes it even when the script is killed.
set -u
short='' only='' limit=1200
while [ $# -gt 0 ]; do
    case $1 in
    --short) short=yes limit=75 ;;
    --only) only=$2 && shift ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
    shift
done
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
program=$(realpath "${IOSCHED:-target/debug/iosched}")
[ -x "$program" ] || { echo "build it first: cargo build" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "SKIPPED: no root"; exit 0; }
[ -c /dev/loop-control ] || { echo "SKIPPED: no loop devices"; exit 0; }
for tool in fio losetup mkfs.ext4 sha256sum blkid unshare; do
    command -v $tool >/dev/null || { echo "SKIPPED: no $tool"; exit 0; }
done
losetup -f >/dev/null 2>&1 || { echo "SKIPPED: no loop device can be had"; exit 0; }

# --- The place, and how it goes away ---
# A file system of its own, so that no scheduler of a disk in use is switched.
base=$(mktemp -d -p "${TMPDIR:-/var/tmp}" iosched-attack.XXXXXX)
dir=$base/m
mkdir "$dir"
clean_up() {
    local p device file
    for p in $(jobs -p); do kill -9 "$p" 2>/dev/null; done
    for p in $(cat "$base/swaps" 2>/dev/null); do timeout 5 swapoff "$p" 2>/dev/null; done
    # The loop devices on the file system first: once that is gone, their owner cannot be known.
    for p in $(awk -v d="$dir/" 'index($5, d) == 1 {print $5}' /proc/self/mountinfo | sort -r); do timeout 5 umount -l "$p"; done
    for _ in 1 2 3 4; do
        losetup -nl -O NAME,BACK-FILE | while read -r device file; do
            case $file in
            "$dir"/*) ;;
            /dev/loop*)
                [[ $file =~ ^(/dev/loop[0-9]+) ]] && grep -qx "${BASH_REMATCH[1]}" "$base/loops" 2>/dev/null || continue
                ;;
            *) continue ;;
            esac
            [ ! -e "${device}p1" ] || timeout 5 delpart "$device" 1 2>/dev/null
            timeout 5 losetup -d "$device" 2>/dev/null
        done
    done
    # Its own loop device goes with it.
    timeout 5 umount -l "$dir" 2>/dev/null
    rm -rf "$base"
}
# Outlives a SIGKILL of this script and all its group, and cleans up then.
export base dir
export -f clean_up
setsid bash -c 'tail -f --pid='$$' /dev/null; [ ! -e "$base" ] || clean_up' </dev/null >/dev/null 2>&1 &
disown
trap clean_up EXIT
trap 'exit 130' INT TERM HUP
truncate -s 1500M "$base/img" && timeout 30 mkfs.ext4 -q -F "$base/img" && timeout 20 mount -o loop "$base/img" "$dir" ||
    { echo "SKIPPED: no file system can be mounted"; exit 0; }
export IOSCHED_STATE=$dir/state IOSCHED_DB=$dir/results.db HOME=$dir

cat >"$dir/w.fio" <<'T'
[w]
filename=/dev/disk
rw=write
bs=64k
size=4m
direct=1
T
# Two seconds of writing all over: time for others to come between.
cat >"$dir/long.fio" <<'T'
[w]
filename=/dev/disk
rw=randwrite
bs=4k
direct=1
ioengine=libaio
iodepth=8
time_based
runtime=3
T
sed 's/rw=write/rw=read/' "$dir/w.fio" >"$dir/r.fio"

# --- Words of an attack ---
held=0 broke=0 skipped=0 late=0
# begin NAME [long]: whether to do it. Long ones are left out of the short form.
begin() {
    name=$1 victims=() sums=() wrong='' log=$dir/log
    case $name in *$only*) ;; *) return 1 ;; esac
    if [ -n "$short" ] && [ "${2:-}" = long ]; then return 1; fi
    if [ $SECONDS -gt $limit ]; then late=$((late + 1)); return 1; fi
    n=$((held + broke + skipped))
    : >"$log"
}
skip() { skipped=$((skipped + 1)); printf 'skipped  %s: %s\n' "$name" "$1"; }
sum() { timeout 20 sha256sum <"$1" | cut -c1-64; }
# victim FILE...: its bytes must not change.
victim() {
    local f
    for f in "$@"; do victims+=("$f") sums+=("$(sum "$f")"); done
}
# The figures do not matter here, so a busy machine is fine.
noise=()
"$program" run --help | grep -q -- --allow-noise && noise=(--allow-noise)
run() { timeout -k 5 40 "$program" run "$@" --backend real --scheduler none --runs 1 --no-warm-up --no-store --quiet "${noise[@]}"; }
# refused WORDS JOB...: it must end with 2 or 3, and say why.
refused() {
    local words=$1 code
    shift
    run "$@" >"$log" 2>&1 </dev/null
    code=$?
    case $code in 2 | 3) ;; *) wrong+=" exit code $code instead of a refusal;" ;; esac
    grep -qE -- "$words" "$log" || wrong+=" it did not say '$words';"
}
# goes JOB...: it must run (a busy machine makes its figures invalid, which is no matter here).
goes() {
    local code
    run "$@" >"$log" 2>&1 </dev/null
    code=$?
    case $code in 0) ;; 4) grep -q 'is invalid' "$log" || wrong+=" it failed;" ;; *) wrong+=" exit code $code;" ;; esac
}
# end: the verdict.
end() {
    local i
    sync
    for i in "${!victims[@]}"; do
        [ "$(sum "${victims[i]}")" = "${sums[i]}" ] || wrong+=" ${victims[i]} CHANGED;"
    done
    if [ -z "$wrong" ]; then
        held=$((held + 1))
        printf 'held     %s\n' "$name"
    else
        broke=$((broke + 1))
        printf 'BROKE    %s:%s\n' "$name" "$wrong"
        sed 's/^/           /' "$log" | head -8
    fi
}
# changed FILE OLD: the bytes that should have been written were.
changed() { [ "$(sum "$1")" != "$2" ] || wrong+=" $1 was never written;"; }

images=0
# image MIB: a new blank file, in $img.
image() { images=$((images + 1)) img=$dir/img$images && truncate -s "$1M" "$img"; }
# attach FILE [OPTIONS]: a loop device over it, in $disk.
attach() {
    local file=$1
    shift
    disk=$(timeout 10 losetup -f --show "$@" "$file") || return 1
    echo "$disk" >>"$base/loops"
}
disk() { image "${1:-16}" && attach "$img"; }
detach() { timeout 10 losetup -d "$@" 2>/dev/null; }
# filesystem FILE: ext4 with something in it.
filesystem() {
    mkdir -p "$dir/seed" && echo precious >"$dir/seed/precious"
    timeout 20 mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 -d "$dir/seed" "$1"
}
mounted() { mkdir -p "$dir/mnt$n" && timeout 10 mount -o "${2:-ro}" "$1" "$dir/mnt$n"; }
# table FILE: a partition table with one partition from 1 MiB on.
table() {
    printf '\0\0\0\0\x83\0\0\0\0\x08\0\0\0\x60\0\0' | dd of="$1" bs=1 seek=446 conv=notrunc status=none
    printf '\x55\xaa' | dd of="$1" bs=1 seek=510 conv=notrunc status=none
}
unmount() { timeout 10 umount "$dir/mnt$n"; }
noise() { head -c "$2" /dev/urandom >"$1"; }
# holder COMMAND...: runs beside us until `release`.
holder() { "$@" </dev/null >/dev/null 2>&1 & beside=$!; sleep 0.3; }
release() { kill -9 "$beside" 2>/dev/null; wait "$beside" 2>/dev/null; }

# under JOB ARGS...: starts it and waits until it writes.
under() {
    run "$@" >"$log" 2>&1 </dev/null &
    beside=$!
    for _ in $(seq 60); do
        if pgrep -f "max-jobs=4096.*$dir/state" >/dev/null || ! kill -0 $beside 2>/dev/null; then break; fi
        sleep 0.1
    done
}

# --- What was once lost: runs that go, and where they write ---
# special WHAT TAIL [long]: a file with a name that goes on after that of another.
special() {
    begin "a file with $1 in its name" "${3:-}" || return
    mkdir -p "$dir/names$n"
    local short_name=$dir/names$n/data target=$dir/names$n/data$2 before
    noise "$short_name" 4M && noise "$target" 4M && victim "$short_name"
    before=$(sum "$target")
    goes "$dir/w.fio" --device "$target" --overwrite-file "$target"
    changed "$target" "$before"
    end
}
special '#' '#1'
begin "a link that is pointed at another disk while it runs" && {
    disk && a=$disk && before=$(sum "$img") && imga=$img && disk && filesystem "$img" && b=$disk && victim "$img"
    ln -sfn "$a" "$dir/moving"
    under "$dir/long.fio" --device "$dir/moving" --destroy-data="$dir/moving"
    ln -sfn "$b" "$dir/moving"
    wait $beside
    changed "$imga" "$before"
    end
    detach "$a" "$b"
}
begin "mkfs, mount, swapon and a second run on the device while it runs" && {
    disk && a=$disk && under "$dir/long.fio" --device "$a" --destroy-data="$a"
    timeout 10 mkfs.ext4 -q -F "$a" >/dev/null 2>&1 && wrong+=" mkfs was not stopped;"
    timeout 10 mount "$a" "$dir/seed" 2>/dev/null && { wrong+=" mount was not stopped;"; timeout 5 umount "$dir/seed"; }
    timeout 10 swapon "$a" 2>/dev/null && { wrong+=" swapon was not stopped;"; timeout 5 swapoff "$a"; }
    cp "$log" "$log.first"
    refused 'another iosched|in use' "$dir/w.fio" --device "$a" --destroy-data="$a"
    wait $beside
    end
    detach "$a"
}

# --- Names that lead elsewhere ---
begin "a relative name that is a file and a device" && {
    disk && victim "$img"
    here=$PWD && mkdir "$dir/rel" && cd "$dir/rel" && noise "${disk#/dev/}" 1M && victim "$dir/rel/${disk#/dev/}"
    refused 'is a device and a file here' "$dir/w.fio" --device "${disk#/dev/}"
    cd "$here" && end && detach "$disk"
}
begin "a relative name of a mounted device" && {
    disk && filesystem "$disk" && mounted "$disk" && victim "$img"
    here=$PWD && cd "$dir" && refused 'in use' "$dir/w.fio" --device "${disk#/dev/}" --destroy-data="${disk#/dev/}"
    cd "$here" && end
    unmount && detach "$disk"
}
begin "a path through '..' to a mounted device" && {
    disk && filesystem "$disk" && mounted "$disk" && victim "$img"
    refused 'in use' "$dir/w.fio" --device "$dir/../../../..$disk" --destroy-data="$dir/../../../..$disk"
    end
    unmount && detach "$disk"
}
for word in '' . .. / /dev "$dir"; do
    begin "no file at all: '${word#"$dir"}'" && {
        refused 'directory|without a name' "$dir/w.fio" --device "$word"
        end
    }
done
begin "a device with a slash behind it" && {
    disk && filesystem "$disk" && victim "$img"
    refused 'Not a directory|no block device' "$dir/w.fio" --device "$disk/" --destroy-data="$disk/"
    end
    detach "$disk"
}
for what in /dev/null /dev/zero "$dir/pipe"; do
    begin "what is neither disk nor file: ${what#"$dir/"}" && {
        [ -p "$dir/pipe" ] || mkfifo "$dir/pipe"
        refused 'neither a block device nor a file|empty|Illegal seek|cannot' "$dir/w.fio" --device "$what"
        end
    }
done

# --- Devices in use ---
for leave in '' yes; do
    with=${leave:+, with leave}
    begin "a mounted device$with" && {
        disk && filesystem "$disk" && mounted "$disk" && victim "$img"
        refused "in use: .*$disk is mounted on" "$dir/w.fio" --device "$disk" ${leave:+--destroy-data="$disk"}
        end
        unmount && detach "$disk"
    }
    begin "a loop device over it, from 1 MiB on, mounted$with" && {
        disk 32 && low=$disk && attach "$disk" -o 1048576 && filesystem "$disk" && mounted "$disk" && sync && victim "$img"
        refused "in use: .*$low backs $disk" "$dir/w.fio" --device "$low" ${leave:+--destroy-data="$low"}
        end
        unmount && detach "$disk" "$low"
    }
    begin "a loop device over it, from its start, mounted$with" && {
        disk && low=$disk && attach "$disk" && filesystem "$disk" && mounted "$disk" && sync && victim "$img"
        refused "in use: .*backs" "$dir/w.fio" --device "$low" ${leave:+--destroy-data="$low"}
        end
        unmount && detach "$disk" "$low"
    }
    begin "a device that a process has open$with" && {
        disk && filesystem "$disk" && victim "$img"
        holder bash -c "exec 7<'$disk'; exec sleep 60"
        refused "in use: .*is open in" "$dir/w.fio" --device "$disk" ${leave:+--destroy-data="$disk"}
        end
        release && detach "$disk"
    }
done
begin "a device mounted for writing, with leave" && {
    disk && filesystem "$disk" && mounted "$disk" rw && echo more >"$dir/mnt$n/more" && sync && victim "$dir/mnt$n/precious" "$dir/mnt$n/more"
    refused 'in use' "$dir/w.fio" --device "$disk" --destroy-data="$disk"
    end
    unmount && detach "$disk"
}
begin "a loop device over it that nobody uses yet" && {
    disk && low=$disk && attach "$disk" && victim "$img"
    refused 'in use' "$dir/w.fio" --device "$low" --destroy-data="$low"
    end
    detach "$disk" "$low"
}
begin "a loop device on a loop device on a loop device" && {
    disk 32 && low=$disk && attach "$low" && mid=$disk && attach "$mid" -o 65536 && filesystem "$disk" && mounted "$disk" && sync && victim "$img"
    refused 'in use' "$dir/w.fio" --device "$low" --destroy-data="$low"
    refused 'in use' "$dir/w.fio" --device "$mid" --destroy-data="$mid"
    end
    unmount && detach "$disk" "$mid" "$low"
}
begin "a loop device over a mounted device" && {
    disk && low=$disk && filesystem "$low" && mounted "$low" && attach "$low" && victim "$img"
    refused 'in use' "$dir/w.fio" --device "$disk" --destroy-data="$disk"
    end
    unmount && detach "$disk" "$low"
}
begin "two loop devices over one file, the other one mounted" && {
    disk && filesystem "$img" && low=$disk && attach "$img" && mounted "$disk" && victim "$img"
    refused 'in use' "$dir/w.fio" --device "$low" --destroy-data="$low"
    end
    unmount && detach "$disk" "$low"
}
begin "a device mounted in another mount namespace" && {
    disk && filesystem "$disk" && mkdir -p "$dir/mnt$n" && victim "$img"
    holder unshare -m sh -c "mount --make-rprivate /; mount -o ro '$disk' '$dir/mnt$n'; exec sleep 60"
    refused 'in use' "$dir/w.fio" --device "$disk" --destroy-data="$disk"
    end
    release && detach "$disk"
}
begin "a loop device over it, mounted in another mount namespace" && {
    disk && filesystem "$disk" && low=$disk && attach "$low" && mkdir -p "$dir/mnt$n" && victim "$img"
    holder unshare -m sh -c "mount --make-rprivate /; mount -o ro '$disk' '$dir/mnt$n'; exec sleep 60"
    refused 'in use' "$dir/w.fio" --device "$low" --destroy-data="$low"
    end
    release && detach "$disk" "$low"
}
begin "a disk with a mounted partition" && {
    image 32 && table "$img"
    attach "$img" && timeout 5 addpart "$disk" 1 2048 24576 && sleep 0.3
    if [ -b "${disk}p1" ]; then
        filesystem "${disk}p1" && mounted "${disk}p1" && sync && victim "$img"
        refused 'in use' "$dir/w.fio" --device "$disk" --destroy-data="$disk"
        refused 'in use' "$dir/w.fio" --device "${disk}p1" --destroy-data="${disk}p1"
        end
        unmount
    else
        skip "no partitions of loop devices"
    fi
    timeout 5 delpart "$disk" 1 2>/dev/null
    detach "$disk"
}
begin "a disk with a loop device over its partition; the partition below it" && {
    image 32 && table "$img"
    attach "$img" && whole=$disk && timeout 5 addpart "$whole" 1 2048 24576 && sleep 0.3
    if [ -b "${whole}p1" ]; then
        attach "${whole}p1" && victim "$img"
        refused 'in use' "$dir/w.fio" --device "$whole" --destroy-data="$whole"
        refused 'in use' "$dir/w.fio" --device "${whole}p1" --destroy-data="${whole}p1"
        detach "$disk" && attach "$whole" -o 4096
        refused 'in use' "$dir/w.fio" --device "${whole}p1" --destroy-data="${whole}p1"
        end
        detach "$disk"
    else
        skip "no partitions of loop devices"
    fi
    timeout 5 delpart "$whole" 1 2>/dev/null
    detach "$whole"
}
begin "a partition table with nothing in it" && {
    image 16 && table "$img"
    attach "$img" && victim "$img"
    refused 'it holds|has partitions' "$dir/w.fio" --device "$disk"
    end
    detach "$disk"
}
begin "swap space in use, with leave" && {
    disk && timeout 10 mkswap -q "$disk" 2>/dev/null >/dev/null
    if timeout 10 swapon "$disk" 2>/dev/null; then
        echo "$disk" >>"$base/swaps" && victim "$img"
        refused 'in use' "$dir/w.fio" --device "$disk" --destroy-data="$disk"
        end
        timeout 10 swapoff "$disk"
    else
        skip "no swap in this kernel"
    fi
    detach "$disk"
}
begin "a swap file in use, with leave" && {
    file=$dir/swapfile && noise "$file" 8M && chmod 600 "$file" && timeout 10 mkswap "$file" >/dev/null 2>&1
    if timeout 10 swapon "$file" 2>/dev/null; then
        victim "$file"
        refused 'in use: .*swap' "$dir/w.fio" --device "$file" --overwrite-file="$file"
        end
        timeout 10 swapoff "$file"
    else
        skip "no swap in this kernel"
    fi
}
begin "a device open by another node of the same number" && {
    disk && filesystem "$disk" && victim "$img"
    mknod "$dir/node$n" b "$((16#$(stat -c %t "$disk")))" "$((16#$(stat -c %T "$disk")))"
    holder bash -c "exec 7<>'$dir/node$n'; exec sleep 60"
    refused 'in use: .*is open in' "$dir/w.fio" --device "$disk" --destroy-data="$disk"
    end
    release && detach "$disk"
}
begin "a node of our own of a mounted device" && {
    disk && filesystem "$disk" && mounted "$disk" && victim "$img"
    mknod "$dir/node$n" b "$((16#$(stat -c %t "$disk")))" "$((16#$(stat -c %T "$disk")))"
    refused 'in use' "$dir/w.fio" --device "$dir/node$n" --destroy-data="$dir/node$n"
    end
    unmount && detach "$disk"
}
for kind in linear; do
    begin "a device below a device mapper target" && {
        disk && low=$disk && victim "$img"
        if timeout 10 dmsetup create "iosched-attack-$$" --table "0 16384 $kind $low 0" 2>/dev/null; then
            refused 'in use' "$dir/w.fio" --device "$low" --destroy-data="$low"
            end
            timeout 10 dmsetup remove "iosched-attack-$$"
        else
            skip "no device mapper in this kernel"
        fi
        detach "$low"
    }
done
begin "a member of a running array" && {
    disk 32 && a=$disk && victim "$img" && disk 32 && b=$disk
    if timeout 20 mdadm --create /dev/md/iosched-attack --run --level=1 --raid-devices=2 "$a" "$b" >/dev/null 2>&1; then
        victims=() sums=()
        refused 'in use' "$dir/w.fio" --device "$a" --destroy-data="$a"
        timeout 10 mdadm --stop /dev/md/iosched-attack >/dev/null 2>&1
        end
    else
        skip "no arrays in this kernel"
    fi
    detach "$a" "$b"
}
begin "a device mapped by a process that closed it" && {
    if command -v python3 >/dev/null; then
        disk && filesystem "$disk" && victim "$img"
        holder python3 -c "
import mmap, os, time
f = os.open('$disk', os.O_RDWR); m = mmap.mmap(f, 4096); os.close(f); m2 = m[:8]; time.sleep(60)"
        sleep 1
        refused 'in use: .*(mapped|open)' "$dir/w.fio" --device "$disk" --destroy-data="$disk"
        end
        release && detach "$disk"
    else skip "no python3"; fi
}
begin "a read-only device, with leave" && {
    image 16 && filesystem "$img" && attach "$img" -r && victim "$img"
    refused 'read-only' "$dir/w.fio" --device "$disk" --destroy-data="$disk"
    end
    detach "$disk"
}
begin "a loop device without a file" && {
    empty=$(losetup -f)
    refused 'no size|empty|No such device|beyond' "$dir/w.fio" --device "$empty" --destroy-data="$empty"
    end
}
begin "a descriptor of ours that is a mounted device" && {
    disk && filesystem "$disk" && mounted "$disk" && victim "$img"
    exec 7<"$disk" && refused 'in use' "$dir/w.fio" --device /proc/self/fd/7 --destroy-data=/proc/self/fd/7
    refused 'in use' "$dir/w.fio" --device /dev/fd/7 --destroy-data=/dev/fd/7
    exec 7<&- && end
    unmount && detach "$disk"
}

# --- What lies on a device, without leave ---
# mark WHAT OFFSET BYTES: a blank disk with this. A negative offset counts from the end.
mark() {
    begin "a disk with $1" "${4:-}" || return
    disk 16
    local at=$2
    [ "$at" -ge 0 ] || at=$((16777216 + at))
    printf '%b' "$3" | dd of="$img" bs=1 seek="$at" conv=notrunc status=none
    victim "$img"
    refused 'it holds|not blank' "$dir/w.fio" --device "$disk"
    end
    detach "$disk"
}
mark 'an uberblock of ZFS at 128 KiB' 131072 '\x0c\xb1\xba\x00\x00\x00\x00\x00'
mark 'an array of version 0.90 at the end' -65536 '\xfc\x4e\x2b\xa9'
mark 'an array of version 1.0 at the end' -8192 '\xfc\x4e\x2b\xa9\x01'
mark 'an array of version 1.2' 4096 '\xfc\x4e\x2b\xa9\x01'
mark 'swap of 64 KiB pages' 65526 'SWAPSPACE2'
mark 'a hibernated system' 4086 'S1SUSPEND\x00'
mark 'a label of LVM in sector 3' 1536 'LABELONE\x03'
mark 'the backup of a GPT alone' -512 'EFI PART'
mark 'a header of LUKS' 0 'LUKS\xba\xbe\x00\x02'
mark 'the second header of LUKS2' 16384 'SKUL\xba\xbe\x00\x02' long
mark 'btrfs' 65600 '_BHRfS_M' long
mark 'XFS' 0 'XFSB' long
mark 'a log of XFS' 0 '\xfe\xed\xba\xbe' long
mark 'bcache' 4120 '\xc6\x85\x73\xf6\x4e\x1a\x45\xca' long
mark 'BlueStore' 0 'bluestore block device\n' long
mark 'OCFS2' 8192 'OCFSV2' long
mark 'GFS2' 65536 '\x01\x16\x19\x70' long
mark 'NILFS2' 1030 '\x34\x34' long
mark 'HFS+' 1024 'H+\x00\x04' long
mark 'APFS' 32 'NXSB' long
mark 'IMSM' -1024 'Intel Raid ISM Cfg Sig. 1.0.00' long
mark 'DDF' -512 '\xde\x11\xde\x11' long
mark 'DRBD' -4036 '\x83\x74\x02\x6b' long
mark 'VMFS' 1048576 '\x0d\xd0\x01\xc0' long
mark 'Oracle ASM' 32 'ORCLDISK' long
mark 'VDO' 0 'dmvdo001' long
mark 'dm-integrity' 0 'integrt\x00' long
mark 'dm-verity' 0 'verity\x00\x00' long
mark 'erofs' 1024 '\xe2\xe1\xf5\xe0' long
mark 'minix' 1040 '\x7f\x13' long
mark 'one byte in the first sector' 100 'x'
mark 'one byte in the last sector' -1 'x'
begin "a disk full of data without any mark" && {
    disk && noise "$img" 16M && victim "$img"
    refused 'not blank' "$dir/w.fio" --device "$disk"
    end
    detach "$disk"
}
begin "a disk with data in its middle only" && {
    disk 64 && dd if=/dev/urandom of="$img" bs=1M seek=20 count=4 conv=notrunc status=none && victim "$img"
    refused 'not blank' "$dir/w.fio" --device "$disk"
    end
    detach "$disk"
}
begin "a tiny disk with data" && {
    image 0 && noise "$img" 4096 && attach "$img" && victim "$img"
    refused 'not blank|beyond the end|device has' "$dir/w.fio" --device "$disk"
    end
    detach "$disk"
}
begin "leave for another device" && {
    disk && filesystem "$img" && victim "$img" && a=$disk && disk
    refused 'it holds' "$dir/w.fio" --device "$a" --destroy-data="$disk"
    refused 'it holds' "$dir/w.fio" --device "$a" --destroy-data="$a "
    end
    detach "$a" "$disk"
}
begin "a steady state on a device with data" && {
    disk && filesystem "$img" && victim "$img"
    refused 'it holds' "$dir/r.fio" --device "$disk" --steady-state
    end
    detach "$disk"
}
begin "an experiment file that names a blank and a full disk" long && {
    disk && a=$disk && disk && filesystem "$img" && victim "$img"
    printf 'name = "two"\nbackend = "real"\ndevices = ["%s"]\nschedulers = ["none"]\nworkloads = ["%s"]\n' "$disk" "$dir/w.fio" >"$dir/two.toml"
    refused 'it holds' "$dir/two.toml"
    end
    detach "$a" "$disk"
}

# --- Files ---
begin "a file of somebody's" && {
    noise "$dir/letters" 4M && victim "$dir/letters"
    refused 'no file that iosched made' "$dir/w.fio" --device "$dir/letters"
    end
}
begin "a file of somebody's with our name" && {
    noise "$dir/iosched-mine.img" 4M && victim "$dir/iosched-mine.img"
    refused 'no file that iosched made' "$dir/w.fio" --device "$dir/iosched-mine.img"
    refused 'no file that iosched made|is there already' "$dir/w.fio" --device "$dir/iosched-mine.img" --size 4M
    end
}
begin "a file that backs a loop device, with leave" && {
    disk && filesystem "$img" && victim "$img"
    refused 'in use: .*backs' "$dir/w.fio" --device "$img" --overwrite-file="$img"
    mounted "$disk"
    refused 'in use: .*backs' "$dir/w.fio" --device "$img" --overwrite-file="$img"
    end
    unmount && detach "$disk"
}
begin "a file that backs a loop device, by another mount of it" && {
    mkdir -p "$dir/sub$n" "$dir/bound$n" && noise "$dir/sub$n/f" 4M && attach "$dir/sub$n/f" && timeout 5 mount --bind "$dir/sub$n" "$dir/bound$n"
    victim "$dir/sub$n/f"
    refused 'in use: .*backs' "$dir/w.fio" --device "$dir/bound$n/f" --overwrite-file="$dir/bound$n/f"
    end
    timeout 5 umount "$dir/bound$n"
    detach "$disk"
}
begin "a file that a process has open, with leave" && {
    noise "$dir/open" 4M && victim "$dir/open"
    holder bash -c "exec 7<'$dir/open'; exec sleep 60"
    refused 'in use: .*open in' "$dir/w.fio" --device "$dir/open" --overwrite-file="$dir/open"
    release
    holder bash -c "exec 7>>'$dir/open'; exec sleep 60"
    refused 'in use: .*open in' "$dir/w.fio" --device "$dir/open" --overwrite-file="$dir/open"
    end
    release
}
begin "a file with two names, with leave" && {
    noise "$dir/one" 4M && ln "$dir/one" "$dir/two" && victim "$dir/two"
    refused 'in use: it has 2 names' "$dir/w.fio" --device "$dir/one" --overwrite-file="$dir/one"
    end
}
begin "a link to somebody's file, with leave for the link" && {
    noise "$dir/real" 4M && ln -s "$dir/real" "$dir/iosched-link.img" && victim "$dir/real"
    refused 'no file that iosched made' "$dir/w.fio" --device "$dir/iosched-link.img" --overwrite-file="$dir/iosched-link.img"
    end
}
begin "leave for another file" && {
    noise "$dir/f1" 4M && noise "$dir/f2" 4M && victim "$dir/f1" "$dir/f2"
    refused 'no file that iosched made' "$dir/w.fio" --device "$dir/f1" --overwrite-file="$dir/f2"
    end
}
begin "a deleted file that somebody has open, by its descriptor" && {
    noise "$dir/gone" 4M
    exec 7<>"$dir/gone" && rm "$dir/gone" && before=$(sha256sum <&7)
    refused 'deleted' "$dir/w.fio" --device "/proc/$$/fd/7" --overwrite-file="/proc/$$/fd/7"
    exec 7<>"/proc/$$/fd/7"
    [ "$(sha256sum <&7)" = "$before" ] || wrong+=" the deleted file CHANGED;"
    exec 7>&- && end
}
begin "a file mapped by a process that closed it, with leave" && {
    if command -v python3 >/dev/null; then
        noise "$dir/mapped" 4M && victim "$dir/mapped"
        holder python3 -c "
import mmap, os, time
f = os.open('$dir/mapped', os.O_RDWR); m = mmap.mmap(f, 4096); os.close(f); time.sleep(60)"
        sleep 1
        refused 'in use: .*mapped' "$dir/w.fio" --device "$dir/mapped" --overwrite-file="$dir/mapped"
        end
        release
    else skip "no python3"; fi
}
in_flight() {
    holder python3 -c "
import array, os, socket, time
a, b = socket.socketpair(socket.AF_UNIX)
f = os.open('$1', os.O_RDWR)
a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [f]))])
os.close(f); time.sleep(60)"
    sleep 1
}
begin "a file on its way through a socket, with leave" && {
    if command -v python3 >/dev/null; then
        noise "$dir/flying" 4M && victim "$dir/flying"
        in_flight "$dir/flying"
        refused 'in use: somebody who cannot be seen has it open' "$dir/w.fio" --device "$dir/flying" --overwrite-file="$dir/flying"
        end
        release
    else skip "no python3"; fi
}
begin "a device on its way through a socket" && {
    if command -v python3 >/dev/null; then
        disk && victim "$img"
        in_flight "$disk"
        refused 'open files on their way' "$dir/w.fio" --device "$disk"
        end
        release && detach "$disk"
    else skip "no python3"; fi
}
begin "a file on a file system in memory" && {
    mkdir "$dir/ram" && timeout 5 mount -t tmpfs none "$dir/ram" && noise "$dir/ram/f" 4M && victim "$dir/ram/f"
    refused 'no block device' "$dir/w.fio" --device "$dir/ram/f" --overwrite-file="$dir/ram/f"
    end
    timeout 5 umount "$dir/ram"
}
begin "a size for a file that is there, and for a name that is not ours" && {
    noise "$dir/iosched-size.img" 4M && victim "$dir/iosched-size.img"
    refused 'is there already|no file that iosched made' "$dir/w.fio" --device "$dir/iosched-size.img" --size 8M
    refused 'is named iosched-NAME.img' "$dir/w.fio" --device "$dir/other.img" --size 4M
    [ ! -e "$dir/other.img" ] || wrong+=" a file was made;"
    refused 'to have it made' "$dir/w.fio" --device "$dir/iosched-none.img"
    end
}
begin "a link to nowhere by the name of a file to be made" && {
    ln -s "$dir/nowhere" "$dir/iosched-dangling.img"
    refused 'exists|looking at|No such file' "$dir/w.fio" --device "$dir/iosched-dangling.img" --size 4M
    [ ! -e "$dir/nowhere" ] || wrong+=" it wrote through the link;"
    end
}
begin "more room than there is" && {
    refused 'no space left|out of range|File too large' "$dir/w.fio" --device "$dir/iosched-huge.img" --size 1000T
    [ ! -e "$dir/iosched-huge.img" ] || wrong+=" a file stayed;"
    end
}

# --- Looking changes nothing ---
begin "a dry run and the doctor on disks and files of all kinds" && {
    disk && a=$disk && victim "$img" && disk && filesystem "$img" && b=$disk && victim "$img" && noise "$dir/look" 4M && victim "$dir/look"
    for target in "$a" "$b" "$dir/look" "$dir/iosched-dry.img"; do
        run "$dir/w.fio" --device "$target" --destroy-data="$target" --overwrite-file="$target" --dry-run >>"$log" 2>&1
        timeout 20 "$program" doctor "$target" >>"$log" 2>&1
    done
    run "$dir/w.fio" --device "$dir/iosched-dry.img" --size 4M --dry-run >>"$log" 2>&1 || wrong+=" the dry run failed;"
    [ ! -e "$dir/iosched-dry.img" ] || wrong+=" the dry run made a file;"
    end
    detach "$a" "$b"
}
# --- From here on runs go: it is what they write to that counts ---
# --- Names that fio or a shell reads differently ---
special ';' ';1' long
special ':' ':1'
special 'a blank' ' 1' long
special 'a blank at the end' ' '
special 'a tab' $'\t1' long
special 'a line feed' $'\n1'
special 'a line of a job file' $'\nfilename=data' long
special 'a backslash' '\1' long
special 'quotes' "'\"1" long
special 'a comma' ',1' long
special 'a variable' '$HOME${PATH}' long
special 'a command' '`touch pwned`$(touch pwned)' long
special 'a section' '[global]' long
special 'an equals sign' '=1' long
special 'a percent sign' '%s%n' long
special 'letters beyond ASCII' 'ü🖴' long

begin "a device by a link with '#1' behind the name of another" && {
    disk && victim "$img" && a=$disk && disk && b=$disk && before=$(sum "$img")
    ln -s "$a" "$dir/by-id-x" && ln -s "$b" "$dir/by-id-x#1"
    goes "$dir/w.fio" --device "$dir/by-id-x#1" --destroy-data="$dir/by-id-x#1"
    changed "$img" "$before"
    end
    rm "$dir"/by-id-x*
    detach "$a" "$b"
}
begin "a file whose name begins with a dash" long && {
    mkdir "$dir/dash" && noise "$dir/dash/-x" 4M && noise "$dir/dash/x" 4M && victim "$dir/dash/x"
    here=$PWD && cd "$dir/dash" && goes "$dir/w.fio" --device=./-x --overwrite-file=./-x
    cd "$here" && end
}
begin "a job that reads a mounted device" && {
    disk && filesystem "$disk" && mounted "$disk" && victim "$img"
    goes "$dir/r.fio" --device "$disk"
    end
    unmount && detach "$disk"
}
begin "a file of ours under another name, and a copy of it" && {
    goes "$dir/w.fio" --device "$dir/iosched-own.img" --size 4M
    cp -a "$dir/iosched-own.img" "$dir/iosched-copy.img"
    mv "$dir/iosched-own.img" "$dir/backup.img"
    victim "$dir/backup.img" "$dir/iosched-copy.img"
    refused 'no file that iosched made' "$dir/w.fio" --device "$dir/backup.img"
    refused 'no file that iosched made' "$dir/w.fio" --device "$dir/iosched-copy.img"
    end
}
begin "a copy of a file of ours on another file system, under the same inode number" && {
    disk && filesystem "$img" && mkdir -p "$dir/fs-one" && mount "$disk" "$dir/fs-one"
    goes "$dir/w.fio" --device "$dir/fs-one/iosched-own.img" --size 4M
    number=$(stat -c %i "$dir/fs-one/iosched-own.img")
    a=$disk
    disk && filesystem "$img" && mkdir -p "$dir/fs-two" && mount "$disk" "$dir/fs-two"
    # Fill numbers up until the copy gets the same one.
    for i in $(seq 200); do
        cp -a "$dir/fs-one/iosched-own.img" "$dir/fs-two/iosched-own.img"
        [ "$(stat -c %i "$dir/fs-two/iosched-own.img")" = "$number" ] && break
        mv "$dir/fs-two/iosched-own.img" "$dir/fs-two/$i" && : >"$dir/fs-two/$i"
    done
    if [ "$(stat -c %i "$dir/fs-two/iosched-own.img")" = "$number" ]; then
        victim "$dir/fs-two/iosched-own.img"
        refused 'no file that iosched made' "$dir/w.fio" --device "$dir/fs-two/iosched-own.img"
        end
    else
        skip "no copy got the same inode number"
    fi
    umount "$dir/fs-one" "$dir/fs-two"
    detach "$a" "$disk"
}

# --- What it leaves and takes away ---
begin "something mounted inside the folder of a killed start-up test" && {
    mkdir -p "$dir/starts" "$dir/precious" && noise "$dir/precious/a" 1M && victim "$dir/precious/a"
    cat >"$dir/start.toml" <<T
name = "start"
backend = "real"
devices = ["$dir/starts"]
schedulers = ["none"]
runs = 1
workloads = [{ startup = { command = "bash -c :", load = "1r-seq", file_size = "64MiB", idle = 1 } }]
T
    "$program" run "$dir/start.toml" --no-store --quiet >"$log" 2>&1 &
    beside=$!
    for _ in $(seq 100); do
        folder=$(echo "$dir"/starts/iosched-startup-*) small=$folder/root
        [ -d "$small/tmp" ] && break
        sleep 0.1
    done
    if mkdir -p "$small/tmp/in" && mount --bind "$dir/precious" "$small/tmp/in"; then
        kill -9 $beside
        wait $beside 2>/dev/null
        for _ in $(seq 30); do [ -d "$small/usr" ] || [ -d "$small/bin" ] || break; sleep 0.1; done
        timeout 20 "$program" restore >>"$log" 2>&1
        grep -q "something is mounted on" "$log" || wrong+=" restore did not say that something is mounted inside;"
        umount "$small/tmp/in"
        timeout 20 "$program" restore >>"$log" 2>&1
        [ ! -e "$folder" ] || wrong+=" the folder is still there;"
        end
    else
        kill -9 $beside
        skip "the start-up test did not begin"
    fi
}
begin "other files in the folder for state files" && {
    mkdir -p "$dir/home" && noise "$dir/home/.profile" 1M && noise "$dir/home/a" 1M && victim "$dir/home/.profile" "$dir/home/a"
    timeout 20 "$program" restore --state-dir "$dir/home" >"$log" 2>&1
    end
}

# writes NAME...: a program that writes and syncs in the folder $dir/programs until it is stopped; its own folder, in $folder.
writes() {
    mkdir -p "$dir/programs"
    run "$@" --device "$dir/programs" >"$log" 2>&1 </dev/null &
    beside=$!
    folder=
    for _ in $(seq 100); do
        folder=$(echo "$dir"/programs/iosched-program-*)
        [ -n "$(find "$folder" -type f -size +64k 2>/dev/null)" ] && break
        sleep 0.1
    done
}
begin "a program's run that is killed" && {
    mkdir -p "$dir/programs" && noise "$dir/programs/mine" 1M && victim "$dir/programs/mine"
    writes "fsops append_fsync . 4 1000000 65536"
    [ -d "$folder" ] || wrong+=" it did not begin;"
    pkill -9 -f "append_fsync.*$dir/programs"
    wait $beside 2>/dev/null
    for _ in $(seq 50); do [ -e "$folder" ] || break; sleep 0.1; done
    [ ! -e "$folder" ] || wrong+=" its folder is still there;"
    end
}
begin "folders of a program that become links while it runs" && {
    mkdir -p "$dir/precious" && noise "$dir/precious/f0" 1M && cp "$dir/precious/f0" "$dir/precious/f1"
    victim "$dir/precious/f0" "$dir/precious/f1"
    writes "fsops over_fsync . 2 1000000 65536"
    for _ in 1 2 3 4 5 6; do
        find "$folder" -type d -name 'work' -exec sh -c 'mv "$1" "$1.old" && ln -s "$2" "$1"' - {} "$dir/precious" \; 2>/dev/null
        find "$folder" -type f -exec ln -sf "$dir/precious/f0" {} \; 2>/dev/null
        sleep 0.2
    done
    pkill -INT -f "over_fsync.*$dir/programs"
    wait $beside 2>/dev/null
    for _ in $(seq 30); do [ -e "$folder" ] || break; sleep 0.1; done
    timeout 20 "$program" restore >>"$log" 2>&1
    end
}
begin "a log of system calls whose names lead out" && {
    mkdir -p "$dir/precious" "$dir/programs" && noise "$dir/precious/a" 1M && victim "$dir/precious/a"
    cat >"$dir/out.strace" <<T
1 openat(AT_FDCWD, "../../../precious/a", O_WRONLY|O_TRUNC) = 3
1 write(3, "x", 1) = 1
1 close(3) = 0
1 symlink("$dir/precious", "way") = 0
1 openat(AT_FDCWD, "way/a", O_WRONLY|O_TRUNC) = 3
1 write(3, "x", 1) = 1
1 unlink("$dir/precious/a") = 0
1 rename("../../../precious/a", "b") = 0
1 +++ exited with 0 +++
T
    run "$dir/out.strace" --device "$dir/programs" >"$log" 2>&1
    end
}

# --- While it runs ---
begin "a link that is pointed elsewhere between two runs of an experiment" long && {
    disk && a=$disk && disk && filesystem "$img" && b=$disk && victim "$img"
    ln -sfn "$a" "$dir/moving"
    timeout -k 5 40 "$program" run "$dir/w.fio" --backend real --device "$dir/moving" --destroy-data="$dir/moving" --scheduler none,mq-deadline --runs 3 --no-store --quiet >"$log" 2>&1 &
    beside=$!
    for _ in 1 2 3 4 5 6; do sleep 0.7; ln -sfn "$b" "$dir/moving"; sleep 0.3; done
    wait $beside
    end
    detach "$a" "$b"
}
begin "a file that is replaced by another while it runs" && {
    noise "$dir/swap-me" 8M && noise "$dir/swap-in" 8M && victim "$dir/swap-in"
    under "$dir/long.fio" --device "$dir/swap-me" --overwrite-file="$dir/swap-me"
    cp "$dir/swap-in" "$dir/swap-new" && mv "$dir/swap-new" "$dir/swap-me"
    wait $beside
    victims+=("$dir/swap-me") sums+=("${sums[0]}")
    end
}
begin "a loop device over it, made and mounted while it runs" && {
    disk 32 && a=$disk && under "$dir/long.fio" --set runtime=12 --device "$a" --destroy-data="$a"
    attach "$a" && began=$SECONDS && wait $beside
    code=$?
    [ $code = 3 ] || [ $code = 4 ] || wrong+=" it went on (exit code $code);"
    [ $((SECONDS - began)) -lt 8 ] || wrong+=" it took $((SECONDS - began)) s to stop;"
    grep -q 'since the experiment began' "$log" || wrong+=" it did not say why;"
    end
    detach "$disk" "$a"
}
begin "a second run on a file while the first one writes" && {
    noise "$dir/shared" 8M && under "$dir/long.fio" --device "$dir/shared" --overwrite-file="$dir/shared"
    cp "$log" "$log.first"
    refused 'another iosched|in use' "$dir/w.fio" --device "$dir/shared" --overwrite-file="$dir/shared"
    wait $beside
    end
}

# --- What a job says ---
# job WORDS LINES: a job with more lines on a disk of its own; `-` for words: it may run, too.
job() {
    begin "a job with $1" "${4:-}" || return
    disk && noise "$dir/prey" 4M && victim "$dir/prey"
    { cat "$dir/w.fio"; printf '%b\n' "$3"; } >"$dir/bad.fio"
    if [ "$2" = - ]; then
        run "$dir/bad.fio" --device "$disk" --destroy-data="$disk" >"$log" 2>&1 </dev/null
    else
        refused "$2" "$dir/bad.fio" --device "$disk" --destroy-data="$disk"
    fi
    [ ! -e "$dir/pwned" ] || wrong+=" it ran a program or wrote a file;"
    rm -f "$dir/pwned"
    end
    detach "$disk"
}
job 'a filename of its own' - "filename=$dir/prey"
job 'several filenames' - "filename=$dir/prey:$dir/letters" long
job 'a directory' - "directory=$dir" long
job 'a folder to open' - "opendir=$dir" long
job 'a program before' - "exec_prerun=touch $dir/pwned"
job 'a program after' - "exec_postrun=touch $dir/pwned"
job 'a log of its own' - "write_bw_log=$dir/pwned"
job 'an I/O log to write' - "write_iolog=$dir/pwned" long
job 'an I/O log to read' - "read_iolog=$dir/prey" long
job 'a format of file names' - "filename_format=prey" long
job 'an engine from a file' - "ioengine=external:$dir/prey.so" long
job 'a command in backquotes' - "bs=\`touch $dir/pwned\`"
job 'a variable' - 'size=${HOME}' long
job 'an include' - "include $dir/w.fio" long
job 'deletion' - "unlink=1" long
job 'regions beyond the end' 'beyond the end' 'size=1g'
job 'an offset beyond the end' 'beyond the end' 'offset=1g' long
begin "an option with a line of its own" && {
    disk && noise "$dir/prey" 4M && victim "$dir/prey"
    run "$dir/w.fio" --device "$disk" --destroy-data="$disk" --set $'cgroup=a\nfilename='"$dir/prey" >"$log" 2>&1
    run "$dir/w.fio" --device "$disk" --destroy-data="$disk" --set filename="$dir/prey" >"$log" 2>&1
    end
    detach "$disk"
}
begin "results into a device" && {
    disk && filesystem "$img" && victim "$img"
    run "$dir/r.fio" --device "$disk" --output "$disk" >"$log" 2>&1
    timeout 20 "$program" run "$dir/r.fio" --backend mock --quiet --db "$disk" >"$log" 2>&1
    end
    detach "$disk"
}

begin "an emulated disk with its data in a folder of files" && {
    mkdir "$dir/data" && noise "$dir/data/a" 1M && victim "$dir/data/a" && [ -c /dev/fuse ] && {
        timeout -s INT 4 "$program" emulate hdd-7200 --size 64M --data "file:$dir/data" >"$log" 2>&1
        [ "$(ls "$dir/data")" = a ] || wrong+=" something else is in the folder;"
    }
    end
}
[ $late = 0 ] || echo "skipped  $late more: $limit s have passed"
printf '%d attacks: %d held, %d BROKE, %d skipped, in %d s\n' \
    $((held + broke + skipped + late)) $held $broke $((skipped + late)) $SECONDS
[ $broke = 0 ]
