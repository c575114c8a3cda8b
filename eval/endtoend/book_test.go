package endtoend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func someCases(n int) (all []Case) {
	for i := range n {
		all = append(all, Case{ID: fmt.Sprintf("case-%d", i), Request: "r", Tools: []string{}})
	}
	return all
}

func headerOf(cases []Case) Header {
	return Header{Format: Format, Version: "v", Model: "m", Prompt: "p", Suite: DigestOf(cases), Bundle: "b", Machine: "x"}
}

// counting is an agent that answers everything and remembers what it was asked.
type counting struct {
	mu    sync.Mutex
	asked []string
}

func (a *counting) agent(_ context.Context, c *Case) Side {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, c.ID)
	return Side{Outcome: Answered, Calls: []Call{}}
}

// TestResumeGoesOnWhereItWasKilled: an evaluation that ends anywhere, in the middle of a line too, loses one case at most,
// and comes out as one that was not interrupted.
func TestResumeGoesOnWhereItWasKilled(t *testing.T) {
	cases := someCases(7)
	whole := wholeRuns(t, cases)
	lines := strings.SplitAfter(strings.TrimSuffix(whole, "\n"), "\n")
	for cut := len(lines[0]); cut <= len(whole); cut += 37 {
		dir := t.TempDir()
		path := filepath.Join(dir, "20260102T120000Z"+runsSuffix)
		torn := strings.Repeat("x", cut%2*10_000) // longer than all that will be written, or nothing
		if err := os.WriteFile(path, []byte(whole[:cut]+torn), 0o600); err != nil {
			t.Fatal(err)
		}
		had := strings.Count(whole[:cut], "\n") - 1
		var safe, bare counting
		book, err := Resume(dir, headerOf(cases))
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		runs, err := book.Evaluate(t.Context(), cases, 1, safe.agent, bare.agent, nil)
		if err != nil || len(runs) != len(cases) || len(safe.asked) != len(cases)-had || len(bare.asked) != len(cases)-had {
			t.Fatalf("cut at %d: %d runs, %v; asked %q", cut, len(runs), err, safe.asked)
		}
		if err := book.Close(); err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); got != whole {
			t.Fatalf("cut at %d (-want +got):\n%s", cut, cmp.Diff(whole, got))
		}
	}
}

func wholeRuns(t *testing.T, cases []Case) string {
	t.Helper()
	book, err := Begin(t.TempDir(), headerOf(cases), noon)
	if err != nil {
		t.Fatal(err)
	}
	var a counting
	if _, err := book.Evaluate(t.Context(), cases, 1, a.agent, a.agent, nil); err != nil {
		t.Fatal(err)
	}
	_, runs, _ := book.Files()
	if err := book.Close(); err != nil {
		t.Fatal(err)
	}
	return read(t, runs)
}

func read(t *testing.T, path string) string {
	t.Helper()
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}

func TestResumeRefuses(t *testing.T) {
	cases := someCases(2)
	whole := wholeRuns(t, cases)
	changed := func(change func(*Header)) Header {
		h := headerOf(cases)
		change(&h)
		return h
	}
	for _, tt := range []struct {
		name, file string
		header     Header
		want       string
	}{
		{"other-cases", whole, changed(func(h *Header) { h.Suite = "other" }), "other cases"},
		{"another-bundle", whole, changed(func(h *Header) { h.Bundle = "other" }), "another bundle"},
		{"another-model", whole, changed(func(h *Header) { h.Model = "other" }), "another model"},
		{"a-scripted-model", whole, changed(func(h *Header) { h.Scripted = true }), "another model"},
		{"other-prompts", whole, changed(func(h *Header) { h.Prompt = "other" }), "other prompts"},
		{"another-machine", whole, changed(func(h *Header) { h.Machine = "other" }), "another machine"},
		{"another-version", whole, changed(func(h *Header) { h.Version = "other" }), "another version"},
		{"another-format", strings.Replace(whole, Format, "other", 1), headerOf(cases), "another format"},
		{"nothing-in-it", "", headerOf(cases), "is empty"},
		{"not-one-line", whole[:20], headerOf(cases), "is empty"},
		{"a-line-that-is-none", whole[:strings.IndexByte(whole, '\n')+1] + "x\n", headerOf(cases), "_runs.jsonl:2: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "20260102T120000Z"+runsSuffix)
			if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
			book, err := Resume(dir, tt.header)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Resume() = %v, %v, want an error with %q", book, err, tt.want)
			}
			if got := read(t, path); got != tt.file {
				t.Errorf("the refused file was changed (-want +got):\n%s", cmp.Diff(tt.file, got))
			}
		})
	}
}

