//! One table per kind of device: every parameter with unit, default, bounds and meaning.
//!
//! The table makes the parameter structure, and feeds the parser, the validation and the descriptions.

use serde::{Deserialize, Serialize};

/// What a parameter counts. This decides how it may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes: a whole number or text with a binary suffix (`"64GiB"`).
    Bytes,
    /// Nanoseconds: a whole number or text with a unit (`"8.33ms"`).
    Nanos,
    /// Bytes per second.
    Rate,
    /// A bare number.
    Count,
    /// Per cent.
    Percent,
    /// True or false (or 1 or 0).
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
}

impl Unit {
    /// The unit as it stands behind a number; empty for bare numbers and words.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Bytes => "B",
            Unit::Nanos => "ns",
            Unit::Rate => "B/s",
            Unit::Percent => "%",
            Unit::Count | Unit::Flag | Unit::Word(_) => "",
        }
    }
}

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name in files.
    pub name: &'static str,
    /// Unit.
    pub unit: Unit,
    /// The default; `None` where the value must be given.
    pub default: Option<u64>,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
    /// Meaning, one sentence.
    pub help: &'static str,
}

/// A parameter's type in its structure.
pub(crate) trait Value {
    fn from_u64(v: u64) -> Self;
    fn to_u64(&self) -> u64;
}

impl Value for u64 {
    fn from_u64(v: u64) -> u64 {
        v
    }
    fn to_u64(&self) -> u64 {
        *self
    }
}

impl Value for bool {
    fn from_u64(v: u64) -> bool {
        v != 0
    }
    fn to_u64(&self) -> u64 {
        u64::from(*self)
    }
}

/// How the rotational delay of a disk is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rotation {
    /// Half a turn, always.
    Half,
    /// Spread evenly over a turn by a hash of the sector.
    Hash,
    /// From the angle of the platter at the end of the seek.
    Angle,
}

/// The words of [`Rotation`], in its order.
const ROTATIONS: Unit = Unit::Word(&["half", "hash", "angle"]);

impl Value for Rotation {
    fn from_u64(v: u64) -> Rotation {
        match v {
            0 => Rotation::Half,
            1 => Rotation::Hash,
            _ => Rotation::Angle,
        }
    }
    fn to_u64(&self) -> u64 {
        *self as u64
    }
}

/// Largest size of a device: offset plus length never overflows.
const MAX_BYTES: u64 = 1 << 62;
/// Longest single time: 11 days, so that virtual time does not overflow within any run.
const MAX_NS: u64 = 1_000_000_000_000_000;
/// The curve of the definition multiplies these by a 32-bit fraction.
const MAX_SEEK: u64 = (1 << 32) - 1;
/// Angles are kept in 32 bits.
const MAX_REV: u64 = (1 << 32) - 2;

macro_rules! params {
    ($(#[$meta:meta])* $name:ident {
        $($field:ident: $ty:ty, $unit:expr, $default:expr, $min:expr, $max:expr, $help:literal;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub struct $name {
            $(#[doc = $help] pub $field: $ty,)*
        }

        impl $name {
            /// The parameters in the order of the fields.
            pub const KEYS: &'static [Key] = &[$(Key {
                name: stringify!($field),
                unit: $unit,
                default: $default,
                min: $min,
                max: $max,
                help: $help,
            },)*];

            /// From values in the order of [`KEYS`](Self::KEYS).
            pub(crate) fn from_values(values: &[u64]) -> Self {
                let mut values = values.iter().copied();
                $name { $($field: <$ty as Value>::from_u64(values.next().unwrap_or_default()),)* }
            }

            /// The values in the order of [`KEYS`](Self::KEYS).
            pub(crate) fn values(&self) -> Vec<u64> {
                vec![$(self.$field.to_u64(),)*]
            }
        }
    };
}

use Unit::{Bytes, Count, Flag, Nanos, Percent, Rate};

