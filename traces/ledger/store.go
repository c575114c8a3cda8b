package ledger

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
)

// ErrNotFound means that the row does not exist.
var ErrNotFound = errors.New("not in the ledger")

// ErrMalformed means that stored rows cannot be read as those of a ledger. If the file is a ledger,
// [Verify] reports what else is wrong.
var ErrMalformed = errors.New("the file is not a ledger")

// Errors of stores. An error of a store wraps [ErrUnavailable] if nothing was recorded and a retry
// can succeed. [ErrReadOnly] and [ErrSchema] say why a store cannot be used as it is.
var (
	// ErrReadOnly means that the store can be read but not written.
	ErrReadOnly = errors.New("the ledger cannot be written")
	// ErrSchema means that the store has the tables of another version of pgfsm, or none.
	ErrSchema = errors.New("the ledger does not have the schema of this version of pgfsm")
	// ErrUnsettled means that nobody knows whether a transaction was committed. The caller must act
	// on neither outcome, and must not try again: the next transaction that succeeds reads the
	// outcome.
	ErrUnsettled = errors.New("whether the ledger has recorded this is not known")
	// ErrFenced means that another process has ended the lease of this store's owner, because it
	// was not renewed in time. From then on every operation of the store fails with it. Other
	// processes end the owner's runs, so its process ends, and starts as a new owner.
	ErrFenced = errors.New("another process has taken the runs of this one over, because its lease had run out")
	// ErrLost means that the store no longer has an entry that it has acknowledged: an older copy
	// was put back, or a standby was promoted that had not received it. From then on every
	// operation of the store fails with it.
	ErrLost = errors.New("the ledger has lost entries that it had acknowledged")
)

// A Store stores the rows of a ledger. It does not know what they mean: the tree, projections and
// rules are the ledger's. Package storetest has the tests that every Store must pass.
type Store interface {
	// Update runs do in one transaction. No other writer, of this or any process, writes between
	// its reads and its writes. When Update returns nil, all its writes are durable. When it
	// returns an error other than [ErrUnsettled], no reader has seen or will see any of them. It
	// returns an error of do unchanged. do begins with the reads of ahead, if there are any: a store
	// may call ahead before the transaction, with a Reader that answers none of its reads, and send
	// them with the first statement.
	Update(ctx context.Context, do func(Tx) error, ahead ...func(Reader)) error
	// View runs do on one consistent state. It does not wait for writers.
	View(ctx context.Context, do func(Reader) error) error
	// ReadCommitted is View without a consistent state: each read sees what was committed when that
	// read began. It costs less than View. It suits a single read, or reads that do not depend on
	// each other.
	ReadCommitted(ctx context.Context, do func(Reader) error) error
	// Now returns the time of the clock that all processes of one ledger share. The store may have
	// read that clock some seconds ago.
	Now() time.Time
	// AcquireOwnership locks an owner's id until release, or until this process ends.
	AcquireOwnership(ctx context.Context, owner string) (release func() error, err error)
	// OwnerGone reports whether no process holds the lock of the owner. An error means that the
	// store cannot tell.
	OwnerGone(ctx context.Context, owner string) (bool, error)
	Close() error
}

// A Reader reads rows. Sequences end after the first error.
type Reader interface {
	// ReadHashes returns hashes of the tree by their [tlog.StoredHashIndex].
	tlog.HashReader
	// CountHashes returns how many hashes of the tree there are.
	CountHashes() (int64, error)
	// End returns the end of the log.
	End() (End, error)
	// LastOfType returns the last entry without a run whose event has a type, or ErrNotFound. Its
	// cost does not depend on the number of other entries.
	LastOfType(Type) (Entry, error)
	// EntriesOfType returns the entries from an index on without a run whose event has a type, oldest first. Its
	// cost does not depend on the number of other entries. It does not find [MCPPassed]: there are
	// many such entries.
	EntriesOfType(kind Type, from int64) iter.Seq2[Entry, error]
	// Prompts returns the entries of the prompts of a client's session, of all actors, oldest first. Its cost does
	// not depend on the number of other entries.
	Prompts(session string) iter.Seq2[Entry, error]
	// Entries returns the entries from an index on, also pruned ones, oldest first.
	Entries(from int64) iter.Seq2[Entry, error]
	// EntriesOf returns the entries of one run, oldest first. The run's row names the last one, and
	// each names the one before.
	EntriesOf(run string) iter.Seq2[Entry, error]
	Run(run string) (RunRow, error)
	// LastIndexOf returns the index of the run's last entry, as [RunRow.Entry] has it, or
	// ErrNotFound.
	LastIndexOf(run string) (int64, error)
	// Runs returns the requests that match, in the filter's order.
	Runs(Filter) iter.Seq2[RunRow, error]
	// Counts counts the newest requests, at most newest of them. It groups those that were
	// requested at since or later by intervals of a unit since 1970, and puts all others into one
	// group. It returns the groups in order.
	Counts(newest int, since string, unit time.Duration) iter.Seq2[Count, error]
	// FindWaiting returns the id of the oldest run of exactly this call to which a repetition
	// attaches: a call that was held, and whose outcome was not delivered yet. The error is
	// ErrNotFound if there is none. Its cost does not depend on the number of runs.
	FindWaiting(RepeatedCall) (string, error)
	Blob(canonical.Digest) (Blob, error)
	// Blobs returns all blobs, ordered by digest.
	Blobs() iter.Seq2[Blob, error]
	Token(id string) (Token, error)
	// Tokens returns all tokens, oldest first.
	Tokens() iter.Seq2[Token, error]
	// Block returns the block of a subject of an identity provider, or ErrNotFound.
	Block(name string) (Block, error)
	// Blocks returns all blocks, ordered by name.
	Blocks() iter.Seq2[Block, error]
	// Connection returns the connection of a person to a server, or ErrNotFound.
	Connection(person, server string) (Connection, error)
	// Connections returns all connections, ordered by person and server.
	Connections() iter.Seq2[Connection, error]
	// Deliveries returns the waiting deliveries of a hook that are due, oldest first, at most
	// limit. An empty hook means all hooks.
	Deliveries(hook, due string, limit int) iter.Seq2[Delivery, error]
	// NextDelivery returns the index of the next entry for a hook, or ErrNotFound for a new one.
	NextDelivery(hook string) (int64, error)
	// Session returns the session with this digest of its secret, or ErrNotFound.
	Session(secret canonical.Digest) (Session, error)
	// Sessions returns all sessions, ordered by digest.
	Sessions() iter.Seq2[Session, error]
	// ReadTold returns what an actor's hook told, or ErrNotFound.
	ReadTold(kind, actor, name string) (Told, error)
}

