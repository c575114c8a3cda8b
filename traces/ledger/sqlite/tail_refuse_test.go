package sqlite

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy/canonical"
	"pgfsm/traces/ledger"
)

// seen lists rows, or says why it cannot.
func seen[T any](t *testing.T, rows iter.Seq2[T, error]) (all []T) {
	t.Helper()
	for v, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// everything is all that a ledger holds, in the order of its tables.
func everything(t *testing.T, s *Store) (all []any) {
	t.Helper()
	err := s.View(t.Context(), func(r ledger.Reader) error {
		all = append(all, seen(t, r.Events(0)), seen(t, r.Requests(ledger.Filter{})), seen(t, r.Decisions(0)), seen(t, r.Blobs()), seen(t, r.Tokens()))
		for _, run := range seen(t, r.Runs()) {
			all = append(all, seen(t, r.Steps(run)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A whim is one random operation of a transaction. It returns what it read.
type whim func(ledger.Tx) (any, error)

// whims returns something that could be done: mostly what calls do, and often what a ledger refuses.
func whims(random *rand.Rand, runs int) whim {
	run := func() string { return fmt.Sprint("run-", 10+random.IntN(runs)) }
	digest := canonical.Digest([]string{"d", "e", "f"}[random.IntN(3)])
	request := ledger.Request{RunID: run(), Kind: "agent", Actor: "ann", Steps: random.IntN(8), Seq: int64(random.IntN(3)), Code: fmt.Sprint(random.IntN(9))}
	if random.IntN(3) == 0 {
		request.Ended = "e"
	}
	switch random.IntN(24) {
	case 0:
		request.Binding = digest
	case 1:
		request.Steps = -1
	case 2:
		request.Approvers = []string{"\xff"}
	case 3:
		request.Approvers = []string{"security"}
	}
	offset := max(0, random.IntN(12)-9) - max(0, random.IntN(12)-10)
	steps := make([]ledger.Step, random.IntN(4))
	for i, seq := 0, random.IntN(7)-1; i < len(steps); i++ {
		steps[i] = ledger.Step{RunID: request.RunID, Seq: seq, Facts: "{}", Command: "null", Event: "null"}
		if seq++; random.IntN(8) == 0 {
			seq = random.IntN(5)
		}
		if random.IntN(8) == 0 {
			steps[i].RunID = run()
		}
	}
	return []whim{
		func(tx ledger.Tx) (any, error) { return nil, tx.AddSteps(steps) },
		func(tx ledger.Tx) (any, error) { return nil, errors.Join(tx.AddSteps(steps), tx.PutRequest(request)) },
		func(tx ledger.Tx) (any, error) { return nil, tx.AddRequest(request) },
		func(tx ledger.Tx) (any, error) { return nil, tx.PutRequest(request) },
		func(tx ledger.Tx) (any, error) { return nil, errors.Join(tx.AddSteps(steps), tx.AddRequest(request)) },
		func(tx ledger.Tx) (any, error) { return nil, tx.PutBlob(ledger.Blob{Digest: digest, Kind: "value"}) },
		func(tx ledger.Tx) (any, error) {
			end, err := tx.End()
			if err != nil && !errors.Is(err, ledger.ErrNotFound) {
				return nil, err
			}
			e := ledger.Event{Seq: end.Seq + 1 + int64(offset), RunID: request.RunID, Payload: []byte("{}")}
			return end, tx.AddEvents([]ledger.Event{e})
		},
		func(tx ledger.Tx) (any, error) {
			end, err := tx.End()
			if err != nil {
				return end, err
			}
			return end, tx.AddDecision(ledger.Decision{Seq: end.Seq + int64(offset)})
		},
		func(tx ledger.Tx) (any, error) { return orNone(tx.Request(request.RunID)) },
		func(tx ledger.Tx) (any, error) { return orNone(tx.Reached(request.RunID)) },
		func(tx ledger.Tx) (any, error) { return orNone(tx.Waiting(ledger.Look{Actor: "ann"})) },
		func(tx ledger.Tx) (any, error) { return orNone(tx.Token("t")) },
		func(tx ledger.Tx) (any, error) { return nil, tx.PutToken(ledger.Token{ID: "t", Name: string(digest)}) },
	}[min(random.IntN(18), random.IntN(13))]
}

// orNone is what was asked for; that there is none is no error.
func orNone[T any](v T, err error) (any, error) {
	if errors.Is(err, ledger.ErrNotFound) {
		return "none", nil
	}
	return v, err
}

// TestTailRefusesWhatTheFileRefuses does the same with and without a tail: what is seen, what is refused, and what is there then is the same.
func TestTailRefusesWhatTheFileRefuses(t *testing.T) {
	seeds := uint64(1)
	if os.Getenv("PGFSM_SOAK") != "" {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed-", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			folder := t.TempDir()
			with, without := keeping(t, filepath.Join(folder, "with.db")), keeping(t, filepath.Join(folder, "without.db"))
			without.tail.wanted = false
			refused := 0
			for i := range 150 {
				var all []whim
				for range 1 + random.IntN(3) {
					all = append(all, whims(random, 3+i/10))
				}
				evented, breaks := random.IntN(8) > 0, random.IntN(20) == 0
				does := func(s *Store) (saw []any, err error) {
					err = s.Update(t.Context(), func(tx ledger.Tx) error {
						for _, do := range all {
							v, err := do(tx)
							if saw = append(saw, v); err != nil {
								return err
							}
						}
						if breaks {
							return errors.New("it breaks")
						}
						if evented {
							return next(tx, "a")
						}
						return nil
					})
					return saw, err
				}
				tries(with)
				got, gotErr := does(with)
				want, wantErr := does(without)
				if (gotErr == nil) != (wantErr == nil) {
					t.Fatalf("commit %d: %v with a tail, and %v without", i, gotErr, wantErr)
				}
				if wantErr != nil {
					refused++
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("commit %d sees (-without +with):\n%s", i, diff)
				}
				if random.IntN(40) == 0 {
					leaves(t, with)
				}
				if random.IntN(20) > 0 {
					continue
				}
				if diff := cmp.Diff(everything(t, without), everything(t, with)); diff != "" {
					t.Fatalf("behind commit %d (-without +with):\n%s", i, diff)
				}
			}
			if diff := cmp.Diff(everything(t, without), everything(t, with)); diff != "" {
				t.Errorf("at the end (-without +with):\n%s", diff)
			}
			if kept := with.Stats().Kept; kept < 10 || refused < 10 {
				t.Errorf("%d commits were kept and %d refused: that tests little", kept, refused)
			}
		})
	}
}
