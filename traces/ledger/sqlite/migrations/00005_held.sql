-- +goose Up

-- What people were asked about, in order. Without it all that a policy ever denied would be looked at to find the few that people did.
CREATE INDEX requests_held ON requests (run_id, status) WHERE binding <> '';
