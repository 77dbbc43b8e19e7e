-- The words of the glossary, as in result records and exports: `target` is a name, a claim begins a round of attempts, and
-- a run that an edit of its case has taken out of its execution is superseded.
ALTER TABLE runs RENAME COLUMN target TO target_settings;
ALTER TABLE runs RENAME COLUMN target_id TO target;
ALTER TABLE runs RENAME COLUMN tries TO rounds;
ALTER TABLE runs RENAME COLUMN replaced TO superseded;
