package ledger

import (
	"context"
	"errors"
	"iter"

	"pgfsm/policy/canonical"
)

// ErrNotFound means that there is no such row.
var ErrNotFound = errors.New("not in the ledger")

// ErrMalformed means that what is kept cannot be read as the rows of a ledger. Where the file is one, [Verify] says what else
// does not fit.
var ErrMalformed = errors.New("the file is not a ledger")

// A Store keeps the rows of a ledger. It knows nothing of what they mean: chains, projections and rules are the ledger's.
// A second database is another Store; package storetest says what one must do.
type Store interface {
	// Update runs do in one transaction. No other writer, of this or any process, comes between its reads and its writes.
	// When Update returns nil, all of it is durable; when it returns an error, none of it ever was there. An error of do
	// comes back as it is.
	Update(ctx context.Context, do func(Tx) error) error
	// View runs do on one consistent state. It waits for no writer.
	View(ctx context.Context, do func(Reader) error) error
	// Glance is View without one state: each read sees what was committed when it began. It costs less, and is for who asks one
	// question, or whose questions do not depend on each other.
	Glance(ctx context.Context, do func(Reader) error) error
	// Own takes the lock of an owner's id for as long as this process lives, or until release.
	Own(ctx context.Context, owner string) (release func() error, err error)
	// Gone reports whether no process holds the lock of the owner. An error means that nobody can say.
	Gone(ctx context.Context, owner string) (bool, error)
	Close() error
}

// A Reader reads rows. Sequences end after the first error.
type Reader interface {
	// Last returns the last event, or ErrNotFound in an empty ledger.
	Last() (Event, error)
	// End is Last without what the event says: every transaction begins with it.
	End() (End, error)
	// LastPrune returns the last event of the type [LedgerPruned], or ErrNotFound. It is quick however many others there are.
	LastPrune() (Event, error)
	// TokenEvents returns the events of the types [TokenCreated] and [TokenRevoked], oldest first. It is quick however many others there are.
	TokenEvents() iter.Seq2[Event, error]
	// Events returns the events behind a seq, oldest first.
	Events(after int64) iter.Seq2[Event, error]
	// EventsOf returns the events of one run, oldest first.
	EventsOf(run string) iter.Seq2[Event, error]
	Request(run string) (Request, error)
	// Reached returns the seq of the run's last event, as [Request.Seq] has it, or ErrNotFound.
	Reached(run string) (int64, error)
	// Requests returns those that fit, ordered as the filter says.
	Requests(Filter) iter.Seq2[Request, error]
	// Waiting returns the id of the first run, in their order, of exactly the call that is looked for and for which
	// [Request.Attachable] holds, or ErrNotFound. It is quick however many runs there are.
	Waiting(Look) (string, error)
	// Decisions returns those behind the seq of an event, oldest first.
	Decisions(after int64) iter.Seq2[Decision, error]
	// Steps returns the steps of one run, in order.
	Steps(run string) iter.Seq2[Step, error]
	// Runs returns the ids of all runs that have steps, in order.
	Runs() iter.Seq2[string, error]
	Blob(canonical.Digest) (Blob, error)
	// Blobs returns all of them, ordered by digest.
	Blobs() iter.Seq2[Blob, error]
	Token(id string) (Token, error)
	// Tokens returns all of them, oldest first.
	Tokens() iter.Seq2[Token, error]
	// Deliveries returns those that wait and are due, oldest first, at most limit.
	Deliveries(due string, limit int) iter.Seq2[Delivery, error]
	// Delivered returns the seq up to which events were looked at for a hook; 0 if there was none.
	Delivered(hook string) (int64, error)
}

// A Filter chooses requests. The zero Filter chooses all, oldest first.
type Filter struct {
	Statuses []Status // none: all
	Open     bool     // only those that have not ended
	Held     bool     // only those that people were asked about
	Actor    string   // empty: any
	Task     string
	Server   string
	Tool     string
	Since    string // only those that have not ended, or whose call was asked for or sent at this time or later
	Counted  bool   // only calls that were made or may yet be: sent, or not ended
	After    string // run ids behind this one: run ids are ordered by time
	Newest   bool   // newest first
	Limit    int    // 0: all
}

// A Tx reads and writes rows.
type Tx interface {
	Reader
	// AddEvents adds events behind all that are there. Payloads are JSON or a [Ref].
	AddEvents([]Event) error
	AddDecision(Decision) error
	// AddSteps adds steps behind those of their runs. Facts, commands and events are JSON or a [Ref].
	AddSteps([]Step) error
	// AddRequest adds a row that is not there.
	AddRequest(Request) error
	// PutRequest adds the row or replaces it. A row of that id that was put before is most likely there.
	PutRequest(Request) error
	// PutBlob adds the blob unless one of its digest is there.
	PutBlob(Blob) error
	PutToken(Token) error
	PutDelivery(Delivery) error
	SetDelivered(hook string, seq int64) error
	// Prune removes events up to a seq and their deliveries, and the requests, decisions and steps of the runs named, and blobs that nothing
	// refers to any more. It is the only way in which what is append-only gets smaller. A store may refuse a seq that lies within events of
	// one run that were added together.
	Prune(upTo int64, runs []string) error
}