params! {
    /// Parameters of a device with a constant service time.
    FixedParams {
        cap: u64, Bytes, None, 512, MAX_BYTES, "Size.";
        depth: u64, Count, Some(0), 0, 1 << 20, "Commands taken at once; 0 for any number.";
        flush_ns: u64, Nanos, Some(0), 0, MAX_NS, "Duration of a flush.";
        lat_ns: u64, Nanos, Some(0), 1, MAX_NS, "Service time of a read or write.";
        par: u64, Count, Some(1), 1, 1 << 20, "Commands served at once.";
    }
}

params! {
    /// Parameters of a disk.
    HddParams {
        cap: u64, Bytes, None, 512, MAX_BYTES, "Size.";
        depth: u64, Count, Some(0), 0, 1 << 20, "Commands taken at once; 0 for any number.";
        flush_ns: u64, Nanos, Some(0), 0, MAX_NS,
            "Time to note on the medium what was written since the last flush, one half turn of it waiting; beside writing what the \
             write cache holds. Without wcache: duration of a flush.";
        ovh_ns: u64, Nanos, Some(0), 0, MAX_NS, "Command overhead.";
        seek_a: u64, Nanos, Some(0), 0, MAX_SEEK,
            "Seek time over d of C sectors is a + b*sqrt(d/C) + c*(d/C): a.";
        seek_b: u64, Nanos, Some(0), 0, MAX_SEEK, "The factor b of the seek time.";
        seek_c: u64, Nanos, Some(0), 0, MAX_SEEK, "The factor c of the seek time.";
        rev_ns: u64, Nanos, Some(8_333_333), 1, MAX_REV, "Time of one turn.";
        rot: Rotation, ROTATIONS, Some(0), 0, 2,
            "Rotational delay: half a turn, spread by a hash of the sector, or by angle.";
        seed: u64, Count, Some(0), 0, u64::MAX, "Seed of the hash.";
        spt: u64, Count, Some(1000), 1, 1 << 31, "Sectors per track (by angle, without zones).";
        bw: u64, Rate, Some(0), 0, u64::MAX,
            "Media rate, of the outermost zone where there are zones; 0: no transfer time.";
        sptf: bool, Flag, Some(0), 0, 1,
            "Serve by shortest positioning time instead of in order of arrival.";
        age_ns: u64, Nanos, Some(0), 0, MAX_NS,
            "With sptf: the oldest command is next once it has waited longer; 0: never.";
        window: u64, Count, Some(0), 0, 1 << 20,
            "With sptf: choose among this many of the oldest; 0: among all (extents to destage, too).";
        bw_inner: u64, Rate, Some(0), 0, u64::MAX,
            "Media rate of the innermost zone; 0: one zone.";
        zones: u64, Count, Some(16), 2, 4096, "Zones, with bw_inner: rings of equal width.";
        bus_bw: u64, Rate, Some(0), 0, u64::MAX, "Interface rate; 0: no limit.";
        wcache: u64, Bytes, Some(0), 0, 1 << 40, "Volatile write cache; 0: none.";
        wcache_high: u64, Percent, Some(75), 1, 100,
            "Fill of the write cache from which destaging goes before reads.";
        destage_window: u64, Count, Some(0), 0, 1 << 20,
            "Destage the nearest of this many of the oldest extents; 0: as window says.";
        destage_run: u64, Count, Some(0), 0, 1 << 20,
            "From wcache_high on, extents destaged in a row before a waiting command has its turn; 0: any number.";
        wc_ns: u64, Nanos, Some(0), 0, MAX_NS,
            "With wcache and sptf: writes pass one by one into a cache of copies, each in this time; 0: see wcache_high.";
        wc_bw: u64, Rate, Some(0), 0, u64::MAX, "With wc_ns: rate of the way into the cache; 0: no limit.";
        trim_ns: u64, Nanos, Some(0), 0, MAX_NS, "Duration of a discard, beside the overhead.";
        age_passes: u64, Count, Some(0), 0, 1 << 20,
            "With sptf: the oldest command is next once so many were served since it came; 0: never.";
        missed_rev: bool, Flag, Some(0), 0, 1,
            "A write behind the last command that begins late waits for its sector to come round; 0: it never waits.";
        ctl_ns: u64, Nanos, Some(0), 0, MAX_NS,
            "With wcache: the controller's time for a command, one after the other, while the arm serves another.";
    }
}

