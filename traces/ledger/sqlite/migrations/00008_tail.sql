-- +goose Up

-- Commits may stand in the ledger's tail, FILE-tail, before they stand here: a program that does not know of it must not write.
SELECT 1;
