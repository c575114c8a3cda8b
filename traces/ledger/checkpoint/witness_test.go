package checkpoint_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	formats "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/checkpoint/witnesstest"
)

func newWitness(t testing.TB, url, vkey string) *checkpoint.Witness {
	t.Helper()
	w, err := checkpoint.NewWitness(url, witnessVerifier(t, vkey))
	check.NoError(t, err)
	return w
}

// cosign has a witness cosign a checkpoint.
func cosign(t testing.TB, w *witnesstest.Witness, signed []byte, m *memory) []byte {
	t.Helper()
	cosigned, err := newWitness(t, w.URL, w.Key).Cosign(t.Context(), signed, m)
	check.NoError(t, err)
	return cosigned
}

// TestCosign shows that a witness follows a log that grows, and that its cosignatures are verified with their time.
func TestCosign(t *testing.T) {
	m, k, next, w := new(memory), newKey(t, origin), newKey(t, origin), witnesstest.New(t)
	w.Trust(t, k.text)
	keys := checkpoint.Keys{Log: []note.Verifier{k.verifier}, Witnesses: []note.Verifier{witnessVerifier(t, w.Key)}}
	for _, growth := range []int{1, 1, 1, 0, 5, 23, 64, 0, 100} {
		m.grow(t, growth, "entry")
		signed := sign(t, m, k, next)
		if _, err := checkpoint.Open(signed, keys); err == nil {
			t.Fatalf("a checkpoint without a cosignature was verified with the key of a witness")
		}
		for range 2 { // also a checkpoint that it has cosigned already
			signed = cosign(t, w, signed, m)
			o, err := checkpoint.Open(signed, keys)
			if err != nil || o.Size != m.size() || len(o.Cosigned) != 1 || o.Cosigned[0].At.Unix() <= 0 {
				t.Fatalf("Open() = %v, %v", o, err)
			}
			if lines := bytes.Count(signed, []byte("— ")); lines != 3 {
				t.Fatalf("%d signatures, want 3:\n%s", lines, signed)
			}
		}
	}
}

// TestWitnessKeys shows the kinds of keys that witnesses may have.
func TestWitnessKeys(t *testing.T) {
	m, k := logOf(t, 7), newKey(t, origin)
	plain, vkey, err := note.GenerateKey(nil, "witness.example/plain")
	check.NoError(t, err)
	cosignature, err := formats.VKeyToCosignatureV1(vkey)
	check.NoError(t, err)
	quantum, quantumKey, err := formats.GenerateMLDSAKey("witness.example/ml-dsa")
	check.NoError(t, err)
	c, err := checkpoint.Take(origin, m.size(), m)
	check.NoError(t, err)
	text, _, _ := strings.Cut(string(sign(t, m, k)), "\n\n")
	for _, tt := range []struct{ name, private, vkey string }{
		{"ed25519", plain, vkey}, {"ed25519-cosignature", plain, cosignature}, {"ml-dsa-44", quantum, quantumKey},
	} {
		t.Run(tt.name, func(t *testing.T) {
			signer, err := formats.NewSignerForCosignatureV1(tt.private)
			check.NoError(t, err)
			signed, err := note.Sign(&note.Note{Text: text + "\n"}, k.signer, signer)
			check.NoError(t, err)
			o, err := checkpoint.Open(signed, checkpoint.Keys{Log: []note.Verifier{k.verifier}, Witnesses: []note.Verifier{witnessVerifier(t, tt.vkey)}})
			if err != nil || o.Checkpoint != c || len(o.Cosigned) != 1 || o.Cosigned[0].At.Unix() <= 0 {
				t.Errorf("Open() = %+v, %v", o, err)
			}
		})
	}
}

// TestWitnessFindsOtherHistories shows what a witness finds without anything but the size and the root that it remembers.
func TestWitnessFindsOtherHistories(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, m *memory) *memory // to the log of 20 entries that was cosigned
		err  string
	}{
		{"cut", func(t *testing.T, m *memory) *memory { return m.copied(t, 19) }, "cosigned 20 entries and the log has fewer"},
		{"older-copy-that-grew", func(t *testing.T, m *memory) *memory {
			c := m.copied(t, 15)
			c.grow(t, 30, "other")
			return c
		}, "20 entries that are not the first ones"},
		{"rewritten", func(t *testing.T, m *memory) *memory {
			c := m.copied(t, 3)
			c.grow(t, 17, "other")
			return c
		}, "another tree with 20 entries"},
		{"copy-beside-its-original", func(t *testing.T, m *memory) *memory { // both go on from a common past
			c := m.copied(t, 20)
			m.grow(t, 2, "original")
			c.grow(t, 5, "copy")
			return c
		}, "22 entries that are not the first ones"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, k, w := logOf(t, 20), newKey(t, origin), witnesstest.New(t)
			w.Trust(t, k.text)
			cosign(t, w, sign(t, m, k), m)
			other := tt.do(t, m)
			cosign(t, w, sign(t, m, k), m) // the original, where it is still there
			_, err := newWitness(t, w.URL, w.Key).Cosign(t.Context(), sign(t, other, k), other)
			if !errors.Is(err, checkpoint.ErrInconsistent) || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("Cosign() = %v, want ErrInconsistent and %q", err, tt.err)
			}
		})
	}
}

