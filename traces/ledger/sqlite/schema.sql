-- What a new ledger is.
--
-- In the tables of the record, ids are the 16 bytes of a UUID, digests the 32 bytes of a SHA-256, and times milliseconds since
-- 1970; NULL means that there is none. The views requests, decisions and events show all of them as text.
-- No table points at another with a foreign key: what belongs together is judged by `pgfsm ledger verify`, which must be able
-- to read, and name, a file in which it no longer does.
BEGIN IMMEDIATE;

-- The file is a ledger of pgfsm ("pgfs"); another program's database is refused.
PRAGMA application_id = 1885824627;
-- A test holds it to schemaVersion.
PRAGMA user_version = 8;

-- The log. A pruned entry has a header in place of its body.
CREATE TABLE entries (
    idx      INTEGER PRIMARY KEY CHECK (idx >= 0),
    at       INTEGER NOT NULL,
    run      BLOB CHECK (length(run) = 16),
    n        INTEGER NOT NULL,
    previous INTEGER, -- index of the run's entry before
    type     TEXT,    -- of the event of an entry of no run
    body     TEXT,    -- JSON
    header   TEXT,    -- JSON
    -- The hashes of the Merkle tree (RFC 6962) that the entry completes, 32 bytes each: its leaf's, then inner ones from below.
    hashes   BLOB NOT NULL CHECK (length(hashes) >= 32 AND length(hashes) % 32 = 0),
    CHECK ((body IS NULL) <> (header IS NULL))
) STRICT;
-- Relayed messages are entries of no run, and many: the others must be found without reading them.
CREATE INDEX entries_type ON entries (type) WHERE type IS NOT NULL AND type <> 'mcp.passed';
-- The prompts of a client's session.
CREATE INDEX entries_prompts ON entries (body ->> '$.events[0].session') WHERE type = 'prompt.captured';

-- What is known of each run.
CREATE TABLE runs (
    first      INTEGER PRIMARY KEY, -- index of the run's first entry
    run        BLOB NOT NULL UNIQUE CHECK (length(run) = 16),
    at         INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    actor      TEXT NOT NULL,
    display    TEXT NOT NULL, -- the name for people of an actor of an identity provider
    on_behalf_of TEXT NOT NULL, -- the person for whom an agent of an identity provider acts
    on_behalf_of_display TEXT NOT NULL,
    client     TEXT NOT NULL, -- the client id of an actor of an identity provider
    task       TEXT NOT NULL,
    env        TEXT NOT NULL,
    server     TEXT NOT NULL,
    tool       TEXT NOT NULL,
    args       TEXT NOT NULL, -- JSON; an at sign: the first entry has them, because they are large
    arguments  BLOB,
    definition BLOB,
    bundle     BLOB NOT NULL,
    trace      TEXT NOT NULL, -- the id of the trace of the agent's request
    session    TEXT NOT NULL, -- the client's session
    -- The columns up to here never change.
    updated    INTEGER NOT NULL,
    status     TEXT NOT NULL,
    state      TEXT NOT NULL,
    mode       TEXT NOT NULL,
    score      INTEGER NOT NULL,
    policy     TEXT NOT NULL,
    code       TEXT NOT NULL,
    reason     TEXT NOT NULL,
    binding    BLOB,
    approvers  TEXT NOT NULL, -- a JSON list of roles
    quorum     INTEGER NOT NULL,
    agreed     INTEGER NOT NULL,
    expires    INTEGER,
    owner      BLOB CHECK (length(owner) = 16),
    sent       INTEGER,
    ended      INTEGER,
    steps      INTEGER NOT NULL CHECK (steps >= 0),
    head       BLOB,
    entry      INTEGER NOT NULL, -- index of the last one
    entries    INTEGER NOT NULL, -- how many it has
    delivered  INTEGER, -- when the outcome of a call that was held reached its requester
    call_trace TEXT NOT NULL, -- the id of the trace of an approved call
    client_call TEXT NOT NULL -- the client's id of the call
) STRICT;
-- Run ids are ordered by time, so these are indexes by time, too.
-- Nearly all runs are executed or denied.
CREATE INDEX runs_status ON runs (status, run) WHERE status NOT IN ('executed', 'denied');
CREATE INDEX runs_task ON runs (task, run) WHERE task <> '';
CREATE INDEX runs_session ON runs (session, run) WHERE session <> '';
-- Asked for before each call of a client's hook, while all other writers wait.
CREATE INDEX runs_client_call ON runs (session, client_call, run) WHERE session <> '';
CREATE INDEX runs_open ON runs (run) WHERE ended IS NULL;
-- Calls that were made or may yet be: what grants and histories count. A call counts in a window by when it was asked for or left,
-- whichever is later, and while it may yet leave always.
CREATE INDEX runs_counted_actor ON runs (actor, server, tool, CASE WHEN ended IS NULL THEN 9223372036854775807 WHEN sent > at THEN sent ELSE at END) WHERE sent IS NOT NULL OR ended IS NULL;
CREATE INDEX runs_counted_actor_at ON runs (actor, CASE WHEN ended IS NULL THEN 9223372036854775807 WHEN sent > at THEN sent ELSE at END) WHERE sent IS NOT NULL OR ended IS NULL;
CREATE INDEX runs_counted_task ON runs (task, server, tool, CASE WHEN ended IS NULL THEN 9223372036854775807 WHEN sent > at THEN sent ELSE at END)
WHERE task <> '' AND (sent IS NOT NULL OR ended IS NULL);
-- What people were asked about, in order. Without it all that a policy ever denied would be looked at to find the few that people did.
CREATE INDEX runs_held ON runs (run, status) WHERE binding IS NOT NULL;
-- What a repetition of a call attaches to: asked for before each call of an agent or a hook.
CREATE INDEX runs_waiting ON runs (actor, server, tool, arguments, run) WHERE binding IS NOT NULL AND delivered IS NULL;

