-- Places of the reply that were not understood, as JSON; null if there are none, and in runs of earlier versions.
-- The reply itself has them too, but `persist: summary` stores no reply.
ALTER TABLE runs ADD COLUMN unread BLOB;

-- Few runs have any, so that counting them must not read the others.
CREATE INDEX runs_unread ON runs (execution) WHERE unread IS NOT NULL;
