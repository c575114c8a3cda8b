package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy/canonical"
	"pgfsm/traces/ledger"
)

// chainedEvents are events of one run, of these seqs, each behind the one before.
func chainedEvents(run string, from, to int64) (all []ledger.Event) {
	for seq := from; seq <= to; seq++ {
		e := ledger.Event{
			Seq: seq, RunID: run, Type: ledger.DecisionMade, At: "2026-01-01T00:00:00Z", By: fmt.Sprintf("ann \"%d\"\n", seq),
			Payload: fmt.Appendf(nil, `{"n":%d}`, seq), Hash: canonical.Digest(fmt.Sprint("hash ", seq)),
			Prev: canonical.Digest(fmt.Sprint("hash ", seq-1)), RunPrev: canonical.Digest(fmt.Sprint("hash ", seq-1)),
		}
		if seq == from {
			e.RunPrev = "an older one"
		}
		all = append(all, e)
	}
	return all
}

// chainedSteps are steps of one run, as chainedEvents.
func chainedSteps(run string, from, to int) (all []ledger.Step) {
	for seq := from; seq <= to; seq++ {
		all = append(all, ledger.Step{
			RunID: run, Seq: seq, At: "2026-01-01T00:00:00Z", From: "a", Trigger: "b", To: "ž", Facts: fmt.Sprintf(`{"n":%d}`, seq), Command: "null",
			Event: `{"x":[1,"}"]}`, Prev: canonical.Digest(fmt.Sprint("hash ", seq-1)), Hash: canonical.Digest(fmt.Sprint("hash ", seq)),
		})
	}
	return all
}

