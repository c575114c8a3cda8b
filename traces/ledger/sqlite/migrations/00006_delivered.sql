-- +goose Up

-- When the outcome of a call that was held reached who asked.
ALTER TABLE requests ADD COLUMN delivered TEXT NOT NULL DEFAULT '';
-- What a repetition of a call attaches to: asked for before each call of an agent.
CREATE INDEX requests_waiting ON requests (actor, server, tool, arguments, run_id) WHERE kind = 'agent' AND binding <> '' AND delivered = '';
-- Messages that pass are events about no run, and many: what the last prune said must be found without reading them.
CREATE INDEX events_pruned ON events (seq) WHERE type = 'ledger.pruned';
-- Only a prune asked them, about a handful of bundles, and every call paid for them with two pages of each commit.
DROP INDEX requests_bundle;
DROP INDEX decisions_bundle;
