package traces_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
)

var errKilled = errors.New("killed")

// killed stops the run behind its nth step, as a kill would.
type killed struct {
	states.Recorder
	n int
}

func (k *killed) Append(ctx context.Context, s states.Step) error {
	if k.n == 0 {
		return errKilled
	}
	k.n--
	return k.Recorder.Append(ctx, s)
}

// leave runs the good scenario until n steps are recorded and leaves its partial file behind.
func leave(t *testing.T, m *states.Machine, dir string, n int) string {
	t.Helper()
	s := statestest.Find(t, "typed-and-summarized")
	run := s.Run()
	rec, err := traces.Create(dir, traces.NewHeader(m, run), clock)
	if err != nil {
		t.Fatalf("Create() = %v", err)
	}
	if _, err := m.Advance(context.Background(), run, s.Entry(), &killed{rec, n}); !errors.Is(err, errKilled) {
		t.Fatalf("Advance() = %v, want it to be killed", err)
	}
	if err := rec.Abandon(); err != nil {
		t.Fatalf("Abandon() = %v", err)
	}
	return filepath.Join(dir, "trace_"+statestest.RunID+".partial")
}

func TestRecoverEndsWhatWasLeft(t *testing.T) {
	m := statestest.MustMachine(t)
	for n, want := range []struct {
		state  string
		code   policy.Code
		effect states.Effect
	}{
		{"failed", policy.CodeInterrupted, states.NotSent}, // only the header
		{"failed", policy.CodeInterrupted, states.NotSent},
		{"failed", policy.CodeInterrupted, states.NotSent},
		{"failed", policy.CodeInterrupted, states.NotSent},
		{"failed", policy.CodeInterrupted, states.NotSent},
		{"failed", policy.CodeInterrupted, states.NotSent},
		{"failed", policy.CodeInterrupted, states.NotSent},
		{"failed", policy.CodeInterrupted, states.NotSent},         // permitted, not dispatched
		{"failed", policy.CodeIndeterminate, states.EffectUnknown}, // dispatched
		{"answered", "", states.EffectDone},                        // executed
		{"answered", "", states.EffectDone},                        // typed
		{"answered", "", states.EffectDone},                        // summarized
	} {
		dir := t.TempDir()
		partial := leave(t, m, dir, n)
		ended, err := traces.NewReplayer(m, nil).Recover(dir, clock)
		if err != nil || len(ended) != 1 || ended[0].Err != nil {
			t.Fatalf("%d steps: Recover() = %+v, %v", n, ended, err)
		}
		if o := ended[0].Outcome; o.State != want.state || o.Code != want.code || o.Effect != want.effect {
			t.Errorf("%d steps: ended as %s %s %s, want %+v", n, o.State, o.Code, o.Effect, want)
		}
		if _, err := os.Stat(partial); err == nil {
			t.Errorf("%d steps: the partial file is still there", n)
		}
		doc, err := os.ReadFile(ended[0].Trace)
		check.NoError(t, err)
		trace, err := traces.Read(doc)
		if err != nil {
			t.Fatalf("%d steps: Read() = %v", n, err)
		}
		if _, err := traces.NewReplayer(m, nil).Replay(trace); err != nil {
			t.Errorf("%d steps: the ended run does not replay: %v", n, err)
		}
		again, err := traces.NewReplayer(m, nil).Recover(dir, clock)
		if err != nil || len(again) != 0 {
			t.Errorf("%d steps: a second Recover() = %+v, %v; want nothing", n, again, err)
		}
	}
}

func TestRecoverLeavesLiveRunsAlone(t *testing.T) {
	m := statestest.MustMachine(t)
	dir := t.TempDir()
	s := statestest.Find(t, "typed-and-summarized")
	rec, err := traces.Create(dir, traces.NewHeader(m, s.Run()), clock)
	check.NoError(t, err)
	defer rec.Abandon()
	ended, err := traces.NewReplayer(m, nil).Recover(dir, clock)
	if err != nil || len(ended) != 0 {
		t.Errorf("Recover() = %+v, %v; want a live run to be left alone", ended, err)
	}
}

func TestRecoverDropsATornLine(t *testing.T) {
	m := statestest.MustMachine(t)
	dir := t.TempDir()
	partial := leave(t, m, dir, 5)
	doc, err := os.ReadFile(partial)
	check.NoError(t, err)
	cut := bytes.LastIndexByte(doc[:len(doc)-1], '\n')
	check.NoError(t, os.WriteFile(partial, doc[:cut+40], 0o600))
	ended, err := traces.NewReplayer(m, nil).Recover(dir, clock)
	if err != nil || len(ended) != 1 || ended[0].Err != nil || ended[0].Outcome.Code != policy.CodeInterrupted {
		t.Fatalf("Recover() = %+v, %v; want the run to end as interrupted", ended, err)
	}
	text, err := os.ReadFile(ended[0].Trace)
	check.NoError(t, err)
	if trace, err := traces.Read(text); err != nil || len(trace.Steps) != 5 { // four whole ones and the end
		t.Errorf("Read() = %v steps, %v; want 5", trace, err)
	}
}

