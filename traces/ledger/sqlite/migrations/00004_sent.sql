-- +goose Up

-- A call counts in a window by when it was asked for or left, whichever is later, and while it may yet leave always. These take the place
-- of indexes by when it was asked for.
DROP INDEX requests_counted_actor;
DROP INDEX requests_counted_task;
DROP INDEX requests_counted_actor_at;
CREATE INDEX requests_counted_actor ON requests (actor, server, tool, iif(ended = '', '~', max(at, sent))) WHERE sent <> '' OR ended = '';
CREATE INDEX requests_counted_actor_at ON requests (actor, iif(ended = '', '~', max(at, sent))) WHERE sent <> '' OR ended = '';
CREATE INDEX requests_counted_task ON requests (task, server, tool, iif(ended = '', '~', max(at, sent)))
WHERE task <> '' AND (sent <> '' OR ended = '');
