-- +goose Up

-- Commits may stand in the ledger's tail, FILE-tail, before they stand here: a program that does not know of it must not write.
SELECT 1;

CREATE INDEX events_tokens ON events (seq) WHERE type IN ('token.created', 'token.revoked');