-- The same for people. Where JSON is taken apart, U+0000, which no text of PostgreSQL can have, is shown as U+FFFD.
CREATE VIEW requests AS SELECT
    substr(x, 1, 8) || '-' || substr(x, 9, 4) || '-' || substr(x, 13, 4) || '-' || substr(x, 17, 4) || '-' || substr(x, 21) AS run_id,
    strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') AS at, strftime('%Y-%m-%dT%H:%M:%fZ', updated / 1000.0, 'unixepoch') AS updated,
    kind, status, state, actor, display, on_behalf_of, on_behalf_of_display, client, task, env, server, tool,
    iif(args = '@', (SELECT replace(e.body, '\u0000', '\ufffd') -> '$.events[0].call.args' FROM entries e WHERE e.idx = first), args) AS args,
    'sha256:' || nullif(lower(hex(arguments)), '') AS arguments, 'sha256:' || nullif(lower(hex(definition)), '') AS definition,
    'sha256:' || lower(hex(bundle)) AS bundle, mode, score, policy, code, reason,
    'sha256:' || nullif(lower(hex(binding)), '') AS binding, approvers, quorum, agreed,
    strftime('%Y-%m-%dT%H:%M:%fZ', expires / 1000.0, 'unixepoch') AS expires,
    substr(o, 1, 8) || '-' || substr(o, 9, 4) || '-' || substr(o, 13, 4) || '-' || substr(o, 17, 4) || '-' || substr(o, 21) AS owner,
    strftime('%Y-%m-%dT%H:%M:%fZ', sent / 1000.0, 'unixepoch') AS sent, strftime('%Y-%m-%dT%H:%M:%fZ', ended / 1000.0, 'unixepoch') AS ended,
    steps, 'sha256:' || nullif(lower(hex(head)), '') AS head, first, entry, entries,
    strftime('%Y-%m-%dT%H:%M:%fZ', delivered / 1000.0, 'unixepoch') AS delivered, trace, call_trace, session, client_call
FROM (SELECT *, lower(hex(run)) AS x, nullif(lower(hex(owner)), '') AS o FROM runs);

-- What happened, for people: an event a row.
CREATE VIEW events AS SELECT idx, body ->> '$.run' AS run_id, strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') AS at,
    body ->> '$.by' AS by, j.value ->> 'type' AS type, j.value AS event
FROM (SELECT idx, at, replace(body, '\u0000', '\ufffd') AS body FROM entries WHERE body IS NOT NULL), json_each(body, '$.events') j;

-- What the gates decided.
CREATE VIEW decisions AS SELECT idx, run_id, at, event ->> 'outcome' AS outcome, event ->> 'gate' AS gate, event ->> 'policy' AS policy,
    event ->> 'code' AS code, event ->> 'reason' AS reason
FROM events WHERE type = 'decision.made';

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

-- The accounts of people at servers, with their sealed credentials: `pgfsm serve` opens them with a key of the configuration.
CREATE TABLE connections (
    person   TEXT NOT NULL, -- a subject of an identity provider, or the name of a token
    server   TEXT NOT NULL,
    id       TEXT NOT NULL, -- random, new each time the person connects
    kind     TEXT NOT NULL,
    issuer   TEXT NOT NULL,
    client   TEXT NOT NULL,
    resource TEXT NOT NULL, -- the URL to which the credentials may be sent
    scopes   TEXT NOT NULL,
    account  TEXT NOT NULL, -- the person's label
    state    TEXT NOT NULL CHECK (state IN ('ready', 'refused', 'lost')),
    made     TEXT NOT NULL,
    used     TEXT NOT NULL,
    seal_key TEXT NOT NULL, -- the id of the key that sealed the credentials
    generation INTEGER NOT NULL, -- how often they were sealed
    entry    INTEGER NOT NULL, -- index of the entry that says that the connection was made
    asked    TEXT NOT NULL, -- scopes for which the server asked in vain
    holder   TEXT NOT NULL, -- who refreshes the credentials; empty: nobody
    until    TEXT NOT NULL, -- the end of that lease or, without a holder, the earliest time of the next refresh
    sealed   BLOB NOT NULL,
    PRIMARY KEY (person, server)
) STRICT;

-- What is written stays. `pgfsm ledger prune` is the only exception: it puts a row into pruning, removes old rows and empties old
-- entries, and takes the row out again, in one transaction, so that pruning is empty whenever anybody looks. This guards against
-- accidents; who owns the file can drop a trigger, and is found out by `pgfsm ledger verify`.
CREATE TABLE pruning (since INTEGER PRIMARY KEY) STRICT;
CREATE TRIGGER entries_refuse_update BEFORE UPDATE ON entries
WHEN NEW.idx <> OLD.idx OR NEW.at <> OLD.at OR NEW.n <> OLD.n OR NEW.previous IS NOT OLD.previous OR NEW.type IS NOT OLD.type
  OR NEW.hashes <> OLD.hashes OR NEW.body IS NOT NULL OR OLD.header IS NOT NULL OR NOT EXISTS (SELECT 1 FROM pruning)
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

-- What the hooks of clients told and a gateway has yet to use: the last prompt of a session, and announced calls. Not a part of the record.
CREATE TABLE told (
    kind    TEXT NOT NULL CHECK (kind IN ('session', 'call')),
    actor   TEXT NOT NULL,
    name    TEXT NOT NULL, -- the key of the session, or the call's digest
    value   TEXT NOT NULL, -- JSON
    expires TEXT NOT NULL,
    PRIMARY KEY (kind, actor, name)
) STRICT;
CREATE INDEX told_expires ON told (kind, actor, expires, name);

COMMIT;