params! {
    /// Parameters of a solid-state drive.
    SsdParams {
        cap: u64, Bytes, None, 512, MAX_BYTES, "Size.";
        depth: u64, Count, Some(0), 0, 1 << 20, "Commands taken at once; 0 for any number.";
        flush_ns: u64, Nanos, Some(0), 0, MAX_NS,
            "Duration of a flush once the cached data before it is on flash.";
        chans: u64, Count, Some(1), 1, 1 << 16, "Channels: flash operations served at once.";
        stripe: u64, Bytes, Some(4096), 512, 1 << 40, "Bytes that stand together on a channel.";
        rd_ns: u64, Nanos, Some(0), 0, MAX_NS, "Time of a flash read.";
        wr_ns: u64, Nanos, Some(0), 0, MAX_NS, "Time of a flash program.";
        bus_bw: u64, Rate, Some(0), 0, u64::MAX, "Rate of the bus to the host; 0: no time.";
        cache: u64, Bytes, Some(0), 0, 1 << 40,
            "Write cache; 0: a write completes when it is programmed.";
        drain_bw: u64, Rate, Some(0), 0, u64::MAX,
            "Rate at which the cache hands pieces to the channels; 0: at once.";
        cmd_ns: u64, Nanos, Some(0), 0, MAX_NS, "Command overhead.";
        rprio: bool, Flag, Some(0), 0, 1, "A channel serves waiting reads before programs.";
        log: bool, Flag, Some(0), 0, 1,
            "Gather cached writes into full stripes and program the channels in turn.";
        slc: u64, Bytes, Some(0), 0, 1 << 50, "SLC cache; 0: none.";
        slc_full_wr_ns: u64, Nanos, Some(0), 0, MAX_NS,
            "Time of a flash program while the SLC cache is full.";
        slc_fold_bw: u64, Rate, Some(0), 0, u64::MAX,
            "Rate at which an idle drive empties the SLC cache.";
        vcache: bool, Flag, Some(0), 0, 1,
            "The write cache is volatile: a forced (FUA) write completes when it is on flash, and noted there as a flush notes it.";
        flush_alone: bool, Flag, Some(0), 0, 1,
            "A flush is served alone, as ATA's FLUSH CACHE: after what came before it, before what comes after.";
        duplex: bool, Flag, Some(0), 0, 1,
            "The bus moves reads and writes at the same time, each at bus_bw, as PCIe does and SATA does not.";
        trim_ns: u64, Nanos, Some(0), 0, MAX_NS,
            "Time of a trim, one after the other; with flush_alone it is served alone, as ATA's TRIM. 0: none.";
        flush_lead_ns: u64, Nanos, Some(0), 0, MAX_NS,
            "With flush_alone: how long after a flush came other commands may still begin.";
        flush_rd_ns: u64, Nanos, Some(0), 0, MAX_NS,
            "Time of a flash read that begins during a flush; 0: as any other.";
        rd_spread_ns: u64, Nanos, Some(0), 0, MAX_NS,
            "A third of the pages is read so much faster than rd_ns, a third so much slower.";
        scatter: bool, Flag, Some(0), 0, 1,
            "Stripes lie on channels as the drive's mapping has it: by a hash of their number, not in turn.";
        bus_cmd_ns: u64, Nanos, Some(0), 0, MAX_NS,
            "Time of a command on the bus, besides its bytes.";
        ctl_ns: u64, Nanos, Some(0), 0, MAX_NS,
            "The controller's time for a command, one after the other, while others are on flash and bus.";
        gather: bool, Flag, Some(0), 0, 1,
            "With log: a stripe that is not full waits for more while its channel programs another.";
        plain_sync: bool, Flag, Some(0), 0, 1,
            "As the reference measurements have it: every flush takes flush_ns, and a forced write ends with its program. 0: what a flush \
             notes takes flush_ns, after a forced write as after others, and a flush with nothing to note takes none.";
    }
}

