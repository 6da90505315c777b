//! The schema and its migrations.

/// `PRAGMA application_id`: "iosc".
pub(crate) const APPLICATION_ID: i64 = 0x696f_7363;

/// Step i leads from `user_version` i to i + 1. Steps are never changed once released.
pub(crate) const MIGRATIONS: [&str; 6] =
    [TABLES, SUMMARY_INDEX, TRACES, PLANNED, TOTALS, EDITS_AND_LOGS];

/// The schema this program writes.
pub(crate) const CURRENT: i64 = MIGRATIONS.len() as i64;

const TABLES: &str = "
CREATE TABLE experiments (
    id          INTEGER PRIMARY KEY,
    uid         TEXT NOT NULL UNIQUE,  -- random: tells experiments of merged stores apart
    name        TEXT NOT NULL,
    created     TEXT NOT NULL,         -- UTC, ISO 8601
    definition  TEXT NOT NULL,         -- the experiment file as it was
    source      TEXT NOT NULL          -- 'run', or what it was imported from
) STRICT;
CREATE INDEX experiments_by_name ON experiments (name);

-- Trials share their provenance: a set is stored once.
CREATE TABLE provenance_sets (
    id    INTEGER PRIMARY KEY,
    hash  TEXT NOT NULL UNIQUE         -- SHA-256 of the sorted pairs
) STRICT;
CREATE TABLE provenance (
    set_id  INTEGER NOT NULL REFERENCES provenance_sets (id) ON DELETE CASCADE,
    key     TEXT NOT NULL,
    value   TEXT NOT NULL,
    PRIMARY KEY (set_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE trials (
    id             INTEGER PRIMARY KEY,
    experiment_id  INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
    experiment     TEXT NOT NULL,      -- name inside the record
    device         TEXT NOT NULL,
    scheduler      TEXT NOT NULL,
    kernel         TEXT NOT NULL,
    workload       TEXT NOT NULL,
    repetition     INTEGER NOT NULL,
    seed           INTEGER NOT NULL,   -- the 64 bits of an unsigned number
    input_hash     TEXT NOT NULL,      -- of everything the trial depends on
    backend        TEXT NOT NULL,
    status         TEXT NOT NULL CHECK (status IN ('complete', 'invalid', 'failed')),
    reason         TEXT NOT NULL,
    elapsed_ns     INTEGER NOT NULL,
    stored         TEXT NOT NULL,
    provenance_id  INTEGER NOT NULL REFERENCES provenance_sets (id),
    UNIQUE (experiment_id, device, scheduler, kernel, workload, repetition)
) STRICT;

-- What the other tables do not hold, as zlib-compressed JSON.
CREATE TABLE records (
    trial_id  INTEGER PRIMARY KEY REFERENCES trials (id) ON DELETE CASCADE,
    schema    INTEGER NOT NULL,
    body      BLOB NOT NULL
) STRICT;

-- The comparable numbers, for queries.
CREATE TABLE samples (
    trial_id  INTEGER NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    measure   TEXT NOT NULL,
    unit      TEXT NOT NULL,
    value     REAL NOT NULL,
    better    TEXT NOT NULL CHECK (better IN ('higher', 'lower')),
    censored  INTEGER NOT NULL,
    PRIMARY KEY (trial_id, measure)
) STRICT, WITHOUT ROWID;

-- zlib over the JSON of the non-empty bins (docs/results.md).
CREATE TABLE histograms (
    trial_id   INTEGER NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    job        INTEGER NOT NULL,       -- index in the record
    direction  TEXT NOT NULL CHECK (direction IN ('read', 'write', 'trim', 'sync')),
    bins       BLOB NOT NULL,
    PRIMARY KEY (trial_id, job, direction)
) STRICT, WITHOUT ROWID;

-- zlib over little-endian doubles.
CREATE TABLE series (
    trial_id  INTEGER NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    position  INTEGER NOT NULL,        -- index in the record
    name      TEXT NOT NULL,
    unit      TEXT NOT NULL,
    step_ns   INTEGER NOT NULL,
    points    BLOB NOT NULL,
    PRIMARY KEY (trial_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE warnings (
    trial_id  INTEGER NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    position  INTEGER NOT NULL,
    code      TEXT NOT NULL,
    message   TEXT NOT NULL,
    advice    TEXT NOT NULL,
    PRIMARY KEY (trial_id, position)
) STRICT, WITHOUT ROWID;
";

/// Listing and resuming read only these columns; the index covers them.
const SUMMARY_INDEX: &str = "
CREATE INDEX trials_summary ON trials (experiment_id, status, device, scheduler, workload);
";

/// Whole traces, packed as `trace` says: too large to be read with every record.
const TRACES: &str = "
CREATE TABLE traces (
    trial_id  INTEGER PRIMARY KEY REFERENCES trials (id) ON DELETE CASCADE,
    commands  INTEGER NOT NULL,
    packed    BLOB NOT NULL
) STRICT;
";

/// How many trials an experiment will have. Shows what is left of a run under way. NULL for imported ones.
const PLANNED: &str = "
ALTER TABLE experiments ADD COLUMN planned INTEGER;
";

/// Total latencies, as the histograms of completion latencies. NULL where both are the same.
const TOTALS: &str = "
CREATE TABLE totals (
    trial_id   INTEGER NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    job        INTEGER NOT NULL,
    direction  TEXT NOT NULL CHECK (direction IN ('read', 'write', 'trim', 'sync')),
    bins       BLOB,
    PRIMARY KEY (trial_id, job, direction)
) STRICT, WITHOUT ROWID;
";

/// What people changed about an experiment, and what tools printed during a trial (zlib).
const EDITS_AND_LOGS: &str = "
CREATE TABLE edits (
    experiment_id  INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
    scheduler      TEXT NOT NULL,         -- '': the experiment as a whole
    label          TEXT NOT NULL,
    hidden         INTEGER NOT NULL,
    note           TEXT NOT NULL,
    PRIMARY KEY (experiment_id, scheduler)
) STRICT, WITHOUT ROWID;
CREATE TABLE logs (
    trial_id  INTEGER NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    position  INTEGER NOT NULL,
    name      TEXT NOT NULL,
    text      BLOB NOT NULL,
    PRIMARY KEY (trial_id, position)
) STRICT, WITHOUT ROWID;
";
