-- +goose Up

-- Events of one run that were added together, and steps, stand in one row: the last of them in its columns, those before it in before, a
-- JSON list, oldest first, and how many they are in earlier. Rows of before this version stand for themselves.
-- What is not written there follows: seq by counting back; prev and run_prev, but of the first, are the hash of the one before. A value
-- that stands in blobs, and what a prune says, is always in the columns of a row, for its indexes.
ALTER TABLE events ADD COLUMN earlier INTEGER NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN before TEXT NOT NULL DEFAULT '';
ALTER TABLE steps ADD COLUMN earlier INTEGER NOT NULL DEFAULT 0;
ALTER TABLE steps ADD COLUMN before TEXT NOT NULL DEFAULT '';

-- The first of those that stand in a row must be behind all that are there.
DROP TRIGGER events_refuse_insert;
DROP TRIGGER steps_refuse_insert;
-- +goose StatementBegin
CREATE TRIGGER events_refuse_insert BEFORE INSERT ON events WHEN NEW.seq - max(NEW.earlier, 0) <= (SELECT max(seq) FROM events)
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER steps_refuse_insert BEFORE INSERT ON steps
WHEN NEW.seq - max(NEW.earlier, 0) <= (SELECT max(seq) FROM steps WHERE run_id = NEW.run_id)
BEGIN SELECT RAISE(ABORT, 'steps are append-only'); END;
-- +goose StatementEnd
