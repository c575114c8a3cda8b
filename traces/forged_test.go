package traces_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/golden"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/tracestest"
)

// A forgery is a trace in which something was changed and every hash was computed anew, so that
// only replay can refuse it.
type forgery struct {
	name     string // of the file in testdata/bad
	scenario string // whose trace was changed
	says     string // the file's first line
	change   func(*forged)
}

var forgeries = []forgery{
	{
		"effect-unknown-word", "call-timed-out",
		`the effect of the broken call is a word that does not exist; want diverged: "unknownx"`,
		func(f *forged) { f.replace("effect_failed", `"effect":"unknown"`, `"effect":"unknownx"`) },
	},
	{
		"vote-unknown-word", "policy-holds-and-a-person-denies",
		`the outcome of the vote is a word that does not exist; want diverged: "denyx"`,
		func(f *forged) { f.replace("decided", `"outcome":"deny"`, `"outcome":"denyx"`) },
	},
	{
		"vote-before-the-hold", "policy-holds-and-a-person-approves",
		`the vote was cast a year before the run was held; want diverged: 2025-11-21T09:30:00.000Z`,
		func(f *forged) {
			f.replace("decided", `"votes":[{"at":"2026-11-21T09:30:00.000Z"`, `"votes":[{"at":"2025-11-21T09:30:00.000Z"`)
		},
	},
	{
		"vote-after-the-decision", "policy-holds-and-a-person-approves",
		`the vote was cast after the decision that it is part of; want diverged: 2026-11-21T09:30:01.000Z`,
		func(f *forged) {
			f.replace("decided", `"votes":[{"at":"2026-11-21T09:30:00.000Z"`, `"votes":[{"at":"2026-11-21T09:30:01.000Z"`)
		},
	},
	{
		"decision-before-the-hold", "nobody-decided-yet",
		`the decision was made a year before the run was held; want diverged: 2025-11-21T09:30:00.000Z`,
		func(f *forged) {
			f.replace("decided", `"at":"2026-11-21T09:30:00.000Z"`, `"at":"2025-11-21T09:30:00.000Z"`)
		},
	},
	{
		"status-unknown-word", "every-server-down",
		`the status of a server is a word that does not exist; want diverged: "upx"`,
		func(f *forged) { f.replace("tools_listed", `"status":"down"`, `"status":"upx"`) },
	},
	{
		"kind-unknown-word", "agent-round-is-screened",
		`the kind of the request is a word that does not exist; want tampered: "callx"`,
		func(f *forged) { f.header(`"kind":"agent"`, `"kind":"callx"`) },
	},
	{
		"large-arguments-that-are-accepted", "agent-arguments-too-large",
		`the arguments are not recorded although they are not too large; want tampered: arguments that are not too large`,
		func(f *forged) { f.header(`"large":{"bytes":26,`, `"large":{"bytes":25,`) },
	},
	{
		"trace-context-of-the-request", "agent-traced",
		`the traceparent of the request has upper-case digits; want tampered: the request's trace context`,
		func(f *forged) { f.header(`1-01","tracestate"`, `A-01","tracestate"`) },
	},
	{
		"session-that-no-gateway-records", "agent-traced",
		`the session of MCP has the name of a hook's session; want tampered: the session of MCP is "claude/s-1"`,
		func(f *forged) { f.header(`"kind":"agent"`, `"kind":"agent","mcp_session":"claude/s-1"`) },
	},
	{
		"session-that-the-client-may-not-name", "agent-traced",
		`the client named the session; want tampered: the labels do not let it`,
		func(f *forged) { f.header(`"kind":"agent"`, `"kind":"agent","mcp_session":"meta/s-1"`) },
	},
	{
		"trace-context-of-the-decision", "policy-holds-and-a-person-approves",
		`the decision has a traceparent of another version; want diverged: traceparent`,
		func(f *forged) { f.replace("decided", `"votes":[`, `"trace":{"traceparent":"01-"},"votes":[`) },
	},
	{
		"request-time-of-another-form", "input-rule-hit",
		`the time of the request has another form; want tampered: 2026-11-21T08:00:00+00:00`,
		func(f *forged) { f.header(`"at":"2026-11-21T09:00:00.000Z"`, `"at":"2026-11-21T08:00:00+00:00"`) },
	},
	{
		"times-fall", "typed-and-summarized",
		`step 5 was recorded before step 4; want diverged: step 5: different time`,
		func(f *forged) { f.steps[5]["at"] = jsontext.Value(`"2026-11-21T08:59:59.000Z"`) },
	},
	{
		"time-of-another-form", "typed-and-summarized",
		`the time of step 5 has another form; want diverged: step 5: different time`,
		func(f *forged) { f.steps[5]["at"] = jsontext.Value(`"2026-11-21T10:00:00+01:00"`) },
	},
	{
		"model-content-changed", "model-plans",
		`the summary is not what the model's endpoint sent; want diverged: step 10: different event`,
		func(f *forged) {
			f.replace("completed", `{\"message\":{\"content\":`, `{\"message\":{\"content\":\"{}\",\"was\":`)
		},
	},
	{
		"model-response-without-success", "model-plans",
		`the summary was taken from a response without success; want diverged: step 10: different event`,
		func(f *forged) { f.replace("completed", `"status":200`, `"status":500`) },
	},
	{
		"model-exchanges-dropped", "summarizing-model-refuses",
		`the model's summary came without an exchange; want diverged: step 10: different`,
		func(f *forged) {
			event := f.event("completed")
			var members map[string]jsontext.Value
			f.must(json.Unmarshal(event["event"], &members))
			members["exchanges"] = jsontext.Value("[]")
			event["event"] = canonical.MustMarshal(members)
		},
	},
	{
		"event-unknown", "typed-and-summarized",
		`the listing is an event that does not exist; want diverged: unknown event`,
		func(f *forged) { f.replace("tools_listed", `"tools_listed"`, `"tools_guessed"`) },
	},
	{
		"origin-unknown-word", "origins-found",
		`the argument comes from an origin that does not exist; want diverged: the origin is "known"`,
		func(f *forged) { f.replace("history_read", `"origin":"trusted"`, `"origin":"known"`) },
	},
	{
		"origin-without-a-source", "origins-found-in-a-prompt",
		`the value is in a prompt, and no prompt was looked at; want diverged: its source "3" was not looked at`,
		func(f *forged) { f.replace("history_read", `"prompts":1,`, ``) },
	},
	{
		"origins-after-a-failed-look", "origins-not-looked-for",
		`the look failed and counted a prompt; want diverged: nothing was looked at`,
		func(f *forged) { f.replace("history_read", `"leaves":[],`, `"leaves":[],"prompts":1,`) },
	},
	{
		"result-forged", "typed-and-summarized",
		`the tool returned other words; want diverged: step 8: different facts`,
		func(f *forged) { f.replace("tool_returned", "for 400 days", "for 900 days") },
	},
	{
		"command-forged", "typed-and-summarized",
		`step 8 calls another tool; want diverged: step 8: different command`,
		func(f *forged) { f.member(8, "command", `"fetch_policy_entry"`, `"delete_policy_entry"`) },
	},
	{
		"facts-forged", "typed-and-summarized",
		`step 3 allows for another reason; want diverged: step 3: different facts`,
		func(f *forged) {
			f.member(3, "facts", `"The arguments conform to the tool's inputSchema (2020-12, closed world)."`, `"Fine."`)
		},
	},
	{
		"way-back", "typed-and-summarized",
		`step 9 goes back to permitted; want diverged: step 9: different transition`,
		func(f *forged) {
			f.member(9, "from", "executed", "typed")
			f.member(9, "to", "typed", "permitted")
			f.member(9, "trigger", "parse", "permit")
		},
	},
	{
		"validation-skipped", "typed-and-summarized",
		`the step from planned to validated is gone; want diverged: step 3: different transition`,
		func(f *forged) { f.steps = slices.Delete(f.steps, 3, 4) },
	},
	{
		"step-after-the-end", "tool-not-allowed",
		`a step comes after the end; want diverged: different transition`,
		func(f *forged) { f.steps = append(f.steps, maps.Clone(f.steps[len(f.steps)-1])) },
	},
}

