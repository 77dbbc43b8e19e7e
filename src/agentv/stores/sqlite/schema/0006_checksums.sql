-- Checksums (CRC-32), as SQLite does not notice changed bytes; null if a row was written by an earlier version, or has no
-- result yet. Snapshots need none: their id is a hash of their data.
ALTER TABLE executions ADD COLUMN checksum INTEGER;
ALTER TABLE runs ADD COLUMN checksum INTEGER;
ALTER TABLE payloads ADD COLUMN checksum INTEGER;
-- Of the reply alone, so that results can be read and checked without it.
ALTER TABLE payloads ADD COLUMN response_checksum INTEGER;
