-- +goose Up

-- Messages to web hooks that are still to be delivered, or were given up: work to be done, not a part of the record.
-- +goose StatementBegin
CREATE TABLE deliveries (
    seq      INTEGER NOT NULL, -- of the event
    hook     TEXT NOT NULL,    -- the digest of its URL
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    next     TEXT NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('waiting', 'done', 'given_up')),
    error    TEXT NOT NULL,
    PRIMARY KEY (seq, hook)
) STRICT;
-- +goose StatementEnd
CREATE INDEX deliveries_waiting ON deliveries (seq, hook) WHERE state = 'waiting';

-- Up to which event each hook has been looked after.
-- +goose StatementBegin
CREATE TABLE delivered (
    hook TEXT PRIMARY KEY NOT NULL,
    seq  INTEGER NOT NULL
) STRICT;
-- +goose StatementEnd