// TestWitnessRefuses shows the errors that are not about the log's history.
func TestWitnessRefuses(t *testing.T) {
	m, k := logOf(t, 7), newKey(t, origin)
	answers := func(status int, kind, body string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", kind)
			rw.Header().Set("Location", "/elsewhere")
			rw.WriteHeader(status)
			io.WriteString(rw, body)
		}
	}
	size, signed := "text/x.tlog.size", sign(t, m, k)
	wrong := witnesstest.New(t)
	wrong.Trust(t, k.text)
	another := strings.SplitAfter(string(cosign(t, wrong, signed, m)), "\n\n")[1]
	for _, tt := range []struct {
		name   string
		answer http.Handler
		err    string
	}{
		{"unknown-origin", witnesstest.New(t), "does not know the log " + origin},
		{"wrong-key", func() http.Handler {
			w := witnesstest.New(t)
			w.Trust(t, newKey(t, origin).text)
			return w
		}(), "trusts none of the keys"},
		{"cosigned-by-another-key", answers(200, "", another), "no valid cosignature"},
		{"malformed", answers(400, "", "what?"), `malformed: "what?"`},
		{"redirect", answers(307, "", ""), "status 307"},
		{"not-a-signature", answers(200, "", "hello\n"), "no valid cosignature"},
		{"too-much", answers(200, "", strings.Repeat("x", checkpoint.MaxBytes+1)), "more than"},
		{"conflict-without-a-size", answers(409, size, "many\n"), "without a size"},
		{"conflict-of-another-type", answers(409, "text/plain", "3\n"), "without a size"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(tt.answer)
			defer server.Close()
			got, err := newWitness(t, server.URL, witnesstest.New(t).Key).Cosign(t.Context(), signed, m)
			if err == nil || !strings.Contains(err.Error(), tt.err) || errors.Is(err, checkpoint.ErrInconsistent) {
				t.Errorf("Cosign() = %q, %v; want %q", got, err, tt.err)
			}
		})
	}
}

// TestAnOlderCheckpointIsNoFinding shows that a checkpoint from before the last one that was submitted does not count as another history.
func TestAnOlderCheckpointIsNoFinding(t *testing.T) {
	m, k, w := logOf(t, 7), newKey(t, origin), witnesstest.New(t)
	w.Trust(t, k.text)
	older := sign(t, m, k)
	m.grow(t, 5, "entry")
	cosign(t, w, sign(t, m, k), m)
	_, err := newWitness(t, w.URL, w.Key).Cosign(t.Context(), older, m)
	if err == nil || errors.Is(err, checkpoint.ErrInconsistent) || !strings.Contains(err.Error(), "submit a new checkpoint") {
		t.Errorf("Cosign() = %v", err)
	}
}

// TestWitnessIsAskedTwiceAtMost shows that a witness whose size changes each time is not asked for ever.
func TestWitnessIsAskedTwiceAtMost(t *testing.T) {
	m, k := logOf(t, 7), newKey(t, origin)
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		line, _, _ := strings.Cut(string(body), "\n")
		asked = append(asked, line)
		rw.Header().Set("Content-Type", "text/x.tlog.size")
		rw.WriteHeader(http.StatusConflict)
		io.WriteString(rw, []string{"3\n", "5\n"}[len(asked)-1])
	}))
	defer server.Close()
	_, err := newWitness(t, server.URL, witnesstest.New(t).Key).Cosign(t.Context(), sign(t, m, k), m)
	if err == nil || !strings.Contains(err.Error(), "meanwhile") || !slices.Equal(asked, []string{"old 0", "old 3"}) {
		t.Errorf("Cosign() = %v after %q", err, asked)
	}
}

// TestNewWitness shows which URLs a witness may have.
func TestNewWitness(t *testing.T) {
	key := witnessVerifier(t, witnesstest.New(t).Key)
	for url, ok := range map[string]bool{ // each stands alone
		"https://witness.example/prefix": true, "http://127.0.0.1:1": true, "http://localhost/": true,
		"http://witness.example": false, "ftp://127.0.0.1": false, "witness.example": false, "": false, "https://": false,
		"https://user:pass@witness.example": false, "https://witness.example/?a=b": false, "https://witness.example/#a": false,
	} {
		if _, err := checkpoint.NewWitness(url, key); (err == nil) != ok {
			t.Errorf("NewWitness(%q) = %v, want ok %t", url, err, ok)
		}
	}
}