// A spoiling is the text of a good trace in which something was changed, without a new hash.
type spoiling struct {
	name   string // of the file in testdata/bad
	says   string // the file's first line
	change func(lines []string) []string
}

// spoiled is the trace of testdata/good that spoilings change: a header, a line for each step, and
// the end.
const spoiled = "policy-summarized.json"

var spoilings = []spoiling{
	{"actor-changed", "the request names another actor; want tampered: header", inLine(0, `"actor":"local:root"`, `"actor":"local:eve"`)},
	{"allowlist-widened", "the allowlist in the bundle names one more tool; want tampered: header",
		inLine(0, `"tools":["search_policy_kb"`, `"tools":["delete_policy_entry","search_policy_kb"`)},
	{"format-unknown", "the format is another; want unreadable: format", inLine(0, `"format":"pgfsm.trace/v1"`, `"format":"pgfsm.trace/v2"`)},
	{"event-with-a-tail", "a digit group stands behind the listing; want tampered: step 1", inLine(2, `}]},"facts"`, `}]}.5,"facts"`)},
	{"reason-changed", "the reason of step 4 is another; want tampered: step 4", inLine(5, `"reason":"The allowlist`, `"reason":"An allowlist`)},
	{"outcome-changed", "the outcome has a note; want tampered: outcome", inLine(-1, `"note":""`, `"note":"fine"`)},
	{"duplicate-member", "the outcome stands twice; want unreadable: duplicate", inLine(-1, `,"head"`, `,"outcome":{},"head"`)},
	{"text-behind", "text stands behind the document; want unreadable: after top-level value", func(lines []string) []string { return append(lines, "x") }},
	{"step-dropped", "step 5 is gone; want tampered: step 5", func(lines []string) []string { return slices.Delete(lines, 6, 7) }},
	{"tail-cut", "the last step is gone; want tampered: outcome", func(lines []string) []string {
		last := len(lines) - 2
		lines[last-1] = strings.TrimSuffix(lines[last-1], ",")
		return slices.Delete(lines, last, last+1)
	}},
	{"no-steps", "all steps are gone; want tampered: there is no step", func(lines []string) []string { return slices.Delete(lines, 1, len(lines)-1) }},
}

