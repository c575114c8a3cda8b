package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/traces"
	"pgfsm/traces/ledger/checkpoint"
)

// ErrTampered is wrapped by every [Fault].
var ErrTampered = errors.New("the ledger is not as it was written")

// A Fault names a row that is wrong, and says what is wrong.
type Fault struct {
	Table string `json:"table"` // entries, tree, requests, blobs, tokens, blocks or connections
	Key   string `json:"key"`   // the key of the row: an index, a run id, a digest, or a token's id
	What  string `json:"what"`
	Rule  Rule   `json:"rule,omitempty"` // the rule that the row breaks; empty for a row that follows from others
}

func newFault(table, key, what string) *Fault { return &Fault{Table: table, Key: key, What: what} }

func (f *Fault) Error() string {
	return fmt.Sprintf("%v: %s %s: %s%s", ErrTampered, f.Table, f.Key, f.What, f.Rule.Cited())
}

// Unwrap returns [ErrTampered].
func (f *Fault) Unwrap() error { return ErrTampered }

// VerifyOptions configures [Verify].
type VerifyOptions struct {
	// Checkpoint is one that was stored elsewhere. Without it, Verify cannot detect that the end of
	// the ledger is missing.
	Checkpoint *checkpoint.Checkpoint
	// Keys are the keys of the log that the reader trusts. Who can write the tables can also add a key
	// or remove one, so only a trusted key orders a prune. If there are none, those of the log count.
	Keys []note.Verifier
	// Replayer executes each run again. If it is nil, Verify executes no run.
	Replayer *traces.Replayer
	// Progress is called now and then with how much of the work is done. It may be nil.
	Progress func(done, total int64)
}

// A Report says what was verified.
type Report struct {
	Complete bool        `json:"complete"` // no entry is missing up to the checkpoint
	Entries  int64       `json:"entries"`
	Requests int64       `json:"requests"`
	Blobs    int64       `json:"blobs"`
	Tokens   int64       `json:"tokens"`
	Deep     Reexecution `json:"deep"`
	Pruned   int64       `json:"pruned"` // how many entries were pruned
	Prunes   []Prune     `json:"prunes,omitempty"`
	Origin   string      `json:"origin"` // the name of the log
	Size     int64       `json:"size"`   // the size of the tree: how many entries were ever added
	Root     tlog.Hash   `json:"root"`   // the hash of the tree

	// Entries that the checkpoint covers and that were pruned after it.
	PrunedAfter []Range `json:"pruned_after_checkpoint,omitempty"`
}

// Erased returns how many runs were erased. Nothing can be said about them.
func (r *Report) Erased() (runs int) {
	for i := range r.Prunes {
		if r.Prunes[i].Kind == PruneErasure {
			runs += r.Prunes[i].Runs
		}
	}
	return runs
}

// A Prune is one prune that the log records.
type Prune struct {
	Entry  int64  `json:"entry"` // the index of its entry
	At     string `json:"at"`
	By     string `json:"by"`
	Before string `json:"before"` // empty for an erasure
	Runs   int    `json:"runs"`

	Kind   PruneKind     `json:"kind"`
	Reason ErasureReason `json:"reason,omitzero"`
	// A key of the log has signed the order. Only in a log without a key is a prune unsigned.
	Signed   bool `json:"signed"`
	Unstated bool `json:"unstated"` // no retention was stated
	// Ranges that are gone after this prune; an earlier prune may have removed some of them.
	Entries []Range `json:"entries"`
}

// Verify reads the whole ledger: it checks the tree, digests and projections, and that no call was
// sent without a decision. Its memory does not grow with the number of runs that have ended, but for
// the digests of blobs, the tokens and the blocks; a run that has not ended takes about 30 kB.
// The error is a [*Fault] for the first row that is wrong. It is another error if something could not be
// read.
//
// A user who can write all tables can write a new consistent history, or delete the end: only a
// checkpoint stored elsewhere detects that.
func Verify(ctx context.Context, r Reader, o VerifyOptions) (Report, error) {
	v := newVerifier(ctx, r, o)
	v.stated = new(statedSettings)
	for _, pass := range []func() error{
		v.checkEntries, v.checkOpenRuns, v.checkExtraRuns, v.checkTokens, v.checkBlocks, v.checkConnections,
		v.checkBlobs,
	} {
		if err := pass(); err != nil {
			return v.report, err
		}
	}
	v.report.Complete = o.Checkpoint != nil
	return v.report, nil
}

// A verifier holds the state of one verification.
type verifier struct {
	ctx          context.Context
	r            Reader
	o            VerifyOptions
	report       Report
	blobs        *blobs
	bundles      bundles
	earlier      earlierMemory
	counts       earlierCounts
	generations  generations
	tokens       map[string]Token // the tokens, as the entries so far say
	blocks       blockHistory
	connections  liveConnections         // as the entries so far say; nil if not every entry is read
	runs         map[string]*runVerifier // runs that may get further entries
	done         int64
	total        int64
	tree         treeCheck
	keys         []Key
	missing      []Range         // entries without a body
	prunedRanges []Range         // entries that later entries name as pruned
	lastPrune    *ledgerPruned   // the last prune
	late         map[string]bool // runs about which there was a late report
	prunedSilent int             // pruned runs that ended as unreported, without those in late
	stated       *statedSettings // at the last entry; nil if not every entry is read
}