func TestRecoverPutsWhatIsBrokenAside(t *testing.T) {
	m := statestest.MustMachine(t)
	for _, tc := range []struct {
		name  string
		spoil func([]byte) []byte
	}{
		{"changed-step", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"from":"planned"`), []byte(`"from":"PLANNED"`), 1)
		}},
		{"changed-header", func(b []byte) []byte { return bytes.Replace(b, []byte("local:alice"), []byte("local:mallory"), 1) }},
		{"empty-file", func([]byte) []byte { return nil }},
		{"torn-header", func(b []byte) []byte { return b[:20] }},
		{"not-json", func([]byte) []byte { return []byte("hello\n") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			partial := leave(t, m, dir, 6)
			doc, err := os.ReadFile(partial)
			check.NoError(t, err)
			check.NoError(t, os.WriteFile(partial, tc.spoil(doc), 0o600))
			ended, err := traces.NewReplayer(m, nil).Recover(dir, clock)
			if err != nil || len(ended) != 1 || ended[0].Err == nil {
				t.Fatalf("Recover() = %+v, %v; want the file to be named as broken", ended, err)
			}
			if _, err := os.Stat(strings.TrimSuffix(partial, ".partial") + ".broken"); err != nil {
				t.Errorf("the broken file is not put aside: %v", err)
			}
		})
	}
}

func TestCreateRefusesWhatItCannotWrite(t *testing.T) {
	m := statestest.MustMachine(t)
	s := statestest.Find(t, "typed-and-summarized")
	file := filepath.Join(t.TempDir(), "file")
	check.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := traces.Create(filepath.Join(file, "traces"), traces.NewHeader(m, s.Run()), clock)
	if err == nil || !strings.Contains(err.Error(), "SAFE_TRACE_DIR") {
		t.Errorf("Create() in a file = %v, want an error that names the remedy", err)
	}
}

func TestRecoverNeverReplacesATrace(t *testing.T) {
	m := statestest.MustMachine(t)
	dir := t.TempDir()
	partial := leave(t, m, dir, 9) // dispatched, and the result lost
	s := statestest.Find(t, "typed-and-summarized")
	path, doc := record(t, m, &s)
	finished := filepath.Join(dir, filepath.Base(path))
	check.NoError(t, os.WriteFile(finished, doc, 0o600))
	ended, err := traces.NewReplayer(m, nil).Recover(dir, clock)
	if err != nil || len(ended) != 0 {
		t.Errorf("Recover() = %+v, %v; want nothing to be ended", ended, err)
	}
	if got, err := os.ReadFile(finished); err != nil || !bytes.Equal(got, doc) {
		t.Errorf("the finished trace was replaced: %v", err)
	}
	if _, err := os.Stat(partial); err == nil {
		t.Error("the left-over file of a finished run is still there")
	}
}

func TestRecoverStaysInItsFolder(t *testing.T) {
	m := statestest.MustMachine(t)
	for _, tc := range []struct{ name, id string }{
		{"path", "/../../allowlist"},
		{"another-run", "01890a5d-ac96-774b-bcce-b302099a8058"},
		{"not-version-7", "9b2f0a1e-3f7c-4d6e-8a55-0123456789ab"},
		{"another-spelling", strings.ToUpper(statestest.RunID)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "b")
			check.NoError(t, os.MkdirAll(dir, 0o700))
			partial := leave(t, m, dir, 0)
			doc, err := os.ReadFile(partial)
			check.NoError(t, err)
			check.NoError(t, os.WriteFile(partial, bytes.Replace(doc, []byte(statestest.RunID), []byte(tc.id), 1), 0o600))
			ended, err := traces.NewReplayer(m, nil).Recover(dir, clock)
			if err != nil || len(ended) != 1 || ended[0].Err == nil {
				t.Fatalf("Recover() = %+v, %v; want the file to be set aside", ended, err)
			}
			for _, parent := range []string{"..", "../.."} {
				if found, _ := filepath.Glob(filepath.Join(dir, parent, "*.json")); len(found) > 0 {
					t.Errorf("a file was written outside: %v", found)
				}
			}
		})
	}
}

func TestSetAsideNeverOverwrites(t *testing.T) {
	m := statestest.MustMachine(t)
	dir := t.TempDir()
	for n := range 3 {
		partial := leave(t, m, dir, 2)
		check.NoError(t, os.WriteFile(partial, []byte("broken\n"), 0o600))
		if ended, err := traces.NewReplayer(m, nil).Recover(dir, clock); err != nil || len(ended) != 1 {
			t.Fatalf("Recover() = %+v, %v", ended, err)
		}
		if found, _ := filepath.Glob(filepath.Join(dir, "*.broken*")); len(found) != n+1 {
			t.Errorf("after %d broken files there are %v", n+1, found)
		}
	}
}

// TestRecoverWhileOthersRun starts runs and recoveries at once: every run keeps its record and
// finishes.
func TestRecoverWhileOthersRun(t *testing.T) {
	m := statestest.MustMachine(t)
	dir := t.TempDir()
	const runs = 40
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			s := statestest.Find(t, "operator-call")
			run := states.NewRun(fmt.Sprintf("01890a5d-ac96-774b-bcce-b302099a%04x", i), s.Request, s.Run().Bundle())
			rec, err := traces.Create(dir, traces.NewHeader(m, run), clock)
			if err != nil {
				t.Errorf("Create() = %v", err)
				return
			}
			o, err := m.Advance(context.Background(), run, s.Entry(), rec)
			if err != nil {
				t.Errorf("Advance() = %v", err)
				return
			}
			if _, _, err := rec.Finish(o); err != nil {
				t.Errorf("Finish() = %v", err)
			}
		})
		wg.Go(func() {
			if ended, err := traces.NewReplayer(m, nil).Recover(dir, clock); err != nil || len(ended) != 0 {
				t.Errorf("Recover() = %+v, %v; want live runs to be left alone", ended, err)
			}
		})
	}
	wg.Wait()
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != runs {
		t.Errorf("the folder holds %d files, want the %d traces: %v", len(left), runs, left)
	}
}