// inLine replaces the one place of a text in a line; a negative number counts from the end.
func inLine(n int, old, by string) func([]string) []string {
	return func(lines []string) []string {
		line := &lines[(n+len(lines))%len(lines)]
		if strings.Count(*line, old) != 1 {
			panic("the line has not one " + old)
		}
		*line = strings.Replace(*line, old, by, 1)
		return lines
	}
}

// forged is a trace that is being changed.
type forged struct {
	tb      testing.TB
	members map[string]jsontext.Value
	steps   []map[string]jsontext.Value
}

func (f *forged) must(err error) {
	f.tb.Helper()
	if err != nil {
		f.tb.Fatal(err)
	}
}

// event returns the last step with an event of this name.
func (f *forged) event(name string) map[string]jsontext.Value {
	f.tb.Helper()
	for i := len(f.steps) - 1; i >= 0; i-- {
		if bytes.Contains(f.steps[i]["event"], []byte(`"happened":"`+name+`"`)) {
			return f.steps[i]
		}
	}
	f.tb.Fatalf("the trace has no event %s", name)
	return nil
}

// replace changes the last event of this name.
func (f *forged) replace(name, old, by string) {
	f.tb.Helper()
	f.change(f.event(name), "event", old, by)
}

// member changes a member of one step.
func (f *forged) member(step int, name, old, by string) {
	f.tb.Helper()
	f.change(f.steps[step], name, old, by)
}

// header changes the request.
func (f *forged) header(old, by string) {
	f.tb.Helper()
	f.change(f.members, "request", old, by)
}

// change replaces what a member holds once.
func (f *forged) change(of map[string]jsontext.Value, name, old, by string) {
	f.tb.Helper()
	if n := bytes.Count(of[name], []byte(old)); n != 1 {
		f.tb.Fatalf("%s holds %s %d times, want once:\n%s", name, old, n, of[name])
	}
	of[name] = bytes.Replace(of[name], []byte(old), []byte(by), 1)
}

