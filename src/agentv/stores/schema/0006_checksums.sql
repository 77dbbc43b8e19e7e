-- Checksum of the payload, to notice bytes that changed on the disk; null in runs of earlier versions.
ALTER TABLE payloads ADD COLUMN checksum INTEGER;