func listed[T any](t *testing.T, rows iter.Seq2[T, error]) (all []T) {
	t.Helper()
	for v, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// sizes says how many stand before the last in each row of a table.
func sizes(t *testing.T, s *Store, table string) string {
	t.Helper()
	rows, err := s.writer.rows("SELECT coalesce(group_concat(earlier, ' ' ORDER BY seq), '') FROM " + table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.close()
	if _, err := rows.next(); err != nil {
		t.Fatal(err)
	}
	return rows.text()
}

// TestEventsOfOneRunStandInOneRow, and whatever their rows are, they are read as they were added.
func TestEventsOfOneRunStandInOneRow(t *testing.T) {
	ref := ledger.Ref("sha256:1")
	change := func(i int, change func(*ledger.Event)) func([]ledger.Event) {
		return func(all []ledger.Event) { change(&all[i]) }
	}
	for _, tc := range []struct {
		name   string
		change func([]ledger.Event)
		sizes  string
	}{
		{"all-of-one-run", func([]ledger.Event) {}, "4"},
		{"a-reference-ends-a-row", change(1, func(e *ledger.Event) { e.Payload = []byte(ref) }), "1 2"},
		{"the-last-is-a-reference", change(4, func(e *ledger.Event) { e.Payload = []byte(ref) }), "4"},
		{"a-prune-ends-a-row", change(2, func(e *ledger.Event) { e.Type = ledger.LedgerPruned }), "2 1"},
		{"another-run", change(2, func(e *ledger.Event) { e.RunID = "b" }), "1 0 1"},
		{"about-no-run", func(all []ledger.Event) {
			for i := range all {
				all[i].RunID = ""
			}
		}, "0 0 0 0 0"},
		{"a-gap", change(4, func(e *ledger.Event) { e.Seq = 9 }), "3 0"},
		{"not-chained", change(3, func(e *ledger.Event) { e.Prev = "another" }), "2 1"},
		{"not-chained-in-its-run", change(3, func(e *ledger.Event) { e.RunPrev = "another" }), "2 1"},
		{"a-text-that-json-does-not-hold", change(0, func(e *ledger.Event) { e.By = "\xff" }), "0 3"},
		{"a-payload-that-is-not-json", change(0, func(e *ledger.Event) { e.Payload = []byte("so") }), "0 3"},
		{"a-payload-with-blanks-around-it", change(0, func(e *ledger.Event) { e.Payload = []byte(" {}") }), "0 3"},
		{"no-payload", change(0, func(e *ledger.Event) { e.Payload = []byte("") }), "0 3"},
		{"too-long-for-one-row", func(all []ledger.Event) {
			for i := range all {
				all[i].Payload = []byte(`{"x":"` + strings.Repeat("0123456789", maxBefore/25) + `"}`)
			}
		}, "2 1"},
		{"so-long-that-it-just-fits", func(all []ledger.Event) { lengthen(&all[0], all, maxBefore-1) }, "4"},
		{"so-long-that-it-just-does-not-fit", func(all []ledger.Event) { lengthen(&all[0], all, maxBefore) }, "3 0"},
		{"one-that-never-fits", change(0, func(e *ledger.Event) { e.By = strings.Repeat("x", maxBefore) }), "0 3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, all := fresh(t), chainedEvents("a", 3, 7)
			tc.change(all)
			if err := s.Update(context.Background(), func(tx ledger.Tx) error { return tx.AddEvents(all) }); err != nil {
				t.Fatal(err)
			}
			if got := sizes(t, s, "events"); got != tc.sizes {
				t.Errorf("before the last events of the rows stand %s, want %s", got, tc.sizes)
			}
			readBack(t, s, all)
		})
	}
}

// lengthen makes an event so long that what stands before the last has so many bytes, without its closing bracket.
func lengthen(e *ledger.Event, all []ledger.Event, size int) {
	n := 0
	for i := range all[:len(all)-1] {
		n += 1 + len(spellEvent(nil, &all[i], i == 0))
	}
	e.Payload = []byte(`{"x":"` + strings.Repeat("x", size-n+len(e.Payload)-len(`{"x":""}`)) + `"}`)
}

// readBack compares all ways to read events with what was added.
func readBack(t *testing.T, s *Store, all []ledger.Event) {
	t.Helper()
	err := s.View(context.Background(), func(r ledger.Reader) error {
		for after := all[0].Seq - 1; after <= all[len(all)-1].Seq; after++ {
			var want []ledger.Event
			for _, e := range all {
				if e.Seq > after {
					want = append(want, e)
				}
			}
			if diff := cmp.Diff(want, listed(t, r.Events(after))); diff != "" {
				t.Errorf("Events(%d) (-want +got):\n%s", after, diff)
			}
		}
		for _, run := range []string{"", "a", "b"} {
			want := slices.DeleteFunc(slices.Clone(all), func(e ledger.Event) bool { return e.RunID != run })
			if diff := cmp.Diff(append([]ledger.Event(nil), want...), listed(t, r.EventsOf(run))); diff != "" {
				t.Errorf("EventsOf(%q) (-want +got):\n%s", run, diff)
			}
		}
		for e := range r.Events(0) { // left within a row
			if e.Seq == all[1].Seq {
				break
			}
		}
		last, err := r.Last()
		if diff := cmp.Diff(all[len(all)-1], last); diff != "" || err != nil {
			t.Errorf("Last, %v (-want +got):\n%s", err, diff)
		}
		pruned, err := r.LastPrune()
		if i := slices.IndexFunc(all, func(e ledger.Event) bool { return e.Type == ledger.LedgerPruned }); i >= 0 {
			if diff := cmp.Diff(all[i], pruned); diff != "" || err != nil {
				t.Errorf("LastPrune, %v (-want +got):\n%s", err, diff)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestStepsOfOneRunStandInOneRow(t *testing.T) {
	ref := ledger.Ref("sha256:1")
	change := func(i int, change func(*ledger.Step)) func([]ledger.Step) {
		return func(all []ledger.Step) { change(&all[i]) }
	}
	for _, tc := range []struct {
		name   string
		change func([]ledger.Step)
		sizes  string // of the rows in the order of their seqs
	}{
		{"all-of-one-run", func([]ledger.Step) {}, "4"},
		{"facts-elsewhere", change(1, func(s *ledger.Step) { s.Facts = ref }), "1 2"},
		{"a-command-elsewhere", change(1, func(s *ledger.Step) { s.Command = ref }), "1 2"},
		{"an-event-elsewhere", change(1, func(s *ledger.Step) { s.Event = ref }), "1 2"},
		{"another-run", change(4, func(s *ledger.Step) { s.RunID = "b" }), "3 0"},
		{"a-gap", change(4, func(s *ledger.Step) { s.Seq = 9 }), "3 0"},
		{"not-chained", change(3, func(s *ledger.Step) { s.Prev = "another" }), "2 1"},
		{"a-text-that-json-does-not-hold", change(0, func(s *ledger.Step) { s.From = "\xff" }), "0 3"},
		{"no-facts", change(0, func(s *ledger.Step) { s.Facts = "" }), "0 3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, all := fresh(t), chainedSteps("a", 0, 4)
			tc.change(all)
			if err := s.Update(context.Background(), func(tx ledger.Tx) error { return tx.AddSteps(all) }); err != nil {
				t.Fatal(err)
			}
			if got := sizes(t, s, "steps"); got != tc.sizes {
				t.Errorf("before the last steps of the rows stand %s, want %s", got, tc.sizes)
			}
			err := s.View(context.Background(), func(r ledger.Reader) error {
				if diff := cmp.Diff(all, append(listed(t, r.Steps("a")), listed(t, r.Steps("b"))...)); diff != "" {
					t.Errorf("Steps (-want +got):\n%s", diff)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGroupsAreReadStrictly: what stands before the last of a row is what a ledger writes, or the row is not read.
func TestGroupsAreReadStrictly(t *testing.T) {
	s := fresh(t)
	err := s.Update(context.Background(), func(tx ledger.Tx) error {
		return errors.Join(tx.AddEvents(chainedEvents("a", 3, 6)), tx.AddSteps(chainedSteps("a", 3, 6)))
	})
	if err != nil {
		t.Fatal(err)
	}
	db := raw(t, s.path)
	run(t, db, "DROP TRIGGER events_refuse_update", "DROP TRIGGER steps_refuse_update",
		"CREATE TABLE kept AS SELECT 'events' AS name, before, earlier FROM events UNION ALL SELECT 'steps', before, earlier FROM steps")
	for _, tc := range []struct{ name, table, change string }{
		{"half-a-list", "events", "before = substr(before, 1, length(before) - 1)"},
		{"something-behind-it", "events", "before = before || ' '"},
		{"no-list", "events", "before = before -> '$[0]'"},
		{"an-empty-list", "events", "before = '[]'"},
		{"an-empty-list-of-none", "events", "before = '[]', earlier = 0"},
		{"none-of-some", "events", "before = ''"},
		{"some-of-none", "events", "earlier = 0"},
		{"one-less", "events", "before = json_remove(before, '$[0]')"},
		{"one-more", "events", "before = json_insert(before, '$[#]', json(before -> '$[2]'))"},
		{"a-wrong-number", "events", "earlier = earlier + 1"},
		{"a-negative-number", "events", "earlier = -earlier"},
		{"a-member-missing", "events", "before = json_remove(before, '$[1].by')"},
		{"a-member-too-many", "events", "before = json_insert(before, '$[1].more', 1)"},
		{"a-member-that-follows", "events", "before = json_insert(before, '$[1].prev', 'hash 3')"},
		{"a-member-twice", "events", `before = replace(before, '"type":', '"type":"x","type":')`},
		{"a-member-of-another-type", "events", "before = json_set(before, '$[1].by', 1)"},
		{"a-member-that-is-null", "events", "before = json_set(before, '$[1].by', null)"},
		{"a-member-in-capitals", "events", `before = replace(before, '"by":', '"BY":')`},
		{"members-in-another-order", "events", "before = json_insert(json_remove(before, '$[1].at'), '$[1].at', before ->> '$[1].at')"},
		{"blanks", "events", `before = replace(before, ',', ', ')`},
		{"a-text-spelled-otherwise", "events", `before = replace(before, 'ann', '\u0061nn')`},
		{"text-that-is-not-utf-8", "events", `before = replace(before, 'ann', CAST(x'ff' AS TEXT))`},
		{"a-payload-that-is-not-json", "events", `before = replace(before, '{"n":4}', '{"n":}')`},
		{"a-payload-with-a-name-twice", "events", `before = replace(before, '{"n":4}', '{"n":4,"n":4}')`},
		{"too-long", "events", fmt.Sprintf(`before = replace(before, '{"n":4}', '{"n":"' || hex(zeroblob(%d)) || '"}')`, maxBefore/2)},
		{"steps", "steps", "before = json_remove(before, '$[0].prev')"},
		{"steps-that-are-empty", "steps", "before = '[]', earlier = 0"},
		{"steps-in-another-order", "steps", "before = json_insert(json_remove(before, '$[1].at'), '$[1].at', before ->> '$[1].at')"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			was := sizes(t, s, tc.table)
			run(t, db, "UPDATE "+tc.table+" SET "+tc.change)
			defer run(t, db, "UPDATE "+tc.table+" SET (before, earlier) = (SELECT before, earlier FROM kept WHERE name = '"+tc.table+"')")
			key := map[string]string{"events": "6", "steps": "a/6"}[tc.table]
			err := s.View(context.Background(), func(r ledger.Reader) error {
				if tc.table == "steps" {
					for range r.Steps("a") {
					}
					return first(r.Steps("a"))
				}
				_, err := r.Last()
				for _, rows := range []iter.Seq2[ledger.Event, error]{r.Events(0), r.EventsOf("a")} {
					if also := first(rows); also == nil || err == nil || also.Error() != err.Error() {
						t.Errorf("it is read as %v, and then as %v", err, also)
					}
				}
				return err
			})
			var fault *ledger.Fault
			if !errors.Is(err, ErrNotLedger) || !errors.As(err, &fault) || fault.Table != tc.table || fault.Key != key || was != "3" {
				t.Errorf("read: %v, want a fault of %s %s", err, tc.table, key)
			}
		})
	}
}

// first returns the error with which a sequence begins.
func first[T any](rows iter.Seq2[T, error]) error {
	for _, err := range rows {
		return err
	}
	return nil
}

// TestOverlapsAreRefused: no row begins before the end of another.
func TestOverlapsAreRefused(t *testing.T) {
	s := fresh(t)
	add := func(events []ledger.Event, steps []ledger.Step) error {
		return s.Update(context.Background(), func(tx ledger.Tx) error { return errors.Join(tx.AddEvents(events), tx.AddSteps(steps)) })
	}
	if err := add(chainedEvents("a", 3, 6), chainedSteps("a", 0, 3)); err != nil {
		t.Fatal(err)
	}
	if err := add(chainedEvents("a", 6, 9), nil); err == nil || !strings.Contains(err.Error(), "events are append-only") {
		t.Errorf("events that are there in part: %v", err)
	}
	if err := add(nil, chainedSteps("a", 3, 6)); err == nil || !strings.Contains(err.Error(), "steps are append-only") {
		t.Errorf("steps that are there in part: %v", err)
	}
	for _, earlier := range []string{"0", "-100", "3"} {
		_, err := raw(t, s.path).Exec("INSERT OR REPLACE INTO events SELECT seq, run_id, type, at, by, payload, prev, run_prev, hash, " + earlier +
			", before FROM events")
		if err == nil || !strings.Contains(err.Error(), "events are append-only") {
			t.Errorf("a row with %s before it is replaced: %v", earlier, err)
		}
	}
	if err := add(chainedEvents("a", 7, 9), chainedSteps("a", 4, 6)); err != nil {
		t.Errorf("what comes behind it: %v", err)
	}
	if err := add(nil, chainedSteps("b", 0, 6)); err != nil {
		t.Errorf("another run: %v", err)
	}
}

// TestPruneDoesNotPartARow: rather than removing too much or too little, it removes nothing.
func TestPruneDoesNotPartARow(t *testing.T) {
	s := fresh(t)
	all := slices.Concat(chainedEvents("a", 3, 6), chainedEvents("b", 7, 9))
	if err := s.Update(context.Background(), func(tx ledger.Tx) error { return tx.AddEvents(all) }); err != nil {
		t.Fatal(err)
	}
	prune := func(upTo int64) error {
		return s.Update(context.Background(), func(tx ledger.Tx) error { return tx.Prune(upTo, nil) })
	}
	for _, upTo := range []int64{3, 5, 7, 8} {
		refused(t, prune(upTo), errRowParted, s.path, fmt.Sprint("behind ", upTo))
	}
	readBack(t, s, all)
	for _, upTo := range []int64{2, 6} {
		if err := prune(upTo); err != nil {
			t.Errorf("Prune(%d) = %v", upTo, err)
		}
	}
	readBack(t, s, all[4:])
	if err := prune(9); err != nil || sizes(t, s, "events") != "" {
		t.Errorf("Prune of all = %v, and %s are left", err, sizes(t, s, "events"))
	}
}