// forge changes a trace and computes every hash anew, as docs/reference/trace-format.md says.
func forge(tb testing.TB, doc []byte, change func(*forged)) []byte {
	tb.Helper()
	d, err := tracestest.Parse(doc)
	check.NoError(tb, err)
	f := &forged{tb, d.Members, d.Steps}
	change(f)
	d.Steps = f.steps
	sealed, err := d.Seal()
	f.must(err)
	return sealed
}

// TestClockThatGoesBack records a run while the clock is set back within one second: the trace shows
// the milliseconds of its steps, and replays, because its times stay where they were.
func TestClockThatGoesBack(t *testing.T) {
	m := statestest.MustMachine(t)
	s := statestest.Find(t, "typed-and-summarized")
	shows := []string{"2026-11-21T09:00:07.120Z", "2026-11-21T09:00:07.845Z", "2026-11-21T09:00:07.300Z"}
	_, _, trace := tracestest.Record(t, m, s.Run(), s.Entry(), func() string {
		at := shows[0]
		if len(shows) > 1 {
			shows = shows[1:]
		}
		return at
	})
	first, last := trace.Steps[0].At, trace.Steps[len(trace.Steps)-1].At
	if first != "2026-11-21T09:00:07.120Z" || last != "2026-11-21T09:00:07.845Z" {
		t.Errorf("the steps are of %s to %s, want 2026-11-21T09:00:07.120Z to 2026-11-21T09:00:07.845Z", first, last)
	}
	if _, err := tracestest.Replayer(m, s.Decider).Replay(trace); err != nil {
		t.Errorf("Replay() = %v", err)
	}
}

var wanted = regexp.MustCompile(`^.+; want (\w+): (.+)$`)

// TestBadTracesAreRefused holds the traces of testdata/bad to the forgeries and spoilings. Each is
// refused, as its first line says; without its change it replays.
func TestBadTracesAreRefused(t *testing.T) {
	m := statestest.MustMachine(t)
	replay := func(doc []byte) error {
		trace, err := traces.Read(doc)
		if err == nil {
			_, err = traces.NewReplayer(m, nil).Replay(trace)
		}
		return err
	}
	bad := func(t *testing.T, name, says string, unchanged, changed []byte) {
		t.Helper()
		if err := replay(unchanged); err != nil {
			t.Errorf("without the change: %v", err)
		}
		want, err := wanted.FindStringSubmatch(says), replay(changed)
		kind := "unreadable"
		var diverged *traces.DivergenceError
		switch {
		case errors.As(err, &diverged):
			kind = "diverged"
		case errors.Is(err, traces.ErrTampered):
			kind = "tampered"
		}
		if err == nil || kind != want[1] || !strings.Contains(err.Error(), want[2]) {
			t.Errorf("%s: %v, want %s: %s", kind, err, want[1], want[2])
		}
		golden.File(t, filepath.Join("testdata", "bad", name+".txt"), "# "+says+"\n"+string(changed)+"\n")
	}
	known := make(map[string]bool)
	for _, tt := range spoilings {
		known[tt.name+".txt"] = true
		t.Run(tt.name, func(t *testing.T) {
			doc, err := os.ReadFile(filepath.Join("testdata", "good", spoiled))
			check.NoError(t, err)
			lines := strings.Split(strings.TrimSuffix(string(doc), "\n"), "\n")
			bad(t, tt.name, tt.says, doc, []byte(strings.Join(tt.change(lines), "\n")))
		})
	}
	for _, tt := range forgeries {
		known[tt.name+".txt"] = true
		t.Run(tt.name, func(t *testing.T) {
			s := statestest.Find(t, tt.scenario)
			_, doc := record(t, m, &s)
			changed := forge(t, doc, tt.change)
			if _, err := traces.Read(changed); err != nil {
				t.Fatalf("Read() = %v: the hashes are not those of the content", err)
			}
			bad(t, tt.name, tt.says, doc, changed)
		})
	}
	files, err := os.ReadDir(filepath.Join("testdata", "bad"))
	check.NoError(t, err)
	for _, file := range files {
		if !known[file.Name()] {
			t.Errorf("%s has no source here, so nothing shows that only its change is refused", file.Name())
		}
	}
}
