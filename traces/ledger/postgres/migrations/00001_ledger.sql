-- The rows of a ledger. Package sqlite's schema.sql says what the columns mean.
--
-- Text is compared byte by byte, as SQLite and Go do. Entries are text, and never json: jsonb changes numbers and cannot hold \u0000.
-- Roles restrict who may change what: see roles.sql.
-- +goose Up
CREATE TABLE log (
    one  boolean PRIMARY KEY DEFAULT true CHECK (one),
    size bigint NOT NULL,                -- entries, the pruned ones too
    at   text COLLATE "C" NOT NULL,      -- of the last entry
    type text COLLATE "C" NOT NULL       -- of the last entry
) WITH (fillfactor = 50);
INSERT INTO log (size, at, type) VALUES (0, '', '');

-- The processes that own runs.
CREATE TABLE replicas (
    owner   text COLLATE "C" PRIMARY KEY,
    since   timestamptz NOT NULL,
    until   timestamptz NOT NULL,          -- the lease, by the database's clock
    over    boolean NOT NULL DEFAULT false, -- another process took a run over: the lease cannot be renewed
    commits bigint NOT NULL DEFAULT 0      -- number of the owner's last transaction; settles a COMMIT without an answer
) WITH (fillfactor = 50);

CREATE TABLE entries (
    idx      bigint PRIMARY KEY CHECK (idx >= 0),
    at       bigint NOT NULL,
    run      bytea CHECK (length(run) = 16),
    n        bigint NOT NULL,
    previous bigint,
    type     text COLLATE "C",
    body     text COLLATE "C",
    header   text COLLATE "C",
    hashes   bytea NOT NULL CHECK (length(hashes) > 0 AND length(hashes) % 32 = 0),
    CHECK ((body IS NULL) <> (header IS NULL))
);
CREATE INDEX entries_type ON entries (type, idx) WHERE type IS NOT NULL AND type <> 'mcp.passed';
-- The prompts of a client's session.
CREATE INDEX entries_prompts ON entries ((replace(body, '\u0000', '\ufffd')::json #>> '{events,0,session}'), idx) WHERE type = 'prompt.captured';

CREATE TABLE runs (
    first      bigint PRIMARY KEY,
    run        bytea NOT NULL UNIQUE CHECK (length(run) = 16),
    at         bigint NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    actor      text COLLATE "C" NOT NULL,
    display    text COLLATE "C" NOT NULL,
    on_behalf_of text COLLATE "C" NOT NULL,
    on_behalf_of_display text COLLATE "C" NOT NULL,
    client     text COLLATE "C" NOT NULL,
    task       text COLLATE "C" NOT NULL,
    env        text COLLATE "C" NOT NULL,
    server     text COLLATE "C" NOT NULL,
    tool       text COLLATE "C" NOT NULL,
    args       text COLLATE "C" NOT NULL,
    arguments  bytea,
    definition bytea,
    bundle     bytea NOT NULL,
    trace      text COLLATE "C" NOT NULL,
    session    text COLLATE "C" NOT NULL,
    updated    bigint NOT NULL,
    status     text COLLATE "C" NOT NULL,
    state      text COLLATE "C" NOT NULL,
    mode       text COLLATE "C" NOT NULL,
    score      bigint NOT NULL,
    policy     text COLLATE "C" NOT NULL,
    code       text COLLATE "C" NOT NULL,
    reason     text COLLATE "C" NOT NULL,
    binding    bytea,
    approvers  text COLLATE "C" NOT NULL,
    quorum     bigint NOT NULL,
    agreed     bigint NOT NULL,
    expires    bigint,
    owner      bytea CHECK (length(owner) = 16),
    sent       bigint,
    ended      bigint,
    steps      bigint NOT NULL CHECK (steps >= 0),
    head       bytea,
    entry      bigint NOT NULL,
    entries    bigint NOT NULL,
    delivered  bigint,
    call_trace text COLLATE "C" NOT NULL,
    client_call text COLLATE "C" NOT NULL
) WITH (fillfactor = 70); -- a row is put several times
CREATE INDEX runs_status ON runs (status, run) WHERE status NOT IN ('executed', 'denied');
CREATE INDEX runs_task ON runs (task, run) WHERE task <> '';
CREATE INDEX runs_session ON runs (session, run) WHERE session <> '';
-- Asked for before each call of a client's hook, while all other writers wait.
CREATE INDEX runs_client_call ON runs (session, client_call, run) WHERE session <> '';
CREATE INDEX runs_open ON runs (run) WHERE ended IS NULL;
-- Nothing bounds the names of a call that is denied, and an index has no entry of more than 2,704 bytes.
CREATE INDEX runs_counted_actor ON runs (left(actor, 128), left(server, 128), left(tool, 128),
(CASE WHEN ended IS NULL THEN 9223372036854775807 WHEN sent > at THEN sent ELSE at END)) WHERE sent IS NOT NULL OR ended IS NULL;
CREATE INDEX runs_counted_actor_at ON runs (left(actor, 128),
(CASE WHEN ended IS NULL THEN 9223372036854775807 WHEN sent > at THEN sent ELSE at END)) WHERE sent IS NOT NULL OR ended IS NULL;
CREATE INDEX runs_counted_task ON runs (task, left(server, 128), left(tool, 128),
(CASE WHEN ended IS NULL THEN 9223372036854775807 WHEN sent > at THEN sent ELSE at END)) WHERE task <> '' AND (sent IS NOT NULL OR ended IS NULL);
CREATE INDEX runs_held ON runs (run, status) WHERE binding IS NOT NULL;
CREATE INDEX runs_waiting ON runs (arguments, run) WHERE binding IS NOT NULL AND delivered IS NULL;

-- The operators of json fail if a text in it has U+0000, which no text of PostgreSQL can have.
CREATE VIEW requests AS SELECT encode(run, 'hex')::uuid::text AS run_id,
    to_char(to_timestamp(at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS at,
    to_char(to_timestamp(updated / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS updated,
    kind, status, state, actor, display, on_behalf_of, on_behalf_of_display, client, task, env, server, tool,
    CASE WHEN args = '@' THEN (SELECT (replace(e.body, '\u0000', '\ufffd')::json #> '{events,0,call,args}')::text FROM entries e WHERE e.idx = first) ELSE args END AS args,
    'sha256:' || encode(arguments, 'hex') AS arguments, 'sha256:' || encode(definition, 'hex') AS definition,
    'sha256:' || encode(bundle, 'hex') AS bundle, mode, score, policy, code, reason, 'sha256:' || encode(binding, 'hex') AS binding,
    approvers, quorum, agreed, to_char(to_timestamp(expires / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS expires,
    encode(owner, 'hex')::uuid::text AS owner, to_char(to_timestamp(sent / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS sent,
    to_char(to_timestamp(ended / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS ended,
    steps, 'sha256:' || encode(head, 'hex') AS head, first, entry, entries,
    to_char(to_timestamp(delivered / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS delivered, trace, call_trace, session, client_call
FROM runs;
CREATE VIEW events AS SELECT idx, body ->> 'run' AS run_id, to_char(to_timestamp(at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS at,
    body ->> 'by' AS by, event ->> 'type' AS type, event
FROM (SELECT idx, at, replace(body, '\u0000', '\ufffd')::json AS body FROM entries WHERE body IS NOT NULL) e,
    json_array_elements(body -> 'events') AS event;
CREATE VIEW decisions AS SELECT idx, run_id, at, event ->> 'outcome' AS outcome, event ->> 'gate' AS gate, event ->> 'policy' AS policy,
    event ->> 'code' AS code, event ->> 'reason' AS reason
FROM events WHERE type = 'decision.made';

CREATE TABLE blobs (
    digest text COLLATE "C" PRIMARY KEY,
    kind   text COLLATE "C" NOT NULL,
    text   text COLLATE "C" NOT NULL
);

CREATE TABLE tokens (
    id      text COLLATE "C" PRIMARY KEY,
    name    text COLLATE "C" NOT NULL,
    role    text COLLATE "C" NOT NULL,
    secret  text COLLATE "C" NOT NULL,
    created text COLLATE "C" NOT NULL,
    expires text COLLATE "C" NOT NULL,
    revoked text COLLATE "C" NOT NULL,
    entry   bigint NOT NULL
);

CREATE TABLE blocks (
    name  text COLLATE "C" PRIMARY KEY,
    since text COLLATE "C" NOT NULL,
    by    text COLLATE "C" NOT NULL,
    entry bigint NOT NULL
);

CREATE TABLE connections (
    person     text COLLATE "C" NOT NULL,
    server     text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    issuer     text COLLATE "C" NOT NULL,
    client     text COLLATE "C" NOT NULL,
    resource   text COLLATE "C" NOT NULL,
    scopes     text COLLATE "C" NOT NULL,
    account    text COLLATE "C" NOT NULL,
    state      text COLLATE "C" NOT NULL CHECK (state IN ('ready', 'refused', 'lost')),
    made       text COLLATE "C" NOT NULL,
    used       text COLLATE "C" NOT NULL,
    seal_key   text COLLATE "C" NOT NULL,
    generation bigint NOT NULL,
    entry      bigint NOT NULL,
    asked      text COLLATE "C" NOT NULL,
    holder     text COLLATE "C" NOT NULL,
    until      text COLLATE "C" NOT NULL,
    sealed     bytea NOT NULL,
    PRIMARY KEY (person, server)
);

CREATE TABLE deliveries (
    entry    bigint NOT NULL,
    hook     text COLLATE "C" NOT NULL,
    attempts bigint NOT NULL CHECK (attempts >= 0),
    next     text COLLATE "C" NOT NULL,
    state    text COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'done', 'given_up')),
    error    text COLLATE "C" NOT NULL,
    PRIMARY KEY (entry, hook)
);
CREATE INDEX deliveries_waiting ON deliveries (entry, hook) WHERE state = 'waiting';

CREATE TABLE delivered (
    hook text COLLATE "C" PRIMARY KEY,
    next bigint NOT NULL
);

CREATE TABLE sessions (
    secret  text COLLATE "C" PRIMARY KEY,
    kind    text COLLATE "C" NOT NULL CHECK (kind IN ('link', 'open')),
    token   text COLLATE "C" NOT NULL,
    name    text COLLATE "C" NOT NULL,
    identity text COLLATE "C" NOT NULL,
    auth_time text COLLATE "C" NOT NULL,
    created text COLLATE "C" NOT NULL,
    used    text COLLATE "C" NOT NULL,
    expires text COLLATE "C" NOT NULL
);

-- What the hooks of clients told and a gateway has yet to use: the last prompt of a session, and announced calls. Not a part of the record.
CREATE TABLE told (
    kind    text COLLATE "C" NOT NULL CHECK (kind IN ('session', 'call')),
    actor   text COLLATE "C" NOT NULL,
    name    text COLLATE "C" NOT NULL, -- the key of the session, or the call's digest
    value   text COLLATE "C" NOT NULL, -- JSON
    expires text COLLATE "C" NOT NULL,
    PRIMARY KEY (kind, actor, name)
);
CREATE INDEX told_expires ON told (kind, actor, expires, name);
