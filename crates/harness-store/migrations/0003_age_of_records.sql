-- Schema 3. When a record was written last, for those that are kept for a time only. Those of before are as old as this
-- migration.
ALTER TABLE records ADD COLUMN written_at INTEGER NOT NULL DEFAULT 0;
UPDATE records SET written_at = CAST(unixepoch('subsec') * 1000 AS INTEGER);
CREATE INDEX records_by_age ON records (kind, written_at);
