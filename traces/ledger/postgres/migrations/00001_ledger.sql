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
    idx    bigint PRIMARY KEY CHECK (idx >= 0),
    run_id text COLLATE "C" NOT NULL,
    n      bigint NOT NULL,
    at     text COLLATE "C" NOT NULL,
    by     text COLLATE "C" NOT NULL,
    prev   text COLLATE "C" NOT NULL,
    type   text COLLATE "C" NOT NULL,
    events text COLLATE "C" NOT NULL,
    hashes bytea NOT NULL CHECK (length(hashes) > 0 AND length(hashes) % 32 = 0)
);
CREATE UNIQUE INDEX entries_run ON entries (run_id, n) WHERE run_id <> '';
CREATE INDEX entries_type ON entries (type, idx) WHERE run_id = '' AND type <> 'mcp.passed';

CREATE TABLE requests (
    run_id     text COLLATE "C" PRIMARY KEY,
    at         text COLLATE "C" NOT NULL,
    updated    text COLLATE "C" NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    status     text COLLATE "C" NOT NULL,
    state      text COLLATE "C" NOT NULL,
    actor      text COLLATE "C" NOT NULL,
    task       text COLLATE "C" NOT NULL,
    env        text COLLATE "C" NOT NULL,
    server     text COLLATE "C" NOT NULL,
    tool       text COLLATE "C" NOT NULL,
    args       text COLLATE "C" NOT NULL,
    arguments  text COLLATE "C" NOT NULL,
    definition text COLLATE "C" NOT NULL,
    bundle     text COLLATE "C" NOT NULL,
    mode       text COLLATE "C" NOT NULL,
    score      bigint NOT NULL,
    policy     text COLLATE "C" NOT NULL,
    code       text COLLATE "C" NOT NULL,
    reason     text COLLATE "C" NOT NULL,
    binding    text COLLATE "C" NOT NULL,
    approvers  text COLLATE "C" NOT NULL,
    quorum     bigint NOT NULL,
    agreed     bigint NOT NULL,
    expires    text COLLATE "C" NOT NULL,
    owner      text COLLATE "C" NOT NULL,
    sent       text COLLATE "C" NOT NULL,
    ended      text COLLATE "C" NOT NULL,
    steps      bigint NOT NULL CHECK (steps >= 0),
    head       text COLLATE "C" NOT NULL,
    entry      bigint NOT NULL,
    entries    bigint NOT NULL,
    delivered  text COLLATE "C" NOT NULL,
    on_behalf_of text COLLATE "C" NOT NULL,
    client     text COLLATE "C" NOT NULL,
    trace      text COLLATE "C" NOT NULL,
    call_trace text COLLATE "C" NOT NULL,
    display    text COLLATE "C" NOT NULL,
    on_behalf_of_display text COLLATE "C" NOT NULL
) WITH (fillfactor = 70); -- a request is put several times
CREATE INDEX requests_status ON requests (status, run_id) WHERE status NOT IN ('executed', 'denied');
CREATE INDEX requests_task ON requests (task, run_id) WHERE task <> '';
CREATE INDEX requests_open ON requests (run_id) WHERE ended = '';
-- Nothing bounds the names of a call that is denied, and an index has no entry of more than 2,704 bytes.
CREATE INDEX requests_counted_actor ON requests (left(actor, 128), left(server, 128), left(tool, 128),
(CASE WHEN ended = '' THEN '~' WHEN sent > at THEN sent ELSE at END)) WHERE sent <> '' OR ended = '';
CREATE INDEX requests_counted_actor_at ON requests (left(actor, 128),
(CASE WHEN ended = '' THEN '~' WHEN sent > at THEN sent ELSE at END)) WHERE sent <> '' OR ended = '';
CREATE INDEX requests_counted_task ON requests (task, left(server, 128), left(tool, 128),
(CASE WHEN ended = '' THEN '~' WHEN sent > at THEN sent ELSE at END)) WHERE task <> '' AND (sent <> '' OR ended = '');
CREATE INDEX requests_held ON requests (run_id, status) WHERE binding <> '';
CREATE INDEX requests_waiting ON requests (arguments, run_id) WHERE kind = 'agent' AND binding <> '' AND delivered = '';

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
