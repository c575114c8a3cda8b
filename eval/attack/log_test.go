package attack

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/eval"
)

func mustLog(t *testing.T, path string, resume bool) *Log {
	t.Helper()
	l, err := OpenLog(path, resume)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // tests close it themselves where it matters
	return l
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestResume: a run that was interrupted goes on where it was, and result and log are the same bytes as without.
func TestResume(t *testing.T) {
	o := many(t, 50)
	o.Jobs = 1
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.jsonl")
	o.Log = mustLog(t, whole, false)
	want, log := bytesOf(t, mustRun(t, o)), mustRead(t, whole)

	path := filepath.Join(dir, "cases.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	o.Log = mustLog(t, path, false)
	o.Progress = func(done, _ int) {
		if done >= 2*batch { // half way
			cancel()
		}
	}
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("Run() = %v", err)
	}
	if err := o.Log.Close(); err != nil {
		t.Fatal(err)
	}
	half := mustRead(t, path)
	if n, all := bytes.Count(half, []byte("\n")), bytes.Count(log, []byte("\n")); n == 0 || n >= all {
		t.Fatalf("the interrupted run kept %d of %d lines", n, all)
	}
	for _, c := range []struct {
		name string
		text []byte
	}{
		{"interrupted", half},
		{"a-line-was-not-written-to-its-end", append(bytes.Clone(half), log[len(half):len(half)+40]...)},
		{"complete", log},
		{"nothing-there", nil},
		{"lines-of-other-cases-too", append(bytes.ReplaceAll(bytes.Clone(half), []byte(`"sha256:0`), []byte(`"sha256:1`)), half...)},
		{"another-shape", bytes.ReplaceAll(bytes.Clone(half), []byte(`"rows":[`), []byte(`"rows":[[9999,1],`))},
	} {
		t.Run(c.name, func(t *testing.T) {
			write(t, path, strings.ReplaceAll(string(c.text), "],]", "]]"))
			o.Log, o.Progress, o.Jobs = mustLog(t, path, true), nil, 4
			if got := bytesOf(t, mustRun(t, o)); !bytes.Equal(got, want) {
				t.Error("the result is another one")
			}
			if !bytes.Equal(mustRead(t, path), log) {
				t.Error("the log is another one")
			}
			if left, err := filepath.Glob(path + ".*"); err != nil || len(left) > 0 {
				t.Errorf("left over: %v, %v", left, err)
			}
		})
	}
}

// TestResumeBelievesOnlyWhatIsTheSame: what is in the log is taken, but only for the same inputs.
func TestResumeBelievesOnlyWhatIsTheSame(t *testing.T) {
	o := small(t, attackOn("a", call, ""))
	path := filepath.Join(t.TempDir(), "log.jsonl")
	o.Log = mustLog(t, path, false)
	honest := mustRun(t, o)
	forged := bytes.ReplaceAll(mustRead(t, path), []byte(`"calls":[{`), []byte(`"calls":[{"slip":"forged",`))
	for _, c := range []struct {
		name   string
		change func(*Options)
		taken  bool
	}{
		{"nothing-changed", func(*Options) {}, true},
		{"case-changed", func(o *Options) { write(t, o.Cases, attackOn("a", strings.Replace(call, "10", "11", 1), "")) }, false},
		{"request-changed", func(o *Options) {
			write(t, o.Cases, strings.Replace(attackOn("a", call, ""), `"request":"r"`, `"request":"q"`, 1))
		}, false},
		{"tools-changed", func(o *Options) { o.Tools = filepath.Join(filepath.Dir(o.Tools), "rug.json") }, false},
		{"bundle-changed", func(o *Options) {
			write(t, filepath.Join(filepath.Dir(o.Bundle), "allowlist.json"), `{"bank": ["pay"]}`)
		}, false},
		{"grant-added", func(o *Options) { write(t, o.Cases, attackOn("a", call, `,"grant":"grants/pay.yaml"`)) }, false},
		{"arms-changed", func(o *Options) { o.Arms = []Arm{Naive, Approvals} }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			write(t, path, string(forged))
			o := small(t, attackOn("a", call, ""))
			c.change(&o)
			o.Log = mustLog(t, path, true)
			r, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if taken := len(r.Slips) > 0; taken != c.taken {
				t.Errorf("taken from the log: %v", taken)
			}
			if c.taken == (r.Inputs != honest.Inputs) {
				t.Errorf("inputs %s, before %s", r.Inputs, honest.Inputs)
			}
		})
	}
}

// TestANewLogIsEmpty: what an earlier run left is gone at once, so that an interruption leaves nothing of both.
func TestANewLogIsEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	was := logStart + strings.Repeat("0", 1000)
	write(t, path, was)
	l := mustLog(t, path, false)
	if got := mustRead(t, path); string(got) != was {
		t.Error("something is gone before anything was run")
	}
	if err := l.begin(""); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, path); len(got) > 0 {
		t.Errorf("%d bytes are left", len(got))
	}
}

func TestLogsThatCannotBeUsed(t *testing.T) {
	line := `{"digest":"sha256:` + strings.Repeat("0", 64) + `","case":"a","side":"needs","arms":[]}` + "\n"
	for _, c := range []struct{ name, text, want string }{
		{"no-json", logStart + "\n", "log.jsonl:1: it is no line of a log"},
		{"second-line", line + "[]\n" + line, "log.jsonl:2: it is no line of a log"},
		{"unknown-member", strings.Replace(line, `"case"`, `"Case"`, 1), "log.jsonl:1"},
		{"no-digest", strings.Replace(line, "sha256:0", "sha256:x", 1), "log.jsonl:1"},
		{"line-at-the-limit", strings.Replace(line, `"case":"a"`, `"case":"`+strings.Repeat("a", MaxLogLine-len(line)+1)+`"`, 1), ""},
		{"line-one-past", strings.Replace(line, `"case":"a"`, `"case":"`+strings.Repeat("a", MaxLogLine-len(line)+2)+`"`, 1), "more than 8388608 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log.jsonl")
			write(t, path, c.text)
			l, err := OpenLog(path, true)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				_ = l.Close()
				return
			}
			var f *eval.Fault
			if !errors.As(err, &f) || !strings.Contains(err.Error(), c.want) || f.Remedy == "" {
				t.Errorf("OpenLog() = %v, want %q", err, c.want)
			}
			if got := mustRead(t, path); string(got) != c.text {
				t.Error("a log that cannot be used was changed")
			}
		})
	}
	for _, resume := range []bool{false, true} { // somebody's cases are not overwritten
		path := filepath.Join(t.TempDir(), "bank.cases.jsonl")
		write(t, path, attackOn("a", call, ""))
		if _, err := OpenLog(path, resume); err == nil || !strings.Contains(err.Error(), "does not begin as a log of cases; what came of each case") {
			t.Errorf("OpenLog(%v) of a cases file: %v", resume, err)
		}
		if string(mustRead(t, path)) != attackOn("a", call, "") {
			t.Error("a cases file was changed")
		}
	}
	if _, err := OpenLog(t.TempDir(), true); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
}
