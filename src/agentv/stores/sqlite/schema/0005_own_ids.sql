-- Id that an imported run had in another system; null for runs of agentv, whose id is their execution and their key.
ALTER TABLE runs ADD COLUMN own_id TEXT;
CREATE INDEX runs_own_id ON runs (own_id) WHERE own_id IS NOT NULL;
