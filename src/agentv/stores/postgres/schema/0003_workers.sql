-- The worker of an attempt, null if it ran in the process of the execution.
ALTER TABLE attempts ADD COLUMN worker text;
