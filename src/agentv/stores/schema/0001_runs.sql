-- Executions, in the order in which they began: clocks jump, `seq` does not.
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

-- Processes that run something. A lease is counted on the machine's own clock since it was started.
CREATE TABLE owners (
    id TEXT PRIMARY KEY,
    machine TEXT NOT NULL,
    names TEXT NOT NULL,
    pid INTEGER NOT NULL,
    born TEXT NOT NULL,
    beat REAL NOT NULL,
    seen_at TEXT NOT NULL
) WITHOUT ROWID;

-- Cases with their evaluators, and targets, each once: the id is a hash of the content. It is no primary key, since
-- rows that come in the order of their hashes would touch a page each.
CREATE TABLE snapshots (
    seq INTEGER PRIMARY KEY,
    id INTEGER NOT NULL UNIQUE,
    data BLOB NOT NULL
);

-- What lists and searches read; a run's id is its execution's id and its key.
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

-- A run that was claimed again after it had ended has another round of attempts.
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

-- The words themselves, which no list reads: the result record, the reply, the two sides of each diff.
CREATE TABLE payloads (
    run INTEGER PRIMARY KEY REFERENCES runs (seq) ON DELETE CASCADE,
    record BLOB NOT NULL,
    response BLOB,
    sides BLOB
);
