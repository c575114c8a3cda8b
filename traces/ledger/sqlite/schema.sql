-- What a new ledger is.
--
-- Everything is text that a person can read: digests, times (RFC 3339, UTC), JSON. Empty text means that there is none.
-- A value that begins with an at sign, also within a payload, is the digest of a row of blobs, which has the value.
-- No table points at another with a foreign key: what belongs together is judged by `pgfsm ledger verify`, which must be able
-- to read, and name, a file in which it no longer does.
BEGIN IMMEDIATE;

-- The file is a ledger of pgfsm ("pgfs"); another program's database is refused.
PRAGMA application_id = 1885824627;
-- A test holds it to schemaVersion.
PRAGMA user_version = 4;

-- The leaves of the log. Of a pruned entry only its index and its hashes are left.
CREATE TABLE entries (
    idx    INTEGER PRIMARY KEY CHECK (idx >= 0),
    run_id TEXT NOT NULL,
    n      INTEGER NOT NULL,
    at     TEXT NOT NULL,
    by     TEXT NOT NULL,
    prev   TEXT NOT NULL,
    type   TEXT NOT NULL, -- of the last event
    -- The hashes of the Merkle tree (RFC 6962) that the entry completes, 32 bytes each: its leaf's, then inner ones from below.
    hashes BLOB NOT NULL CHECK (length(hashes) >= 32 AND length(hashes) % 32 = 0),
    events TEXT NOT NULL  -- a JSON list
) STRICT;
CREATE UNIQUE INDEX entries_run ON entries (run_id, n) WHERE run_id <> '';
-- Relayed messages are entries of no run, and many: the others must be found without reading them.
CREATE INDEX entries_type ON entries (type) WHERE run_id = '' AND type <> 'mcp.passed';

-- What happened, for people.
CREATE VIEW events AS SELECT e.idx, e.run_id, e.at, e.by, j.value ->> 'type' AS type, j.value AS event
FROM entries e, json_each(iif(substr(e.events, 1, 1) = '@', (SELECT b.text FROM blobs b WHERE b.digest = substr(e.events, 2)), e.events)) j
WHERE e.events <> '';

CREATE TABLE requests (
    run_id     TEXT PRIMARY KEY NOT NULL,
    at         TEXT NOT NULL,
    updated    TEXT NOT NULL,
    kind       TEXT NOT NULL,
    status     TEXT NOT NULL,
    state      TEXT NOT NULL,
    actor      TEXT NOT NULL,
    task       TEXT NOT NULL,
    env        TEXT NOT NULL,
    server     TEXT NOT NULL,
    tool       TEXT NOT NULL,
    args       TEXT NOT NULL,
    arguments  TEXT NOT NULL,
    definition TEXT NOT NULL,
    bundle     TEXT NOT NULL,
    mode       TEXT NOT NULL,
    score      INTEGER NOT NULL,
    policy     TEXT NOT NULL,
    code       TEXT NOT NULL,
    reason     TEXT NOT NULL,
    binding    TEXT NOT NULL,
    approvers  TEXT NOT NULL, -- a JSON list of roles
    quorum     INTEGER NOT NULL,
    agreed     INTEGER NOT NULL,
    expires    TEXT NOT NULL,
    owner      TEXT NOT NULL,
    sent       TEXT NOT NULL,
    ended      TEXT NOT NULL,
    steps      INTEGER NOT NULL CHECK (steps >= 0),
    head       TEXT NOT NULL,
    entry      INTEGER NOT NULL, -- index of the last one
    entries    INTEGER NOT NULL, -- how many it has
    delivered  TEXT NOT NULL DEFAULT '', -- when the outcome of a call that was held reached its requester
    on_behalf_of TEXT NOT NULL, -- the person for whom an agent of an identity provider acts
    client     TEXT NOT NULL, -- the client id of an actor of an identity provider
    trace      TEXT NOT NULL, -- the id of the trace of the agent's request
    call_trace TEXT NOT NULL, -- the id of the trace of an approved call
    display    TEXT NOT NULL, -- the name for people of an actor of an identity provider
    on_behalf_of_display TEXT NOT NULL -- likewise
) STRICT;
-- Run ids are ordered by time, so these are indexes by time, too.
-- Nearly all runs are executed or denied.
CREATE INDEX requests_status ON requests (status, run_id) WHERE status NOT IN ('executed', 'denied');
CREATE INDEX requests_task ON requests (task, run_id) WHERE task <> '';
CREATE INDEX requests_open ON requests (run_id) WHERE ended = '';
-- Calls that were made or may yet be: what grants and histories count. A call counts in a window by when it was asked for or left,
-- whichever is later, and while it may yet leave always.
CREATE INDEX requests_counted_actor ON requests (actor, server, tool, CASE WHEN ended = '' THEN '~' WHEN sent > at THEN sent ELSE at END) WHERE sent <> '' OR ended = '';
CREATE INDEX requests_counted_actor_at ON requests (actor, CASE WHEN ended = '' THEN '~' WHEN sent > at THEN sent ELSE at END) WHERE sent <> '' OR ended = '';
CREATE INDEX requests_counted_task ON requests (task, server, tool, CASE WHEN ended = '' THEN '~' WHEN sent > at THEN sent ELSE at END)
WHERE task <> '' AND (sent <> '' OR ended = '');
-- What people were asked about, in order. Without it all that a policy ever denied would be looked at to find the few that people did.
CREATE INDEX requests_held ON requests (run_id, status) WHERE binding <> '';
-- What a repetition of a call attaches to: asked for before each call of an agent.
CREATE INDEX requests_waiting ON requests (actor, server, tool, arguments, run_id) WHERE kind = 'agent' AND binding <> '' AND delivered = '';