// A Filter chooses requests. The zero Filter chooses all, oldest first.
type Filter struct {
	Statuses []Status // none: all
	Open     bool     // only those that have not ended
	Held     bool     // only those that were held
	Actor    string   // empty: any
	Who      string   // the actor, or a display name, which several actors may share
	Task     string
	Session  string // a client's session, see [RunRow.Session]
	// The client's id of a call of the session.
	ClientCall string
	Server     string
	Tool       string
	Policy     string // the policy that decided
	Code       string
	// Only those that have not ended, or that were requested or whose call was sent at this time or
	// later.
	Since string
	Until string // only those that were requested before this time
	// Only those with this text in the JSON of their arguments; ASCII letters match in either case.
	Text    string
	Counted bool   // only calls that were made or may yet be: sent, or not ended
	After   string // run ids after this one: run ids are ordered by time
	Before  string // run ids before this one
	Short   string // run ids whose last [ShortRun] characters begin with this
	Newest  bool   // newest first
	Limit   int    // 0: all
}

// A Count is one group of requests.
type Count struct {
	At     string // when their interval begins; empty if they were requested before the period
	Status Status
	Code   string
	First  string // when the first of them was requested
	Runs   int
}

// A DataVersion stands for the rows of a store. It is only compared.
type DataVersion [2]int64

// A Tx reads and writes rows.
type Tx interface {
	Reader
	// DataVersion returns the version of the rows, with the transaction's own writes. If it
	// differs from that at the end of an earlier transaction of this store, anybody may have written
	// in between: another process, or another transaction of this store. If it is equal, nobody did.
	DataVersion() (DataVersion, error)
	// AddEntry adds an entry after the last one, and the hashes that it completes: see
	// [tlog.StoredHashesForRecordHash].
	AddEntry(Entry, []tlog.Hash) error
	// AddRun adds a row that does not exist.
	AddRun(RunRow) error
	// PutRun changes the row of a run that has not ended, or whose outcome is delivered. It leaves
	// the columns alone that no event changes after the first one. It fails if the stored row has
	// another last entry and not fewer entries: then the run has two entries of one number.
	PutRun(RunRow) error
	// PutBlob adds the blob unless the store has one with the same digest.
	PutBlob(Blob) error
	PutToken(Token) error
	DropToken(id string) error
	PutBlock(Block) error
	DropBlock(name string) error
	PutConnection(Connection) error
	DropConnection(person, server string) error
	PutDelivery(Delivery) error
	SetNextDelivery(hook string, next int64) error
	PutSession(Session) error
	DropSession(secret canonical.Digest) error
	PutTold(Told) error
	// LimitTold drops what an actor told and has expired, and all but the newest rows by expiry.
	LimitTold(kind, actor, now string, newest int) error
	DropTold(kind, actor, name string) error
	// Prune removes the bodies of entries and their deliveries, the rows of runs, and blobs. The
	// headers and the hashes stay. No other operation removes rows of the record.
	Prune(entries []PrunedEntry, runs []string, blobs []canonical.Digest) error
	// OwnerGone is [Store.OwnerGone] within the transaction. An owner that is gone stays gone once
	// the transaction is committed: it records nothing any more, even if its process still lives.
	OwnerGone(owner string) (bool, error)
}

// A PrunedEntry is an entry whose body goes, and the header that stays.
type PrunedEntry struct {
	Index  int64
	Header jsontext.Value
}

// A Range holds the first and the last index of consecutive entries.
type Range struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}
