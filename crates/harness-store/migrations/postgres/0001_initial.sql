-- Schema 1. Times are milliseconds since the Unix epoch. JSON is kept as text, so that a value that was read writes
-- itself as the same text; it has the versioned forms of harness-model and harness-ports. Rows of one workflow or task
-- hang on an integer, so that the long ids are stored once. Ids are ordered by their bytes.

CREATE TABLE meta (
    key   text PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE blocks (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    address bytea NOT NULL UNIQUE,
    bytes   bytea NOT NULL
);

-- Which task keeps which block: a block goes with its last owner. An owner is a row of tasks.
CREATE TABLE block_owners (
    owner bigint NOT NULL,
    block bigint NOT NULL,
    PRIMARY KEY (owner, block)
);
CREATE INDEX block_owners_by_block ON block_owners (block);

CREATE TABLE workflows (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workflow_id   text COLLATE "C" NOT NULL UNIQUE,
    workflow_type text NOT NULL,
    closed        boolean NOT NULL DEFAULT false
);

CREATE TABLE journal (
    workflow bigint NOT NULL,
    seq      bigint NOT NULL,
    event    text NOT NULL,
    PRIMARY KEY (workflow, seq)
);

CREATE TABLE snapshots (
    workflow bigint PRIMARY KEY,
    seq      bigint NOT NULL,
    state    bytea NOT NULL
);

CREATE TABLE deliveries (
    workflow   bigint NOT NULL,
    dedupe_key text COLLATE "C" NOT NULL,
    cursor     bigint,
    PRIMARY KEY (workflow, dedupe_key)
);

-- Both tables hold only what runs now; they are read in the order of the text id and of the due time.
CREATE TABLE activities (
    workflow_id text COLLATE "C" NOT NULL,
    activity_id text COLLATE "C" NOT NULL,
    task        text NOT NULL,
    PRIMARY KEY (workflow_id, activity_id)
);

CREATE TABLE timers (
    workflow_id text COLLATE "C" NOT NULL,
    timer_id    text COLLATE "C" NOT NULL,
    due_at      bigint NOT NULL,
    PRIMARY KEY (workflow_id, timer_id)
);
CREATE INDEX timers_by_due ON timers (due_at, workflow_id, timer_id);

-- The columns from state to record are null until the first record is published. The row is what a batch locks. Its
-- number is that of one life of the id: a task that is deleted and begun anew has a greater one.
CREATE TABLE tasks (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id       text COLLATE "C" NOT NULL UNIQUE,
    next_seq      bigint NOT NULL DEFAULT 0,
    next_position bigint NOT NULL DEFAULT 0,
    status_seq    bigint NOT NULL DEFAULT 0,
    state         bigint,
    status_at     bigint,
    scopes        text,
    record        text
);

-- What listings walk: one row per task and scope. A scope is everything, one context, or one participant.
CREATE TABLE task_index (
    task      bigint NOT NULL,
    scope     text COLLATE "C" NOT NULL,
    state     bigint NOT NULL,
    status_at bigint NOT NULL,
    task_id   text COLLATE "C" NOT NULL,
    PRIMARY KEY (task, scope)
);
CREATE INDEX task_index_by_status ON task_index (scope, state, status_at, task_id);

CREATE TABLE log (
    task  bigint NOT NULL,
    seq   bigint NOT NULL,
    at    bigint NOT NULL,
    kind  bigint NOT NULL,
    event text NOT NULL,
    PRIMARY KEY (task, seq)
);

CREATE TABLE publish_keys (
    task bigint NOT NULL,
    key  text COLLATE "C" NOT NULL,
    PRIMARY KEY (task, key)
);

-- Either a message (message_id, address, bytes) or a status (status_seq, an entry of the log).
CREATE TABLE history (
    task       bigint NOT NULL,
    position   bigint NOT NULL,
    message_id text,
    address    bytea,
    bytes      bigint,
    status_seq bigint,
    PRIMARY KEY (task, position)
);

-- The age of a record is the time of the batch that wrote it last.
CREATE TABLE records (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       text COLLATE "C" NOT NULL,
    record_id  text COLLATE "C" NOT NULL,
    task_id    text COLLATE "C" NOT NULL,
    value      text NOT NULL,
    written_at bigint NOT NULL,
    UNIQUE (kind, record_id)
);
CREATE INDEX records_by_task ON records (task_id, kind, id);
CREATE INDEX records_by_age ON records (kind, written_at);