func TestResumeTakesTheNewestUnfinished(t *testing.T) {
	cases := someCases(1)
	whole := wholeRuns(t, cases)
	dir := filepath.Join(t.TempDir(), "odd [name]*")
	if _, err := Resume(dir, headerOf(cases)); !errors.Is(err, ErrNothing) {
		t.Errorf("Resume() of no folder = %v, want %v", err, ErrNothing)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{ // in any order
		"20260101T120000Z_runs.jsonl": whole, "20260102T120000Z_runs.jsonl": whole, "20260102T120000Z-02_runs.jsonl": whole,
		"20260103T120000Z_runs.jsonl": whole, "20260103T120000Z_metrics.json": "{}",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	book, err := Resume(dir, headerOf(cases))
	if err != nil {
		t.Fatal(err)
	}
	if _, runs, _ := book.Files(); filepath.Base(runs) != "20260102T120000Z-02_runs.jsonl" {
		t.Errorf("it goes on with %s, want the second of 2 January", runs)
	}
	if _, err := Resume(dir, headerOf(cases)); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second Resume() = %v, want that it is being written", err)
	}
	if err := book.Close(); err != nil {
		t.Error(err)
	}
}

func TestBeginTwiceInASecond(t *testing.T) {
	dir := t.TempDir()
	var stems []string
	for range 3 {
		book, err := Begin(dir, Header{}, noon)
		if err != nil {
			t.Fatal(err)
		}
		_, runs, _ := book.Files()
		stems = append(stems, strings.TrimSuffix(filepath.Base(runs), runsSuffix))
		if err := book.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]string{"20260102T120000Z", "20260102T120000Z-02", "20260102T120000Z-03"}, stems); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestCaseThatChangedIsRunAgain: only a run of exactly this case counts for it.
func TestCaseThatChangedIsRunAgain(t *testing.T) {
	cases := someCases(2)
	book := Book{Runs: []Run{{ID: "case-0", Case: cases[0].Digest()}, {ID: "case-1", Case: "other"}, {ID: "gone"}}}
	runs, left := book.remaining(cases)
	if len(runs) != 1 || runs[0].ID != "case-0" || len(left) != 1 || left[0].ID != "case-1" {
		t.Errorf("remaining() = %v, %v, want case-0 done and case-1 left", runs, left)
	}
}

func TestEvaluateStops(t *testing.T) {
	cases := someCases(20)
	t.Run("interrupted", func(t *testing.T) {
		book, err := Begin(t.TempDir(), headerOf(cases), noon)
		if err != nil {
			t.Fatal(err)
		}
		defer book.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		agent := func(_ context.Context, c *Case) Side {
			if c.ID == "case-5" {
				cancel()
			}
			return Side{}
		}
		runs, err := book.Evaluate(ctx, cases, 1, agent, agent, nil)
		if !errors.Is(err, context.Canceled) || len(runs) != 5 {
			t.Errorf("Evaluate() = %d runs, %v, want the 5 before the interruption", len(runs), err)
		}
	})
	t.Run("cannot-be-kept", func(t *testing.T) {
		book, err := Begin(t.TempDir(), headerOf(cases), noon)
		if err != nil {
			t.Fatal(err)
		}
		var a counting
		book.file.Close()
		runs, err := book.Evaluate(t.Context(), cases, 1, a.agent, a.agent, nil)
		if err == nil || len(runs) != 0 || len(a.asked) > 4 {
			t.Errorf("Evaluate() = %d runs, %v; asked %q, want an end at once", len(runs), err, a.asked)
		}
		book.lock.Close()
	})
}

func TestEvaluateInParallel(t *testing.T) {
	cases := someCases(50)
	book, err := Begin(t.TempDir(), headerOf(cases), noon)
	if err != nil {
		t.Fatal(err)
	}
	var safe, bare counting
	told := 0
	runs, err := book.Evaluate(t.Context(), cases, 8, safe.agent, bare.agent, func() { told++ })
	if err != nil || len(runs) != 50 || told != 50 || len(safe.asked) != 50 || len(bare.asked) != 50 {
		t.Errorf("Evaluate() = %d runs, %v; told %d times", len(runs), err, told)
	}
	m := book.Header.Sum("2026-01-02T12:00:01Z", cases, runs)
	if err := book.Finish(m); err != nil || !m.OK || m.Safe.Cases != 50 {
		t.Errorf("Finish() = %v of %+v", err, m)
	}
	if err := book.Close(); err != nil {
		t.Error(err)
	}
	metrics, lines, table := book.Files()
	if n := strings.Count(read(t, lines), "\n"); n != 51 {
		t.Errorf("%d lines, want a header and 50 runs", n)
	}
	if !strings.HasPrefix(read(t, metrics), "{\n  \"format\": \"pgfsm.e2e/v1\",\n") || !strings.HasPrefix(read(t, table), "# End to end, 2026-01-02T12:00:00Z") {
		t.Errorf("the files do not begin as they should:\n%.80s\n%.80s", read(t, metrics), read(t, table))
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(metrics), ".part*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
