-- Schema 1. Times are milliseconds since the Unix epoch. JSON columns hold the versioned forms of harness-model and
-- harness-ports. Rows of one workflow or task hang on an integer, so that the long ids are stored once.

CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- With a row id, because the bytes may be long: the index over addresses stays small.
CREATE TABLE blocks (
    id      INTEGER PRIMARY KEY,
    address BLOB NOT NULL UNIQUE,
    bytes   BLOB NOT NULL
) STRICT;

CREATE TABLE workflows (
    id            INTEGER PRIMARY KEY,
    workflow_id   TEXT NOT NULL UNIQUE,
    workflow_type TEXT NOT NULL,
    closed        INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE journal (
    workflow INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    event    TEXT NOT NULL,
    PRIMARY KEY (workflow, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
    workflow INTEGER PRIMARY KEY,
    seq      INTEGER NOT NULL,
    state    BLOB NOT NULL
) STRICT;

CREATE TABLE deliveries (
    workflow   INTEGER NOT NULL,
    dedupe_key TEXT NOT NULL,
    cursor     INTEGER,
    PRIMARY KEY (workflow, dedupe_key)
) STRICT, WITHOUT ROWID;

-- Both tables hold only what runs now; they are read in the order of the text id and of the due time.
CREATE TABLE activities (
    workflow_id TEXT NOT NULL,
    activity_id TEXT NOT NULL,
    task        TEXT NOT NULL,
    PRIMARY KEY (workflow_id, activity_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE timers (
    workflow_id TEXT NOT NULL,
    timer_id    TEXT NOT NULL,
    due_at      INTEGER NOT NULL,
    PRIMARY KEY (workflow_id, timer_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_by_due ON timers (due_at);

-- The columns from state to record are null until the first record is published.
CREATE TABLE tasks (
    id           INTEGER PRIMARY KEY,
    task_id      TEXT NOT NULL UNIQUE,
    status_seq   INTEGER NOT NULL DEFAULT 0,
    state        INTEGER,
    status_at    INTEGER,
    scopes       TEXT,
    record       TEXT
) STRICT;

-- What listings walk: one row per task and scope. A scope is everything, one context, or one participant.
CREATE TABLE task_index (
    scope     TEXT NOT NULL,
    state     INTEGER NOT NULL,
    status_at INTEGER NOT NULL,
    task_id   TEXT NOT NULL,
    PRIMARY KEY (scope, state, status_at, task_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE log (
    task  INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    at    INTEGER NOT NULL,
    kind  INTEGER NOT NULL,
    event TEXT NOT NULL,
    PRIMARY KEY (task, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE publish_keys (
    task INTEGER NOT NULL,
    key  TEXT NOT NULL,
    PRIMARY KEY (task, key)
) STRICT, WITHOUT ROWID;

-- Either a message (message_id, address, bytes) or a status (status_seq, an entry of the log).
CREATE TABLE history (
    task       INTEGER NOT NULL,
    position   INTEGER NOT NULL,
    message_id TEXT,
    address    BLOB,
    bytes      INTEGER,
    status_seq INTEGER,
    PRIMARY KEY (task, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE records (
    id        INTEGER PRIMARY KEY,
    kind      TEXT NOT NULL,
    record_id TEXT NOT NULL,
    task_id   TEXT NOT NULL,
    value     TEXT NOT NULL,
    UNIQUE (kind, record_id)
) STRICT;
CREATE INDEX records_by_task ON records (kind, task_id);
