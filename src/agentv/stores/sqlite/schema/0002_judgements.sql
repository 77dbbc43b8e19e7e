-- Secret key of the nonces that delimit data for a judge.
CREATE TABLE judge_secret (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    secret BLOB NOT NULL
);

-- Judge cache: replies by a hash of the judge's settings and of its input.
CREATE TABLE judge_replies (
    key TEXT PRIMARY KEY,
    reply BLOB NOT NULL,
    created_at TEXT NOT NULL
) WITHOUT ROWID;

-- Calibrations: agreement of judges with people; the last one of a judge and a rubric counts.
CREATE TABLE calibrations (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    judge_key TEXT NOT NULL,
    rubric_key TEXT NOT NULL,
    data BLOB NOT NULL,
    created_at TEXT NOT NULL
);

CREATE INDEX calibrations_of ON calibrations (judge_key, rubric_key, seq);