CREATE TABLE blobs (
    digest TEXT PRIMARY KEY NOT NULL,
    kind   TEXT NOT NULL,
    text   TEXT NOT NULL
) STRICT;

CREATE TABLE tokens (
    id      TEXT PRIMARY KEY NOT NULL,
    name    TEXT NOT NULL,
    role    TEXT NOT NULL,
    secret  TEXT NOT NULL, -- the secret's SHA-256; the secret itself is nowhere
    created TEXT NOT NULL,
    expires TEXT NOT NULL,
    revoked TEXT NOT NULL,
    entry   INTEGER NOT NULL -- index of its last one
) STRICT;

-- The blocked subjects of identity providers.
CREATE TABLE blocks (
    name  TEXT PRIMARY KEY NOT NULL, -- the issuer, a number sign and the subject
    since TEXT NOT NULL,
    by    TEXT NOT NULL,
    entry INTEGER NOT NULL -- index of its entry
) STRICT;

-- What is written stays. `pgfsm ledger prune` is the only exception: it puts a row into pruning, removes old rows and empties old
-- entries, and takes the row out again, in one transaction, so that pruning is empty whenever anybody looks. This guards against
-- accidents; who owns the file can drop a trigger, and is found out by `pgfsm ledger verify`.
CREATE TABLE pruning (since INTEGER PRIMARY KEY) STRICT;
CREATE TRIGGER entries_refuse_update BEFORE UPDATE ON entries
WHEN NEW.idx <> OLD.idx OR NEW.hashes <> OLD.hashes OR NEW.events <> '' OR NOT EXISTS (SELECT 1 FROM pruning)
BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
CREATE TRIGGER entries_refuse_delete BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
-- INSERT OR REPLACE removes a row without asking the trigger above, and a row put between two others is not appended.
CREATE TRIGGER entries_refuse_insert BEFORE INSERT ON entries WHEN NEW.idx <= (SELECT max(idx) FROM entries)
BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;

-- Messages to web hooks that are still to be delivered, or were given up: work to be done, not a part of the record.
CREATE TABLE deliveries (
    entry    INTEGER NOT NULL, -- index of the event's entry
    hook     TEXT NOT NULL,    -- the digest of its URL
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    next     TEXT NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('waiting', 'done', 'given_up')),
    error    TEXT NOT NULL,
    PRIMARY KEY (entry, hook)
) STRICT;
CREATE INDEX deliveries_waiting ON deliveries (entry, hook) WHERE state = 'waiting';

-- Which entry comes next for each hook.
CREATE TABLE delivered (
    hook TEXT PRIMARY KEY NOT NULL,
    next INTEGER NOT NULL
) STRICT;

-- People who are signed in at the console, and links to sign in: not a part of the record.
CREATE TABLE sessions (
    secret  TEXT PRIMARY KEY NOT NULL, -- the secret's SHA-256; the secret itself is nowhere
    kind    TEXT NOT NULL CHECK (kind IN ('link', 'open')),
    token   TEXT NOT NULL, -- empty for a person of an identity provider, whom the next columns describe
    name    TEXT NOT NULL,
    identity TEXT NOT NULL, -- what the provider says: JSON
    auth_time TEXT NOT NULL,
    created TEXT NOT NULL,
    used    TEXT NOT NULL,
    expires TEXT NOT NULL
) STRICT;

COMMIT;
