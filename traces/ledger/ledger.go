package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
)

// ClockSkew bounds how far the clock may be behind the last event. Within this bound, the ledger's
// time stands still. Beyond it the ledger records nothing, because approvals that have expired
// would be valid again.
const ClockSkew = time.Minute

// ErrClockBack means that the clock was set back.
var ErrClockBack = errors.New("the clock stands before the ledger's last entry; set it right: nothing is recorded until then")

// ErrUnavailable is wrapped by a store's error if the store recorded nothing and may succeed later:
// the disk is full, or another process holds the ledger.
var ErrUnavailable = errors.New("the ledger cannot record now")

// ErrClosed means that the ledger is being closed.
var ErrClosed = errors.New("the ledger is closed")

// Options configures a ledger.
type Options struct {
	// Clock tells the time; nil means [Store.Now].
	Clock func() time.Time
	// Build is the version of the program. Each run records it.
	Build string
	// Origin names a new log; empty means a random name. An existing log keeps its name.
	Origin string
	// Settings are those of a command. Those of a gateway are in [ActivationReason].
	Settings Settings
	// Random is the source of the salts of entries; nil means that of package crypto/rand.
	Random io.Reader
}

// A Ledger records runs and decisions. It is safe for concurrent use; commits that arrive at the
// same time share a flush.
type Ledger struct {
	store       Store
	owner       string
	origin      string // the name of a new log
	release     func() error
	clock       func() time.Time
	build       string
	random      io.Reader
	settings    Settings
	generations map[generationKey]int64 // the entries of this process; of the committer
	queue       chan *operation
	closing     chan struct{}
	done        chan struct{}
	bundles     bundles
	parsedPrune atomic.Pointer[knownPrune] // the last prune that was read; nil: none was read yet
	// Is called with the duration of each commit; nil: durations are not measured.
	measure atomic.Pointer[func(time.Duration)]
	// Is called with the connections that a commit has ended, see OnEnded.
	ended atomic.Pointer[func([]Connection)]
	fatal chan error // receives the first error after which the store is unusable

	memory   *memory // nil: empty; of the committer
	replicas roster
	refusals refusals
	recent   recentTokens
	earlier  earlierMemory

	mu   sync.Mutex
	busy map[string]bool // the runs that a goroutine of this process works on
}

// Open begins to record in a store. It locks the id of a new owner; the runs of this process carry
// that id. The error is [ErrLedgerClosed] if an entry closed the ledger.
func Open(ctx context.Context, store Store, o Options) (*Ledger, error) {
	if err := store.ReadCommitted(ctx, notClosed); err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	release, err := store.AcquireOwnership(ctx, id.String())
	if err != nil {
		return nil, fmt.Errorf("the ledger cannot be owned: %w", err)
	}

	l := &Ledger{
		store:   store,
		owner:   id.String(),
		release: release,
		origin:  o.Origin,
		clock:   o.Clock,
		build:   o.Build,
		random:  o.Random,

		settings: o.Settings,

		generations: make(map[generationKey]int64),
		queue:       make(chan *operation, maxBatch),
		closing:     make(chan struct{}),
		done:        make(chan struct{}),
		busy:        make(map[string]bool),
		fatal:       make(chan error, 1),
	}
	if l.clock == nil {
		l.clock = store.Now
	}

	if l.random == nil {
		l.random = rand.Reader
	}

	if l.origin == "" {
		l.origin = "pgfsm-log-" + rand.Text()
	}

	go l.commitLoop()
	return l, nil
}

// Owner returns the id that the runs of this process carry.
func (l *Ledger) Owner() string { return l.owner }

// Now returns the time of the ledger's clock. Callers use it for requests that the ledger records,
// and for times that they compare with the ledger's.
func (l *Ledger) Now() time.Time { return l.clock() }

// FatalError returns a channel that receives [ErrFenced], [ErrLost] or [ErrLedgerClosed] as soon as
// an operation of the store has failed with it. From then on this process cannot use the ledger.
func (l *Ledger) FatalError() <-chan error { return l.fatal }

// MeasureCommits makes the ledger call took with the duration of each later commit. took must not
// block.
func (l *Ledger) MeasureCommits(took func(time.Duration)) { l.measure.Store(&took) }

// OnEnded has do called with the connections that each commit has ended, with their credentials. do must not wait,
// and must not use the ledger.
func (l *Ledger) OnEnded(do func([]Connection)) { l.ended.Store(&do) }

// reportFatal returns err. If err makes the store unusable, reportFatal also sends it to
// [Ledger.FatalError].
func (l *Ledger) reportFatal(err error) error {
	if errors.Is(err, ErrFenced) || errors.Is(err, ErrLost) || errors.Is(err, ErrLedgerClosed) {
		select {
		case l.fatal <- err:
		default: // an earlier error is still unread, and one is enough
		}
	}
	return err
}

// View reads one consistent state.
func (l *Ledger) View(ctx context.Context, do func(Reader) error) error {
	return l.reportFatal(l.store.View(ctx, do))
}

// ReadCommitted is View without one state: each read sees what was committed when it began.
func (l *Ledger) ReadCommitted(ctx context.Context, do func(Reader) error) error {
	return l.reportFatal(l.store.ReadCommitted(ctx, do))
}

// Update runs do in one transaction of the store, for rows that are not part of the record. The
// error is [ErrLedgerClosed] if an entry closed the ledger.
func (l *Ledger) Update(ctx context.Context, do func(Tx) error, ahead ...func(Reader)) error {
	return l.reportFatal(l.store.Update(ctx, func(tx Tx) error {
		if err := notClosed(tx); err != nil {
			return err
		}
		return do(tx)
	}, ahead...))
}

// Close waits for commits in progress and releases the owner's lock. The store stays open. Later
// commits fail with [ErrClosed].
func (l *Ledger) Close() error {
	close(l.closing)
	<-l.done
	return l.release()
}

// machineDigest returns the digest of this build's machine.
var machineDigest = sync.OnceValue(func() canonical.Digest {
	m, err := states.NewMachine()
	if err != nil {
		panic(err) // the table is part of the program, and every test builds it
	}
	return m.Digest()
})

// timeForm is the format of every time in a ledger.
const timeForm = policy.TimeForm

// millisecondsBetween returns how long after a time another one is; both have the ledger's form.
func millisecondsBetween(before, after string) int64 {
	first, _ := time.Parse(timeForm, before)
	last, _ := time.Parse(timeForm, after)
	return last.Sub(first).Milliseconds()
}

// timeAfter returns the ledger's time, which is never before last, the time of the last event.
func (l *Ledger) timeAfter(last string) (string, error) { return notBefore(l.clock(), last) }

// notBefore returns the clock's time, or the time of the last event if the clock is slightly behind
// it.
func notBefore(clock time.Time, last string) (string, error) {
	t := clock.UTC()
	now := t.Format(timeForm)
	if now >= last {
		return now, nil
	}
	lastTime, err := time.Parse(timeForm, last)
	if err != nil || lastTime.Sub(t) > ClockSkew {
		return "", fmt.Errorf("%w (it shows %s, the last entry is of %s)", ErrClockBack, now, last)
	}
	return last, nil
}
