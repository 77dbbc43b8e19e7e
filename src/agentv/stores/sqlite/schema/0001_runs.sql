-- Executions; `seq` is the order of their start, which changes of the clock do not affect.
CREATE TABLE executions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    persist TEXT NOT NULL,
    command BLOB NOT NULL,
    inputs TEXT NOT NULL,
    planned INTEGER NOT NULL,
    runs INTEGER NOT NULL DEFAULT 0,
    passed INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    errors INTEGER NOT NULL DEFAULT 0,
    started_at TEXT NOT NULL,
    completed_at TEXT,
    summary BLOB
);

-- Processes with a lease; `beat` is the uptime of the machine at the last heartbeat.
CREATE TABLE owners (
    id TEXT PRIMARY KEY,
    machine TEXT NOT NULL,
    names TEXT NOT NULL,
    pid INTEGER NOT NULL,
    born TEXT NOT NULL,
    beat REAL NOT NULL,
    seen_at TEXT NOT NULL
) WITHOUT ROWID;

-- Snapshots of cases with their evaluators, and of targets, each stored once: the id is a hash of the content. It is
-- no primary key, since rows in the order of their hashes would touch a page each.
CREATE TABLE snapshots (
    seq INTEGER PRIMARY KEY,
    id INTEGER NOT NULL UNIQUE,
    data BLOB NOT NULL
);

-- Index of runs, for lists and searches; the id of a run is the id of its execution and its key.
CREATE TABLE runs (
    seq INTEGER PRIMARY KEY,
    execution INTEGER NOT NULL REFERENCES executions (seq) ON DELETE CASCADE,
    key TEXT NOT NULL,
    position INTEGER NOT NULL,
    eval_id TEXT NOT NULL,
    case_id TEXT NOT NULL,
    persona_id TEXT,
    target_id TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    place TEXT NOT NULL,
    status TEXT NOT NULL,
    verdict TEXT,
    score REAL,
    tries INTEGER NOT NULL,
    started_at TEXT,
    completed_at TEXT,
    latency_ms REAL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    total_tokens INTEGER,
    cost_usd REAL,
    thread_id TEXT,
    content INTEGER NOT NULL REFERENCES snapshots (id),
    target INTEGER NOT NULL REFERENCES snapshots (id),
    owner TEXT,
    replaced INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    UNIQUE (execution, key)
);


CREATE INDEX runs_owned ON runs (owner) WHERE owner IS NOT NULL;

-- Attempts; a run that is claimed again after its end has another `round` of attempts.
CREATE TABLE attempts (
    run INTEGER NOT NULL REFERENCES runs (seq) ON DELETE CASCADE,
    round INTEGER NOT NULL,
    number INTEGER NOT NULL,
    latency_ms REAL,
    waited_ms REAL NOT NULL,
    thread_id TEXT,
    error BLOB,
    PRIMARY KEY (run, round, number)
) WITHOUT ROWID;

CREATE TABLE evaluator_results (
    run INTEGER NOT NULL REFERENCES runs (seq) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    score REAL,
    weight REAL NOT NULL,
    PRIMARY KEY (run, position)
) WITHOUT ROWID;

-- Payloads, which no list reads: the result record, the reply, the labels of diffs.
CREATE TABLE payloads (
    run INTEGER PRIMARY KEY REFERENCES runs (seq) ON DELETE CASCADE,
    record BLOB NOT NULL,
    response BLOB,
    sides BLOB
);
