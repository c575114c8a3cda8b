package ledger

import (
	"context"
	"errors"
	"iter"

	"pgfsm/policy/canonical"
)

// ErrNotFound means that there is no such row.
var ErrNotFound = errors.New("not in the ledger")

// ErrMalformed means that stored rows cannot be read as those of a ledger. If the file is a ledger, [Verify] reports what else is
// wrong.
var ErrMalformed = errors.New("the file is not a ledger")

// A Store stores the rows of a ledger. It does not know what they mean: chains, projections and rules are the ledger's. Package
// storetest has the tests that every Store must pass.
type Store interface {
	// Update runs do in one transaction. No other writer, of this or any process, writes between its reads and its writes.
	// When Update returns nil, all of it is durable; when it returns an error, nobody has seen or will see any of it. An error of
	// do is returned as it is.
	Update(ctx context.Context, do func(Tx) error) error
	// View runs do on one consistent state. It waits for no writer.
	View(ctx context.Context, do func(Reader) error) error
	// Glance is View without one state: each read sees what was committed when it began. It costs less than View, and suits a
	// single read, or reads that do not depend on each other.
	Glance(ctx context.Context, do func(Reader) error) error
	// Own locks an owner's id until release, or until this process ends.
	Own(ctx context.Context, owner string) (release func() error, err error)
	// Gone reports whether no process holds the lock of the owner. An error means that the store cannot tell.
	Gone(ctx context.Context, owner string) (bool, error)
	Close() error
}

// A Reader reads rows. Sequences end after the first error.
type Reader interface {
	// Last returns the last event, or ErrNotFound in an empty ledger.
	Last() (Event, error)
	// End is Last without the event's payload: every transaction begins with it.
	End() (End, error)
	// LastPrune returns the last event of the type [LedgerPruned], or ErrNotFound. Its cost does not depend on the number of
	// other events.
	LastPrune() (Event, error)
	// TokenEvents returns the events of the types [TokenCreated] and [TokenRevoked], oldest first. Its cost does not depend on the
	// number of other events.
	TokenEvents() iter.Seq2[Event, error]
	// Events returns the events after a seq, oldest first.
	Events(after int64) iter.Seq2[Event, error]
	// EventsOf returns the events of one run, oldest first.
	EventsOf(run string) iter.Seq2[Event, error]
	Request(run string) (Request, error)
	// Reached returns the seq of the run's last event, as [Request.Seq] has it, or ErrNotFound.
	Reached(run string) (int64, error)
	// Requests returns the requests that match, in the filter's order.
	Requests(Filter) iter.Seq2[Request, error]
	// Waiting returns the id of the oldest run of exactly this call for which [Request.Attachable] holds, or ErrNotFound. Its cost
	// does not depend on the number of runs.
	Waiting(Look) (string, error)
	// Decisions returns those after the seq of an event, oldest first.
	Decisions(after int64) iter.Seq2[Decision, error]
	Blob(canonical.Digest) (Blob, error)
	// Blobs returns all of them, ordered by digest.
	Blobs() iter.Seq2[Blob, error]
	Token(id string) (Token, error)
	// Tokens returns all of them, oldest first.
	Tokens() iter.Seq2[Token, error]
	// Deliveries returns the waiting deliveries that are due, oldest first, at most limit.
	Deliveries(due string, limit int) iter.Seq2[Delivery, error]
	// Delivered returns the seq up to which events were processed for a hook; 0 if there was none.
	Delivered(hook string) (int64, error)
}

// A Filter chooses requests. The zero Filter chooses all, oldest first.
type Filter struct {
	Statuses []Status // none: all
	Open     bool     // only those that have not ended
	Held     bool     // only those that were held
	Actor    string   // empty: any
	Task     string
	Server   string
	Tool     string
	Since    string // only those that have not ended, or whose call was asked for or sent at this time or later
	Counted  bool   // only calls that were made or may yet be: sent, or not ended
	After    string // run ids after this one: run ids are ordered by time
	Newest   bool   // newest first
	Limit    int    // 0: all
}

// A Tx reads and writes rows.
type Tx interface {
	Reader
	// AddEvents adds events after the last one. Payloads are JSON or a [Ref].
	AddEvents([]Event) error
	AddDecision(Decision) error
	// AddRequest adds a row that does not exist.
	AddRequest(Request) error
	// PutRequest adds the row or replaces it.
	PutRequest(Request) error
	// PutBlob adds the blob unless one of its digest is there. It ignores Used.
	PutBlob(Blob) error
	// UseBlob notes that an event refers to a blob. Of several events the last counts.
	UseBlob(digest canonical.Digest, seq int64) error
	PutToken(Token) error
	PutDelivery(Delivery) error
	SetDelivered(hook string, seq int64) error
	// Prune removes events up to a seq and their deliveries, the requests and decisions of the runs named, and the blobs to which no later
	// event refers. Nothing else removes rows.
	Prune(upTo int64, runs []string) error
}
