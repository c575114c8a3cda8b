package checkpoint_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/test/check"
	"pgfsm/traces"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/checkpoint/witnesstest"
)

// TestProof shows that proofs of runs of every length pass through their file form and are verified.
func TestProof(t *testing.T) {
	k, w := newKey(t, origin), witnesstest.New(t)
	w.Trust(t, k.text)
	keys := checkpoint.Keys{Log: []note.Verifier{k.verifier}, Witnesses: []note.Verifier{witnessVerifier(t, w.Key)}}
	m := logOf(t, 5)
	done, waits := stored(t, "document-fetched"), stored(t, "policy-holds")
	delivered := ended(t, m, stored(t, "ticket-fetched"), 0)
	delivered.write(events(t, map[string]any{"type": "outcome.delivered", "how": "reply"}))
	for _, tt := range []struct {
		name  string
		run   *writer
		trace *traces.Trace
		ended bool
	}{
		{"ended", ended(t, m, done, 10), done, true},
		{"large-events", ended(t, m, done, 5000), done, true},
		{"more-than-one-line-of-the-library", ended(t, m, done, 200_000), done, true},
		{"entries-after-the-end", delivered, stored(t, "ticket-fetched"), true},
		{"held", held(t, m, waits), waits, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			signed := cosign(t, w, sign(t, m, k), m)
			p := tt.run.prove(signed)
			again, err := checkpoint.ParseProof(p.Marshal())
			check.NoError(t, err)
			if diff := cmp.Diff(p, again); diff != "" {
				t.Fatalf("another proof was read (-written +read):\n%s", diff)
			}
			got, err := again.Verify(tt.trace, keys)
			check.NoError(t, err)
			if got.Run != tt.trace.Header.RunID || got.Ended != tt.ended || got.Index != tt.run.index || got.Entries != len(tt.run.entries) ||
				got.Size != m.size() || len(got.Signed) != 1 || len(got.Cosigned) != 1 {
				t.Errorf("Verify() = %+v", got)
			}
			for name, keys := range map[string]checkpoint.Keys{"none": {}, "of-a-witness-only": {Witnesses: keys.Witnesses},
				"of-another-log": {Log: []note.Verifier{newKey(t, origin).verifier}}} {
				if got, err := again.Verify(tt.trace, keys); err == nil {
					t.Errorf("Verify() with keys %s = %+v", name, got)
				}
			}
			if got, err := again.Verify(stored(t, "policy-denies"), keys); err == nil {
				t.Errorf("Verify() of another trace = %+v", got)
			}
		})
	}
}

// TestEveryChangedByteOfAProofIsFound covers all bytes of a proof with its checkpoint.
func TestEveryChangedByteOfAProofIsFound(t *testing.T) {
	k, w := newKey(t, origin), witnesstest.New(t)
	w.Trust(t, k.text)
	m := logOf(t, 5)
	trace := stored(t, "document-fetched")
	run := ended(t, m, trace, 4100)
	m.grow(t, 3, "later")
	text := run.prove(cosign(t, w, sign(t, m, k), m)).Marshal()
	keys := checkpoint.Keys{Log: []note.Verifier{k.verifier}, Witnesses: []note.Verifier{witnessVerifier(t, w.Key)}}
	verify := func(text []byte) error {
		p, err := checkpoint.ParseProof(text)
		if err == nil {
			_, err = p.Verify(trace, keys)
		}
		return err
	}
	check.NoError(t, verify(text))
	for i := range text {
		changed := bytes.Clone(text)
		changed[i] ^= 1 << (i % 8)
		if verify(changed) == nil {
			t.Errorf("byte %d, bit %d: the proof was verified", i, i%8)
		}
	}
	for _, changed := range [][]byte{text[:len(text)-1], append(bytes.Clone(text), '\n'), bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")), nil} {
		if verify(changed) == nil {
			t.Errorf("a proof of %d bytes was verified", len(changed))
		}
	}
}