params! {
    /// Parameters of a network volume with rate limits.
    VolumeParams {
        cap: u64, Bytes, None, 512, MAX_BYTES, "Size.";
        depth: u64, Count, Some(0), 0, 1 << 20, "Commands taken at once; 0 for any number.";
        flush_ns: u64, Nanos, Some(0), 0, MAX_NS, "Duration of a flush.";
        rd_ns: u64, Nanos, Some(0), 0, MAX_NS, "Latency of a read.";
        wr_ns: u64, Nanos, Some(0), 0, MAX_NS, "Latency of a write.";
        link_bw: u64, Rate, Some(0), 0, u64::MAX, "Rate of the link to the host; 0: no time.";
        iops: u64, Count, Some(0), 0, 1 << 40, "Operations per second granted; 0: no limit.";
        iops_burst: u64, Count, Some(1), 1, 1 << 40, "Operations saved up while idle.";
        io_unit: u64, Bytes, Some(0), 0, 1 << 40,
            "A command counts as one operation per this many bytes; 0: always as one.";
        bw: u64, Rate, Some(0), 0, 1 << 50, "Bytes per second granted; 0: no limit.";
        bw_burst: u64, Bytes, Some(0), 0, 1 << 50, "Bytes saved up while idle.";
    }
}

/// The words of [`Raid`], in its order.
const RAIDS: Unit = Unit::Word(&["raid0", "raid5", "raid10"]);

/// How an array lays data on its legs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Raid {
    /// Stripes.
    Raid0,
    /// Stripes with rotating parity.
    Raid5,
    /// Stripes over pairs of mirrors.
    Raid10,
}

impl Value for Raid {
    fn from_u64(v: u64) -> Raid {
        match v {
            0 => Raid::Raid0,
            1 => Raid::Raid5,
            _ => Raid::Raid10,
        }
    }
    fn to_u64(&self) -> u64 {
        *self as u64
    }
}

/// The words of [`Destage`], in its order.
const DESTAGES: Unit = Unit::Word(&["age", "scan"]);

/// Which rows an array cleans first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Destage {
    /// Those that became dirty first.
    Age,
    /// The next above the last one, around and around.
    Scan,
}

impl Value for Destage {
    fn from_u64(v: u64) -> Destage {
        if v == 0 { Destage::Age } else { Destage::Scan }
    }
    fn to_u64(&self) -> u64 {
        *self as u64
    }
}