func newVerifier(ctx context.Context, r Reader, o VerifyOptions) *verifier {
	return &verifier{ctx: ctx, r: r, o: o, blobs: newBlobs(r), generations: make(generations),
		runs: make(map[string]*runVerifier), late: make(map[string]bool), tokens: make(map[string]Token),
		counts: earlierCounts{make(map[lookback]int), make(map[lookback]int)}}
}

// progressEvery is the number of entries between two calls of Progress.
const progressEvery = 1 << 10

// countEntry counts a verified entry, and returns an error if the context is done.
func (v *verifier) countEntry() error {
	if v.done++; v.done%progressEvery != 0 {
		return nil
	}
	if v.o.Progress != nil {
		v.o.Progress(v.done, v.total)
	}
	return v.ctx.Err()
}

func entryKey(index int64) string { return strconv.FormatInt(index, 10) }

// asFault converts the error of a row to a Fault. It returns read errors unchanged.
func asFault(table, key string, err error) error {
	var known *Fault
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrNewer):
		return err
	}
	return faultOf(checkpoint.RuleOf(err), table, key, err.Error())
}

// unreadFault returns the error for a row that the store could not return.
func unreadFault(table, key string, err error) error {
	var known *Fault
	switch {
	case !errors.Is(err, ErrMalformed):
	case errors.As(err, &known): // the store has named the row
		return newFault(known.Table, known.Key, "it cannot be read: "+known.What)
	default:
		return newFault(table, key, "it cannot be read: "+err.Error())
	}
	return fmt.Errorf("%s behind %s: %w", table, key, err)
}

// everything is an index before all entries, even before entries with invalid indexes.
const everything = math.MinInt64

// maxCached bounds the bytes of cached blobs. The cache helps because many runs share catalogs.
const maxCached = 32 << 20

// blobs reads and checks the blobs of a ledger, and tracks which of them entries refer to.
type blobs struct {
	r      Reader
	used   map[canonical.Digest]bool // entries refer to them
	cached map[canonical.Digest]string
	size   int
}

func newBlobs(r Reader) *blobs {
	return &blobs{r: r, used: make(map[canonical.Digest]bool), cached: make(map[canonical.Digest]string)}
}

// noteUsed notes that an entry refers to blobs.
func (b *blobs) noteUsed(digests []canonical.Digest) {
	for _, d := range digests {
		b.used[d] = true
	}
}

// checkedText returns the text of a blob after checking its digest. A fault names the row that
// refers to the blob.
func (b *blobs) checkedText(d canonical.Digest, kind, table, key string) (string, error) {
	if text, ok := b.cached[d]; ok {
		return text, nil
	}
	if _, err := canonical.ParseDigest(string(d)); err != nil {
		return "", faultOf(ruleBlobs, table, key, "it refers to a blob by what is no digest")
	}

	row, err := b.r.Blob(d)
	switch {
	case errors.Is(err, ErrNotFound):
		return "", faultOf(ruleBlobs, "blobs", string(d), fmt.Sprintf("it is missing, and %s %s refers to it", table, key))
	case err != nil:
		return "", unreadFault("blobs", string(d), err)
	}

	if err := row.checkDigest(d, kind); err != nil {
		return "", err
	}

	if len(row.Text) <= maxCached/8 {
		if b.size += len(row.Text); b.size > maxCached {
			clear(b.cached)
			b.size = len(row.Text)
		}
		b.cached[d] = row.Text
	}

	return row.Text, nil
}

// checkDigest compares a blob with its digest.
func (b *Blob) checkDigest(d canonical.Digest, kind string) error {
	switch {
	case b.Kind != kind:
		return faultOf(ruleBlobs, "blobs", string(d), fmt.Sprintf("it is a %q, not a %q", b.Kind, kind))
	case b.Digest != d || canonical.Sum(b.Kind, []byte(b.Text)) != d:
		return faultOf(ruleBlobs, "blobs", string(d), "its digest is not that of its text")
	}
	return nil
}

// checkBlobs checks all blobs: each must match its digest, and a row must refer to it.
func (v *verifier) checkBlobs() error {
	last := "the first"
	for b, err := range v.r.Blobs() {
		if err != nil {
			return unreadFault("blobs", last, err)
		}
		if err := v.ctx.Err(); err != nil {
			return err
		}
		last = string(b.Digest)
		if b.Kind != BlobBundle && b.Kind != BlobValue {
			return faultOf(ruleBlobs, "blobs", last, fmt.Sprintf("there is no kind %q", b.Kind))
		}
		if err := b.checkDigest(b.Digest, b.Kind); err != nil {
			return err
		}
		if !jsontext.Value(b.Text).IsValid() {
			return faultOf(ruleBlobs, "blobs", last, "it is not strict JSON")
		}
		if !v.blobs.used[b.Digest] {
			return faultOf(ruleBlobs, "blobs", last, "no entry refers to it")
		}
		v.report.Blobs++
	}
	return nil
}
