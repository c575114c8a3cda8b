package ledger

import (
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
)

// maxRemembered bounds each map of a memory. A full map is emptied: its rows are read again.
const maxRemembered = 4 << 10

// A memory holds rows that the committer wrote or read, so that a commit does not read them again.
// It is true as long as nobody else writes: [Tx.DataVersion] tells. It knows rows, and nothing of the
// form of entries. Only the committer uses it.
//
// A transaction changes the memory together with the rows. So after every error of [Store.Update],
// also if the outcome of the commit is unknown, the memory is dropped as a whole.
type memory struct {
	version DataVersion
	end     End
	hashes  map[int64]tlog.Hash // hashes of the tree by their stored index
	lastOf  map[string]int64    // index of a run's last entry
	tokens  map[string]Token
	blocks  map[string]*Block // nil: the subject is not blocked
	blobs   map[canonical.Digest]bool
}

func newMemory(v DataVersion, end End) *memory {
	return &memory{
		version: v,
		end:     end,
		hashes:  make(map[int64]tlog.Hash),
		lastOf:  make(map[string]int64),
		tokens:  make(map[string]Token),
		blocks:  make(map[string]*Block),
		blobs:   make(map[canonical.Digest]bool),
	}
}

// remember adds a row to a map of a memory.
func remember[K comparable, V any](rows map[K]V, key K, row V) {
	if len(rows) >= maxRemembered {
		clear(rows)
	}
	rows[key] = row
}

// A rememberingTx is a transaction of the committer that reads from its memory what it can.
type rememberingTx struct {
	Tx
	*memory
	// Answers of FindWaiting in this transaction; an empty run means ErrNotFound. They are not kept
	// longer, because requests are looked up by their arguments, which rarely come twice.
	waiting map[RepeatedCall]string
}

// rememberTx returns a transaction with the memory, or with an empty one if anybody else has
// written since.
func (l *Ledger) rememberTx(tx Tx) (*rememberingTx, error) {
	v, err := tx.DataVersion()
	if err != nil {
		return nil, err
	}
	if l.memory == nil || l.memory.version != v {
		end, err := tx.End()
		if err != nil {
			return nil, err
		}
		l.memory = newMemory(v, end)
	}
	return &rememberingTx{Tx: tx, memory: l.memory}, nil
}

func (t *rememberingTx) End() (End, error) { return t.end, nil }

func (t *rememberingTx) AddEntry(e Entry, hashes []tlog.Hash) error {
	if err := t.Tx.AddEntry(e, hashes); err != nil {
		return err
	}
	t.end = End{Size: e.Index + 1, At: e.At, Type: e.Type}
	for level, hash := range hashes {
		remember(t.hashes, tlog.StoredHashIndex(level, e.Index>>level), hash)
	}
	return nil
}

func (t *rememberingTx) ReadHashes(ids []int64) ([]tlog.Hash, error) {
	found := make(map[int64]tlog.Hash, len(ids))
	var missing []int64
	for _, id := range ids {
		if hash, ok := t.hashes[id]; ok {
			found[id] = hash
		} else {
			missing = append(missing, id)
		}
	}

	if len(missing) > 0 {
		read, err := t.Tx.ReadHashes(missing)
		if err != nil {
			return nil, err
		}
		for i, id := range missing {
			found[id] = read[i]
			remember(t.hashes, id, read[i])
		}
	}

	ordered := make([]tlog.Hash, len(ids))
	for i, id := range ids {
		ordered[i] = found[id]
	}
	return ordered, nil
}

func (t *rememberingTx) LastIndexOf(run string) (int64, error) {
	if index, ok := t.lastOf[run]; ok {
		return index, nil
	}
	index, err := t.Tx.LastIndexOf(run)
	if err == nil {
		remember(t.lastOf, run, index)
	}
	return index, err
}

func (t *rememberingTx) AddRun(q RunRow) error {
	t.noteRun(&q)
	return t.Tx.AddRun(q)
}

func (t *rememberingTx) PutRun(q RunRow) error {
	t.noteRun(&q)
	return t.Tx.PutRun(q)
}

// noteRun remembers the last entry of an open run, and forgets that of an ended one: it gets no
// further commit. A held run may be one to which a repetition attaches.
func (t *rememberingTx) noteRun(q *RunRow) {
	if q.Ended != "" {
		delete(t.lastOf, q.RunID)
	} else {
		remember(t.lastOf, q.RunID, q.Entry)
	}
	if q.Binding != "" {
		clear(t.waiting)
	}
}

func (t *rememberingTx) FindWaiting(call RepeatedCall) (string, error) {
	run, ok := t.waiting[call]
	if !ok {
		var err error
		run, err = t.Tx.FindWaiting(call)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return "", err
		}
		if t.waiting == nil {
			t.waiting = make(map[RepeatedCall]string)
		}
		t.waiting[call] = run
	}
	if run == "" {
		return "", fmt.Errorf("a run that waits for %s: %w", call.Tool, ErrNotFound)
	}
	return run, nil
}

func (t *rememberingTx) Token(id string) (Token, error) {
	if token, ok := t.tokens[id]; ok {
		return token, nil
	}
	token, err := t.Tx.Token(id)
	if err == nil {
		remember(t.tokens, id, token)
	}
	return token, err
}

func (t *rememberingTx) PutToken(token Token) error {
	remember(t.tokens, token.ID, token)
	return t.Tx.PutToken(token)
}

func (t *rememberingTx) DropToken(id string) error {
	delete(t.tokens, id)
	return t.Tx.DropToken(id)
}

func (t *rememberingTx) Block(name string) (Block, error) {
	block, ok := t.blocks[name]
	if !ok {
		read, err := t.Tx.Block(name)
		switch {
		case err == nil:
			block = &read
		case !errors.Is(err, ErrNotFound):
			return Block{}, err
		}
		remember(t.blocks, name, block)
	}
	if block == nil {
		return Block{}, fmt.Errorf("the block of %s: %w", name, ErrNotFound)
	}
	return *block, nil
}

func (t *rememberingTx) PutBlock(block Block) error {
	remember(t.blocks, block.Name, &block)
	return t.Tx.PutBlock(block)
}

func (t *rememberingTx) DropBlock(name string) error {
	remember(t.blocks, name, nil)
	return t.Tx.DropBlock(name)
}

func (t *rememberingTx) PutBlob(blob Blob) error {
	if t.blobs[blob.Digest] {
		return nil
	}
	if err := t.Tx.PutBlob(blob); err != nil {
		return err
	}
	remember(t.blobs, blob.Digest, true)
	return nil
}

func (t *rememberingTx) Prune(entries []PrunedEntry, runs []string, blobs []canonical.Digest) error {
	clear(t.blobs)
	clear(t.waiting)
	clear(t.lastOf)
	return t.Tx.Prune(entries, runs, blobs)
}
