// Package witnesstest is a witness for tests: it follows c2sp.org/tlog-witness and keeps its state in memory.
package witnesstest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/transparency-dev/formats/log"
	formats "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/test/check"
)

// A Witness cosigns the checkpoints of the logs that it knows.
type Witness struct {
	URL string
	Key string // the witness's verifier key

	signer note.Signer
	mu     sync.Mutex
	logs   map[string]*history // by origin
}

// history holds the state of the witness for one log.
type history struct {
	keys []note.Verifier
	size int64
	root tlog.Hash
}

// New starts a witness that knows no log.
func New(t testing.TB) *Witness {
	t.Helper()
	private, vkey, err := note.GenerateKey(nil, "witness.example/w1")
	check.NoError(t, err)
	w := &Witness{logs: make(map[string]*history)}
	if w.signer, err = formats.NewSignerForCosignatureV1(private); err != nil {
		t.Fatal(err)
	}
	if w.Key, err = formats.VKeyToCosignatureV1(vkey); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	w.URL = server.URL
	return w
}

// Trust adds a log to the witness, with a key to trust.
func (w *Witness) Trust(t testing.TB, vkey string) {
	t.Helper()
	key, err := note.NewVerifier(vkey)
	check.NoError(t, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.logs[key.Name()] == nil {
		w.logs[key.Name()] = new(history)
	}
	w.logs[key.Name()].keys = append(w.logs[key.Name()].keys, key)
}

// ServeHTTP answers add-checkpoint.
func (w *Witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/add-checkpoint" {
		http.NotFound(rw, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	status, kind, answer := w.add(body)
	if kind != "" {
		rw.Header().Set("Content-Type", kind)
	}
	rw.WriteHeader(status)
	io.WriteString(rw, answer)
}

// add judges one submission in the order of the specification.
func (w *Witness) add(body []byte) (status int, kind, answer string) {
	old, proof, signed, err := parse(body)
	if err != nil {
		return http.StatusBadRequest, "", err.Error()
	}
	text, _, _ := bytes.Cut(signed, []byte("\n\n"))
	var head log.Checkpoint
	if _, err := head.Unmarshal(append(text, '\n')); err != nil || len(head.Hash) != tlog.HashSize {
		return http.StatusBadRequest, "", fmt.Sprint("checkpoint: ", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.logs[head.Origin]
	if state == nil {
		return http.StatusNotFound, "", "unknown origin"
	}
	n, err := note.Open(signed, note.VerifierList(state.keys...))
	if err != nil {
		return http.StatusForbidden, "", err.Error()
	}
	size, root := int64(head.Size), tlog.Hash(head.Hash)
	switch {
	case old > size:
		return http.StatusBadRequest, "", "old size is larger"
	case old != state.size:
		return http.StatusConflict, "text/x.tlog.size", fmt.Sprintf("%d\n", state.size)
	case old == size && root != state.root:
		return http.StatusConflict, "", "another root"
	case old == 0 && len(proof) > 0, old > 0 && tlog.CheckTree(proof, size, root, old, state.root) != nil:
		return http.StatusUnprocessableEntity, "", "bad proof"
	}
	cosigned, err := note.Sign(&note.Note{Text: n.Text}, w.signer)
	if err != nil {
		return http.StatusInternalServerError, "", err.Error()
	}
	state.size, state.root = size, root
	return http.StatusOK, "", strings.TrimPrefix(string(cosigned), n.Text+"\n")
}

// parse splits a request into the old size, the consistency proof and the checkpoint.
func parse(body []byte) (old int64, proof tlog.TreeProof, signed []byte, err error) {
	head, signed, found := bytes.Cut(body, []byte("\n\n"))
	lines := bufio.NewScanner(bytes.NewReader(head))
	if !found || !lines.Scan() {
		return 0, nil, nil, fmt.Errorf("no empty line")
	}
	text, found := strings.CutPrefix(lines.Text(), "old ")
	if old, err = strconv.ParseInt(text, 10, 64); !found || err != nil || strconv.FormatInt(old, 10) != text {
		return 0, nil, nil, fmt.Errorf("no old size")
	}
	for lines.Scan() {
		hash, err := tlog.ParseHash(lines.Text())
		if err != nil {
			return 0, nil, nil, err
		}
		proof = append(proof, hash)
	}
	if len(proof) > 63 {
		return 0, nil, nil, fmt.Errorf("%d proof lines", len(proof))
	}
	return old, proof, signed, nil
}