// TestProofsThatAreRefused shows what an author of proofs cannot do, whose entries are really in the log.
func TestProofsThatAreRefused(t *testing.T) {
	k := newKey(t, origin)
	keys := checkpoint.Keys{Log: []note.Verifier{k.verifier}}
	trace, waits := stored(t, "document-fetched"), stored(t, "policy-holds")
	for _, tt := range []struct {
		name  string
		trace *traces.Trace
		do    func(t *testing.T, w *writer) // to a proof that is right
		err   string
	}{
		{"first-entry-missing", trace, func(_ *testing.T, w *writer) { w.entries = w.entries[1:] }, "number 1"},
		{"entry-missing-between", trace, func(_ *testing.T, w *writer) { w.entries = append(w.entries[:1:1], w.entries[2]) }, "number 2"},
		{"entries-swapped", trace, func(_ *testing.T, w *writer) { w.entries[0], w.entries[1] = w.entries[1], w.entries[0] }, "number 1"},
		{"last-entry-missing", trace, func(_ *testing.T, w *writer) { w.entries = w.entries[:2] }, "is not entry"},
		{"other-entry-before", trace, func(t *testing.T, w *writer) {
			w.entries[1].Header = bytes.Replace(w.entries[1].Header, []byte("proxy.sent"), []byte("proxy.Sent"), 1)
		}, "its header says"},
		{"no-entries", trace, func(_ *testing.T, w *writer) { w.entries = nil }, "no entries"},
		{"ended-twice", trace, func(t *testing.T, w *writer) {
			w.write(events(t, map[string]any{"type": "run.ended", "head": trace.Head}))
		}, "recorded twice"},
		{"ended-without-a-head", waits, func(t *testing.T, w *writer) {
			w.write(events(t, map[string]any{"type": "run.ended"}))
		}, "without a head"},
		{"ended-otherwise", waits, func(t *testing.T, w *writer) {
			w.write(events(t, map[string]any{"type": "run.ended", "head": trace.Head}))
		}, "the log has the head"},
		{"held-with-other-steps", waits, func(t *testing.T, w *writer) {
			w.write(events(t, map[string]any{"type": "approval.requested", "last": trace.Head}))
		}, "as the last step"},
		{"neither-held-nor-ended", waits, func(t *testing.T, w *writer) {
			*w = writer{t: t, log: w.log, run: w.run}
			w.write(events(t, map[string]any{"type": "request.created"}))
		}, "neither that the run ended"},
		{"held-run-with-the-trace-of-an-end", trace, func(t *testing.T, w *writer) {
			*w = writer{t: t, log: w.log, run: w.run}
			w.write(events(t, map[string]any{"type": "approval.requested", "last": trace.Steps[len(trace.Steps)-1].Hash}))
		}, "as held, and the trace ends at answered"},
		{"entry-of-no-run", trace, func(t *testing.T, w *writer) {
			*w = writer{t: t, log: w.log}
			w.write(events(t, map[string]any{"type": "run.ended", "head": trace.Head}))
		}, `of the run ""`},
		{"entries-of-two-runs", trace, func(t *testing.T, w *writer) {
			w.entries, w.run = w.entries[:2], waits.Header.RunID
			w.write(events(t, map[string]any{"type": "run.ended", "head": trace.Head}))
		}, "it is of the run"},
		{"unknown-member", trace, func(t *testing.T, w *writer) {
			header := bytes.Replace(w.entries[0].Header, []byte(`"body"`), []byte(`"b":1,"body"`), 1)
			w.entries, w.index = []checkpoint.Entry{{Header: header}}, w.log.add(t, header)
		}, "at /b"},
		{"not-canonical", trace, func(t *testing.T, w *writer) {
			header := bytes.Replace(w.entries[0].Header, []byte(`"body":`), []byte(`"body": `), 1)
			w.entries, w.index = []checkpoint.Entry{{Header: header}}, w.log.add(t, header)
		}, "canonical form"},
		{"another-body", trace, func(t *testing.T, w *writer) {
			w.entries[1].Body = bytes.Replace(w.entries[1].Body, []byte("local:alice"), []byte("local:bobby"), 1)
		}, "digest in its header"},
		{"body-missing", trace, func(t *testing.T, w *writer) { w.entries[1].Body = nil }, "digest in its header"},
		{"other-types-than-the-header", trace, func(t *testing.T, w *writer) {
			body := w.entries[2].Body
			w.entries = w.entries[:2]
			w.append(body, fmt.Sprintf(`"class":"run","n":2,"prev":%q,"types":["tool.result","proxy.sent"]}`, tlog.RecordHash(w.entries[1].Header)))
		}, "its header says"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := logOf(t, 5)
			w := held(t, m, waits)
			if tt.trace == trace {
				w = ended(t, m, trace, 0)
			}
			tt.do(t, w)
			signed := sign(t, m, k)
			if p, err := checkpoint.Prove(signed, m, w.index, w.entries); err == nil {
				if _, err := p.Verify(tt.trace, keys); err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("Verify() = %v, want %q", err, tt.err)
				}
			} else if !strings.Contains(err.Error(), tt.err) {
				t.Errorf("Prove() = %v, want %q", err, tt.err)
			}
			hashes, err := tlog.ProveRecord(m.size(), w.index, m)
			check.NoError(t, err)
			p := &checkpoint.Proof{Signed: signed, Index: w.index, Hashes: hashes, Entries: w.entries} // by a liar
			if got, err := p.Verify(tt.trace, keys); err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("Verify() = %v, %v; want %q", got, err, tt.err)
			}
		})
	}
}

// FuzzParseProof shows that what is read is written again byte for byte, and that nothing is verified without a key.
func FuzzParseProof(f *testing.F) {
	k, m := newKey(f, origin), logOf(f, 5)
	trace, waits := stored(f, "document-fetched"), stored(f, "policy-holds")
	runs := []*writer{ended(f, m, trace, 0), ended(f, m, trace, 4200), held(f, m, waits)}
	for _, w := range runs {
		f.Add(w.prove(sign(f, m, k)).Marshal())
	}
	f.Add([]byte("c2sp.org/tlog-proof@v1\nindex 0\n\n" + string(sign(f, m, k))))
	f.Add(fmt.Appendf(nil, "c2sp.org/tlog-proof@v1\nextra %s\nindex 0\n\n", base64.StdEncoding.EncodeToString([]byte("{}\n"))))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := checkpoint.ParseProof(text)
		if err != nil {
			return
		}
		if again := p.Marshal(); !bytes.Equal(again, text) {
			t.Fatalf("written again:\n%q, was\n%q", again, text)
		}
		if got, err := p.Verify(trace, checkpoint.Keys{}); err == nil {
			t.Fatalf("verified without a key: %+v", got)
		}
		p.Verify(trace, checkpoint.Keys{Log: []note.Verifier{k.verifier}})
	})
}