params! {
    /// Parameters of an array: controllers with a cache in front of disks.
    ArrayParams {
        qd: u64, Count, Some(32), 1, 1 << 16, "Commands taken at once on each path.";
        paths: u64, Count, Some(2), 1, 64, "Paths to the host.";
        rr: u64, Count, Some(1000), 1, 1 << 30, "Commands on a path before the next one is used.";
        link_bw: u64, Rate, Some(400_000_000), 1024, u64::MAX, "Rate of a path, in each direction.";
        cmd_ns: u64, Nanos, Some(20_000), 1, MAX_NS, "Controller time of a read, one after the other.";
        cmdw_ns: u64, Nanos, Some(60_000), 1, MAX_NS, "Controller time of a write.";
        hit_ns: u64, Nanos, Some(300_000), 0, MAX_NS, "Time that every command takes beside.";
        cache: u64, Bytes, Some(1 << 30), 0, 1 << 40, "Write cache, with a battery; 0: writes go through.";
        hi: u64, Count, Some(204), 1, 256, "Fill, in 256ths, from which the cache is written out.";
        lo: u64, Count, Some(153), 0, 256, "Fill, in 256ths, down to which it is.";
        mirror_bw: u64, Rate, Some(800_000_000), 0, u64::MAX, "Rate at which writes are copied to the partner; 0: there is none.";
        rcache: u64, Bytes, Some(512 << 20), 0, 1 << 40, "Read cache.";
        ra_n: u64, Count, Some(2), 1, 1 << 16, "Sequential commands before the array reads ahead.";
        ra_len: u64, Bytes, Some(1 << 20), 0, 1 << 30, "Bytes read ahead.";
        ra_tab: u64, Count, Some(32), 1, 4096, "Streams remembered.";
        el: u64, Bytes, Some(65_536), 4096, 262_144, "Bytes that stand together on a leg, in whole pages of 4096.";
        legs: u64, Count, Some(5), 1, 64, "Disks.";
        raid: Raid, RAIDS, Some(1), 0, 2, "Layout.";
        dpar: u64, Count, Some(4), 1, 256, "Runs of rows written out at once.";
        drun: u64, Count, Some(8), 1, 4096, "Rows in a run.";
        dord: Destage, DESTAGES, Some(0), 0, 1, "Which rows are written out first.";
        leg_cap: u64, Bytes, None, 65_536, 1 << 56, "Size of a leg.";
        leg_ovh_ns: u64, Nanos, Some(100_000), 1, MAX_NS, "Command overhead of a leg.";
        leg_seek_a: u64, Nanos, Some(400_000), 0, MAX_SEEK, "Seek time of a leg, as of a disk: a.";
        leg_seek_b: u64, Nanos, Some(4_500_000), 0, MAX_SEEK, "The factor b of the seek time.";
        leg_seek_c: u64, Nanos, Some(1_500_000), 0, MAX_SEEK, "The factor c of the seek time.";
        leg_rev_ns: u64, Nanos, Some(4_000_000), 1, MAX_REV, "Time of one turn of a leg.";
        leg_spt: u64, Count, Some(1000), 1, 1 << 31, "Sectors per track of a leg.";
        leg_bw: u64, Rate, Some(115_000_000), 1024, u64::MAX, "Media rate of a leg.";
    }
}

impl ArrayParams {
    /// A leg: a disk that chooses by positioning time and angle. A command waits as long as in a disk of the catalogue at most:
    /// without a limit the reads of one stream, each of which is next to the last, starve all others.
    #[must_use]
    pub fn leg(&self) -> HddParams {
        let set = [
            ("cap", self.leg_cap),
            ("ovh_ns", self.leg_ovh_ns),
            ("seek_a", self.leg_seek_a),
            ("seek_b", self.leg_seek_b),
            ("seek_c", self.leg_seek_c),
            ("rev_ns", self.leg_rev_ns),
            ("rot", Rotation::Angle as u64),
            ("spt", self.leg_spt),
            ("bw", self.leg_bw),
            ("sptf", 1),
            ("age_ns", 500_000_000),
            ("age_passes", 96),
        ];
        let value = |k: &Key| {
            let own = set.iter().find(|(n, _)| *n == k.name).map(|(_, v)| *v);
            own.or(k.default).unwrap_or_default()
        };
        HddParams::from_values(&HddParams::KEYS.iter().map(value).collect::<Vec<_>>())
    }

    /// Elements of a row that hold data.
    #[must_use]
    pub fn width(&self) -> u64 {
        match self.raid {
            Raid::Raid0 => self.legs,
            Raid::Raid5 => self.legs - 1,
            Raid::Raid10 => self.legs / 2,
        }
    }

    /// Size in bytes: whole rows.
    #[must_use]
    pub fn cap(&self) -> u64 {
        (self.leg_cap / self.el.max(1)).saturating_mul(self.el).saturating_mul(self.width())
    }
}
