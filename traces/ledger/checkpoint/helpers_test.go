package checkpoint_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/traces"
	"pgfsm/traces/ledger/checkpoint"
)

const origin = "pgfsm-log-00000000000000000000000000000000"

// memory is a log in memory.
type memory struct {
	leaves [][]byte
	hashes []tlog.Hash // by stored hash index
}

func (m *memory) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index >= int64(len(m.hashes)) {
			return nil, fmt.Errorf("no hash %d", index)
		}
		found[i] = m.hashes[index]
	}
	return found, nil
}

func (m *memory) size() int64 { return int64(len(m.leaves)) }

// add appends an entry and returns its index.
func (m *memory) add(t testing.TB, leaf []byte) int64 {
	t.Helper()
	hashes, err := tlog.StoredHashes(m.size(), leaf, m)
	check.NoError(t, err)
	m.leaves, m.hashes = append(m.leaves, leaf), append(m.hashes, hashes...)
	return m.size() - 1
}

// grow appends n entries of other runs, whose texts contain what.
func (m *memory) grow(t testing.TB, n int, what string) {
	t.Helper()
	for range n {
		m.add(t, fmt.Appendf(nil, "%s %d", what, m.size()))
	}
}

// logOf returns a log with n entries.
func logOf(t testing.TB, n int) *memory {
	t.Helper()
	m := new(memory)
	m.grow(t, n, "entry")
	return m
}

// copied returns a copy of the first n entries.
func (m *memory) copied(t testing.TB, n int) *memory {
	t.Helper()
	c := new(memory)
	for _, leaf := range m.leaves[:n] {
		c.add(t, slices.Clone(leaf))
	}
	return c
}

// A key is a key of a log.
type key struct {
	signer   note.Signer
	verifier note.Verifier
	text     string // of the verifier
}

func newKey(t testing.TB, origin string) key {
	t.Helper()
	private, vkey, err := checkpoint.NewKey(origin)
	check.NoError(t, err)
	k := key{text: vkey}
	if k.signer, err = note.NewSigner(private); err != nil {
		t.Fatal(err)
	}
	if k.verifier, err = checkpoint.LogVerifier(vkey); err != nil {
		t.Fatal(err)
	}
	return k
}

// sign signs the state of a log.
func sign(t testing.TB, m *memory, keys ...key) []byte {
	t.Helper()
	c, err := checkpoint.Take(origin, m.size(), m)
	check.NoError(t, err)
	var signers []note.Signer
	for _, k := range keys {
		signers = append(signers, k.signer)
	}
	signed, err := checkpoint.Sign(c, signers...)
	check.NoError(t, err)
	return signed
}

func witnessVerifier(t testing.TB, vkey string) note.Verifier {
	t.Helper()
	v, err := checkpoint.WitnessVerifier(vkey)
	check.NoError(t, err)
	return v
}

// stored reads a trace of the examples.
func stored(t testing.TB, name string) *traces.Trace {
	t.Helper()
	trace, err := traces.Read(document(t, name))
	check.NoError(t, err)
	return trace
}

func document(t testing.TB, name string) []byte {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("..", "..", "testdata", "good", name+".json"))
	check.NoError(t, err)
	return doc
}

// events returns what an entry records, as canonical JSON.
func events(t testing.TB, list ...map[string]any) []byte {
	t.Helper()
	text, err := canonical.Marshal(list)
	check.NoError(t, err)
	return text
}

// A writer writes the entries of one run into a log, with entries of other runs between them.
type writer struct {
	t       testing.TB
	log     *memory
	run     string
	entries []checkpoint.Entry
	index   int64 // of the last one
}

// write appends an entry.
func (w *writer) write(text []byte) {
	w.t.Helper()
	var list []struct {
		Type string         `json:"type"`
		Rest jsontext.Value `json:",embed"`
	}
	check.NoError(w.t, json.Unmarshal(text, &list))
	var types []string
	for _, event := range list {
		types = append(types, strconv.Quote(event.Type))
	}
	prev, run := "", ""
	if n := len(w.entries); n > 0 {
		prev = tlog.RecordHash(w.entries[n-1].Header).String()
	}
	if w.run != "" {
		run = fmt.Sprintf(`"run":%q,`, w.run)
	}
	body := fmt.Appendf(nil, `{"by":"local:alice","events":%s,%s"salt":"AAAAAAAAAAAAAAAAAAAAAA=="}`, text, run)
	w.append(body, fmt.Sprintf(`"class":"run","n":%d,"prev":%q,"types":[%s]}`, len(w.entries), prev, strings.Join(types, ",")))
}

// append appends an entry with a body and the members of its header after the body's digest.
func (w *writer) append(body []byte, rest string) {
	w.t.Helper()
	digest := sha256.Sum256(body)
	header := fmt.Appendf(nil, `{"at":"2026-11-23T12:00:00.000Z","body":"%s",%s`, base64.StdEncoding.EncodeToString(digest[:]), rest)
	w.entries = append(w.entries, checkpoint.Entry{Header: header, Body: body})
	w.log.grow(w.t, 2, "between")
	w.index = w.log.add(w.t, header)
}

// ended writes the entries of a run that ended with this trace, one of them with a large value.
func ended(t testing.TB, m *memory, trace *traces.Trace, large int) *writer {
	t.Helper()
	w := &writer{t: t, log: m, run: trace.Header.RunID}
	padding := strings.Repeat("x", large)
	w.write(events(t, map[string]any{"type": "request.created", "padding": padding}, map[string]any{"type": "decision.made"}))
	w.write(events(t, map[string]any{"type": "proxy.sent"}))
	w.write(events(t, map[string]any{"type": "tool.result"}, map[string]any{"type": "run.ended", "head": trace.Head}))
	return w
}

// held writes the entries of a run that is held with this trace.
func held(t testing.TB, m *memory, trace *traces.Trace) *writer {
	t.Helper()
	w := &writer{t: t, log: m, run: trace.Header.RunID}
	w.write(events(t, map[string]any{"type": "request.created"}, map[string]any{"type": "decision.made"},
		map[string]any{"type": "approval.requested", "last": trace.Steps[len(trace.Steps)-1].Hash}))
	return w
}

// prove proves the written run at a checkpoint of the whole log.
func (w *writer) prove(signed []byte) *checkpoint.Proof {
	w.t.Helper()
	p, err := checkpoint.Prove(signed, w.log, w.index, w.entries)
	check.NoError(w.t, err)
	return p
}
