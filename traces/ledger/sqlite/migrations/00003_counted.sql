-- +goose Up

-- All calls of an actor within a window of time, whatever their tools. Without it all requests of the actor would be looked at, while
-- every other writer waits.
CREATE INDEX requests_counted_actor_at ON requests (actor, at) WHERE sent <> '' OR ended = '';
