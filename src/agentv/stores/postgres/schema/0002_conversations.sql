-- Conversations: the number of turns of a run, null if its case is one question; and the turn of a failed request.
ALTER TABLE runs ADD COLUMN turns bigint;
ALTER TABLE attempts ADD COLUMN turn bigint;
