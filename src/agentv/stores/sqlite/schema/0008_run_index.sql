-- Search columns of finished runs, so that filters read no payload: the reason of a failure, the called tools and the tags
-- of the case, one name per line between line feeds, and the searchable text in lower case.
CREATE TABLE run_index (
    run INTEGER PRIMARY KEY REFERENCES runs (seq) ON DELETE CASCADE,
    failure TEXT,
    calls INTEGER,
    tools TEXT NOT NULL,
    tags TEXT NOT NULL,
    words TEXT NOT NULL
);

-- Labels: verdicts of people on runs.
CREATE TABLE labels (
    run INTEGER PRIMARY KEY REFERENCES runs (seq) ON DELETE CASCADE,
    label TEXT NOT NULL,
    note TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
