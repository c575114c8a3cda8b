package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/cli"
	"pgfsm/policy"
)

// progressAlone is the _meta of a call: the token is the id of the request.
var progressAlone = regexp.MustCompile(`^\{"progressToken":\d+\}$`)

// The planner and the summarizer are the attacker here: a real endpoint says hostile things, a real server behind pgfsm
// writes down what reaches it. Each hostile thing stands beside the nearest benign one, so that nothing passes by being
// refused altogether.

// An attack is one thing that a hostile planner says, the code that refuses it, and its benign twin.
type attack struct {
	name, says string
	code       policy.Code
	twin       twin
}

// A twin is the benign one of an attack: it leads to exactly one call, or to a question if tool is empty.
type twin struct {
	says, server, tool string
	args               string // the bytes that must reach the server: the canonical form of what says plans
}

// An attackClass is a group of attacks against the same tools.
type attackClass struct {
	name    string
	tools   func() string // what the server "files" lists
	attacks []attack
}

// An observation is what one run left behind.
type observation struct {
	cli.Result
	calls            []callMade
	plans, summaries int // completions that were asked for
}

// A callMade is one tools/call as it reached a server.
type callMade struct{ server, params string }

// faults lists what is wrong with a run that must have been refused.
func (a attack) faults(o observation) (list []string) {
	exit, kind := exitNo, "blocked"
	if a.code == policy.CodePlannerFailed { // what is too large to be read at all was no plan
		exit, kind = exitCould, "failed"
	}
	list = append(o.unsound(exit, 0), o.differs(
		"/type", kind, "/state", kind, "/code", string(a.code), "/gate", gateOf(a.code), "/effect", "not_sent")...)
	if reason := o.Member("/reason"); reason == "" || len(reason) > maxReason {
		list = append(list, fmt.Sprintf("the reason has %d bytes, want 1 to %d", len(reason), maxReason))
	}
	if len(o.calls) > 0 {
		list = append(list, fmt.Sprintf("%d calls reached a server: %.200q", len(o.calls), o.calls))
	}
	return list
}

// maxReason is what a sentence for a person may have: however long what it speaks of is, and however often it is wrong.
const maxReason = 8 << 10

// faults lists what is wrong with a run that must have been answered.
func (w twin) faults(o observation) (list []string) {
	if w.tool == "" {
		list = append(o.unsound(exitYes, 0), o.differs("/type", "final_answer", "/state", "needs_info", "/effect",
			"not_sent")...)
		if len(o.calls) > 0 {
			list = append(list, fmt.Sprintf("%d calls for a question: %.200q", len(o.calls), o.calls))
		}
		return list
	}
	list = append(o.unsound(exitYes, 0), o.differs("/type", "tool_result", "/state", "answered", "/effect", "done")...)
	return append(list, o.wrongCall(w.server, w.tool, w.args)...)
}

// unsound lists what no run may show: a fault in the process, another exit code, a completion too many.
func (o observation) unsound(exit, summaries int) (list []string) {
	if o.Code != exit {
		list = append(list, fmt.Sprintf("exit code = %d, want %d", o.Code, exit))
	}
	for _, sign := range []string{"panic", "goroutine ", "runtime error", "makes the validator fail",
		"validator fails on it"} {
		if strings.Contains(o.Stderr, sign) || strings.Contains(o.Stdout, sign) {
			list = append(list, fmt.Sprintf("the run says %q", sign))
		}
	}
	if o.Stderr != "" {
		list = append(list, fmt.Sprintf("stderr = %.300q, want nothing", o.Stderr))
	}
	if i := strings.IndexFunc(strings.TrimSuffix(o.Stdout, "\n"), unsafeOnTerminal); i >= 0 {
		list = append(list, fmt.Sprintf("stdout holds an unescaped %q", o.Stdout[i:i+1]))
	}
	if o.plans != 1 || o.summaries != summaries {
		list = append(list, fmt.Sprintf("the model was asked for %d plans and %d summaries, want 1 and %d",
			o.plans, o.summaries, summaries))
	}
	return list
}

// unsafeOnTerminal reports whether a character could do something to a terminal.
func unsafeOnTerminal(r rune) bool {
	return r < ' ' && r != '\n' || 0x7f <= r && r < 0xa0 || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069
}

// differs holds members of the document, given by pointer and value, to what they must be.
func (o observation) differs(members ...string) (list []string) {
	for i := 0; i+1 < len(members); i += 2 {
		if got := o.Member(members[i]); got != members[i+1] {
			list = append(list, fmt.Sprintf("%s = %q, want %q", members[i], got, members[i+1]))
		}
	}
	return list
}

// wrongCall lists what is wrong unless exactly one call came, for this tool and with exactly these argument bytes.
func (o observation) wrongCall(server, tool, args string) (list []string) {
	if len(o.calls) != 1 {
		return []string{fmt.Sprintf("%d calls reached a server, want 1", len(o.calls))}
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal([]byte(o.calls[0].params), &members); err != nil {
		return []string{fmt.Sprintf("params cannot be read: %v", err)}
	}
	name, err := json.Marshal(tool)
	if err != nil || o.calls[0].server != server || string(members["name"]) != string(name) {
		list = append(list, fmt.Sprintf("called %s of %s, want %s of %s", members["name"], o.calls[0].server, name, server))
	}
	if got := string(members["arguments"]); got != args {
		list = append(list, fmt.Sprintf("arguments = %.300s, want %.300s", got, args))
	}
	if len(members) != 3 || !progressAlone.Match(members["_meta"]) {
		list = append(list, fmt.Sprintf("params = %.300s, want name, arguments and a progress token alone", o.calls[0].params))
	}
	return list
}

// gateOf is the gate that the documentation names for a code.
func gateOf(code policy.Code) string {
	for _, c := range policy.Codes() {
		if c.Code == code {
			return string(c.Gate)
		}
	}
	return "none"
}

// attackClasses are all attacks of the planner.
func attackClasses() []attackClass {
	return slices.Concat(syntaxAttacks, shapeAttacks, nameAttacks, boundAttacks(), schemaAttacks())
}

// TestAttackPlans: whatever a planner says, no call reaches a server that is not permitted, each refusal has its code,
// and what it nearly said works.
func TestAttackPlans(t *testing.T) {
	t.Parallel()
	s := newSiege(t)
	for _, c := range attackClasses() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := s.post(t, c.name, c.tools(), "never")
			twins := map[string][]string{} // by what they say: one that stands beside several attacks runs once
			for _, a := range some(c.attacks) {
				t.Run(a.name, func(t *testing.T) {
					reportFaults(t, a.name, a.says, a.faults(p.run(t, a.name, modelScript{plan: a.says})))
					faults, done := twins[a.twin.says]
					if !done {
						faults = a.twin.faults(p.run(t, a.name+"-twin", modelScript{plan: a.twin.says}))
						twins[a.twin.says] = faults
					}
					reportFaults(t, a.name+"-twin", a.twin.says, faults)
				})
			}
			p.replay(t)
		})
	}
}

// some are ten of a class, from its first to its last; all if the long tests are asked for (make soak). The tests of each gate judge the others.
func some[T any](class []T) []T {
	const few = 10
	if os.Getenv("PGFSM_SOAK") != "" || len(class) <= few {
		return class
	}
	var chosen []T
	for i := range few {
		chosen = append(chosen, class[i*(len(class)-1)/(few-1)])
	}
	return chosen
}

func reportFaults(t *testing.T, name, says string, faults []string) {
	t.Helper()
	for _, f := range faults {
		t.Errorf("%s (%.200q): %s", name, says, f)
	}
}

// A lie is one thing that a hostile summarizer says, the note that the result gets instead, and its benign twin.
type lie struct {
	name, says string
	code       policy.Code
	note       string // how the note begins, if not as that of a refused summary
	twin       []quote
}

// A quote is an item of a benign summary.
type quote struct{ Claim, Evidence string }

// faults lists what is wrong with a run whose summary must have been refused.
func (l lie) faults(o observation) []string {
	list := append(o.unsound(exitYes, 1), o.differs("/type", "tool_result", "/state", "answered", "/effect", "done",
		"/summary", "", "/code", "", "/is_error", "false")...)
	begin := l.note
	if begin == "" {
		begin = "Summary refused (%s): "
	}
	if note := o.Member("/note"); !strings.HasPrefix(note, fmt.Sprintf(begin, l.code)) || len(note) > maxReason {
		list = append(list, fmt.Sprintf("note = %.200q, want it to begin with %q", note, fmt.Sprintf(begin, l.code)))
	}
	return append(list, o.wrongResult()...)
}

// honestFaults lists what is wrong with a run whose summary must have been shown.
func (l lie) honestFaults(o observation) []string {
	list := append(o.unsound(exitYes, 1), o.differs("/type", "tool_result_with_summary", "/state", "answered",
		"/effect", "done", "/note", "")...)
	var items []struct {
		Claim    string `json:"claim"`
		Evidence string `json:"evidence"`
		At       struct {
			Pointer string `json:"pointer"`
			Start   int    `json:"start"`
			End     int    `json:"end"`
		} `json:"at"`
	}
	shown, err := cli.At([]byte(o.Stdout), "/summary")
	if err == nil {
		err = json.Unmarshal(shown, &items)
	}
	if err != nil || len(items) != len(l.twin) {
		return append(list, fmt.Sprintf("summary = %.300s, want %d items", shown, len(l.twin)))
	}
	for i, item := range items {
		if got := (quote{item.Claim, item.Evidence}); got != l.twin[i] {
			list = append(list, fmt.Sprintf("item %d = %q, want %q", i, got, l.twin[i]))
		}
		value := located(item.At.Pointer)
		if item.At.Start < 0 || item.At.End > len(value) || item.At.Start > item.At.End ||
			value[item.At.Start:item.At.End] != item.Evidence {
			list = append(list, fmt.Sprintf("the evidence %q is not at %+v", item.Evidence, item.At))
		}
	}
	return append(list, o.wrongResult()...)
}

// located is the text at a place of the result: of a string what it says, of anything else its literal.
func located(pointer string) string {
	v, err := cli.At([]byte(richResult), pointer)
	if err != nil {
		return ""
	}
	if text, err := canonical.Unquote(v); err == nil && v.Kind() == '"' {
		return text
	}
	return string(v)
}

// wrongResult lists what is wrong unless the one call was made and its result is there, typed.
func (o observation) wrongResult() []string {
	list := o.wrongCall("files", "read", `{"path":"a.txt"}`)
	want, err := canonical.JSON([]byte(richResult))
	typed, missing := cli.At([]byte(o.Stdout), "/typed")
	if missing == nil {
		typed, missing = canonical.JSON(typed) // what could do something to a terminal is shown as an escape
	}
	if err != nil || missing != nil || string(typed) != string(want) {
		list = append(list, fmt.Sprintf("typed = %.200s, want %.200s (%v, %v)", typed, want, err, missing))
	}
	return list
}

// TestAttackSummaries: whatever a summarizer says, the typed result is answered, and nothing that is not locked to
// evidence stands beside it.
func TestAttackSummaries(t *testing.T) {
	t.Parallel()
	s := newSiege(t)
	plan := callOf("read", `{"path":"a.txt"}`)
	for i, chunk := range slices.Collect(slices.Chunk(lies(), 50)) {
		t.Run(fmt.Sprintf("part-%d", i+1), func(t *testing.T) {
			t.Parallel()
			p := s.post(t, fmt.Sprintf("summaries-%d", i+1), richTools(), "always")
			for _, l := range some(chunk) {
				t.Run(l.name, func(t *testing.T) {
					reportFaults(t, l.name, l.says, l.faults(p.run(t, l.name, modelScript{plan, l.says})))
					honest := modelScript{plan, summaryOf(l.twin...)}
					reportFaults(t, l.name+"-twin", honest.summary, l.honestFaults(p.run(t, l.name+"-twin", honest)))
				})
			}
			p.replay(t)
		})
	}
}

// TestAttackOnTheTerminal: what a model says is shown to a person as text that does nothing to the terminal.
func TestAttackOnTheTerminal(t *testing.T) {
	t.Parallel()
	p := newSiege(t).post(t, "terminal", basicTools(), "never")
	const paint = `\u001b[2J\u202e\u0007\u009b\r`
	for _, tt := range []struct{ name, says, shows string }{
		{"question", questionOf(paint + `Which?`), "The planner asks: "},
		{"answer-that-is-refused", strings.Replace(questionOf(paint), "true", "false", 1), "final_answer_refused"},
		{"tool", toolOf("look" + paint), "tool_unknown"},
		{"server", lookOn("files" + paint), "server_unknown"},
		{"argument", callOf("look", `{"`+paint+`":1,"path":"a"}`), "arguments_invalid"},
		{"member", plainWith(`"tool"`, `"`+paint+`":1,"tool"`), "plan_invalid"},
		{"text-around-the-plan", "\x1b[2J\u202e" + plain.says, "plan_not_strict"},
		{"argument-that-is-called-with", pathOf(paint), "Result (raw, untyped)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p.says(t, "terminal "+tt.name, modelScript{plan: tt.says})
			r := command(t.Context(), nil, "run", "--planner", "llm", "-c", filepath.Join(p.dir, "pgfsm.yaml"),
				"terminal "+tt.name)
			if i := strings.IndexFunc(r.Stdout+r.Stderr, unsafeOnTerminal); i >= 0 || !strings.Contains(r.Stdout, tt.shows) {
				t.Errorf("stdout and stderr = %q, want %q and nothing hidden (at %d)", r.Stdout+r.Stderr, tt.shows, i)
			}
		})
	}
}

// TestAttackChecksCanFail spoils what the checks look at, one thing at a time: each must be noticed.
func TestAttackChecksCanFail(t *testing.T) {
	t.Parallel()
	s := newSiege(t)
	p := s.post(t, "red", basicTools(), "never")
	good := callsLook(`{"path":"a.txt"}`)
	a := attack{"wrong-tool", callOf("delete_file", `{"path":"a.txt"}`), policy.CodeToolNotAllowed, good}
	refused, called := p.run(t, "hostile", modelScript{plan: a.says}), p.run(t, "benign", modelScript{plan: good.says})
	if list := slices.Concat(a.faults(refused), good.faults(called)); len(list) > 0 {
		t.Fatalf("faults = %q, want none before anything is spoiled", list)
	}
	spoil := func(o observation, change func(*observation)) observation { change(&o); return o }
	wrong := a
	wrong.code = policy.CodeToolUnknown
	for _, tt := range []struct {
		name   string
		faults []string
	}{
		{"another-code", wrong.faults(refused)},
		{"hostile-got-through", a.faults(called)},
		{"call-was-recorded", a.faults(spoil(refused, func(o *observation) { o.calls = called.calls }))},
		{"panic-on-stderr", a.faults(spoil(refused, func(o *observation) { o.Stderr = "panic: nil map" }))},
		{"another-exit-code", a.faults(spoil(refused, func(o *observation) { o.Code = exitCould }))},
		{"asked-twice", a.faults(spoil(refused, func(o *observation) { o.plans = 2 }))},
		{"escape-on-stdout", a.faults(spoil(refused, func(o *observation) { o.Stdout += "\x1b[2J" }))},
		{"twin-was-refused", good.faults(refused)},
		{"twin-called-twice", good.faults(spoil(called, func(o *observation) { o.calls = append(o.calls, o.calls...) }))},
		{"twin-called-nothing", good.faults(spoil(called, func(o *observation) { o.calls = nil }))},
		{"twin-called-with-other-bytes", callsLook(`{"path":"b.txt"}`).faults(called)},
		{"twin-called-another-server", twin{good.says, "other", "look", good.args}.faults(called)},
		{"question-that-called", asks("Which?").faults(called)},
		{"summary-was-not-refused", lie{code: "evidence_missing"}.faults(called)},
		{"prompt-shows-nothing", []string{unfitPrompt("plan", "You are the planner.")}},
		{"prompt-shows-a-forbidden-tool", []string{unfitPrompt("summary", `{"tool":"delete_file"}`)}},
		{"summary-is-missing", lie{twin: []quote{{"A.", "B"}}}.honestFaults(called)},
	} {
		if len(tt.faults) == 0 || tt.faults[0] == "" {
			t.Errorf("%s: there is no fault, want one", tt.name)
		}
	}
	trace := filepath.Join(p.dir, "traces", filepath.Base(called.Member("/trace")))
	spoilFile(t, trace, "answered", "Answered")
	if r := command(t.Context(), nil, "replay", "--json", filepath.Join(p.dir, "traces")); r.Code != exitNo {
		t.Errorf("replay of a spoiled trace: exit code = %d, want %d", r.Code, exitNo)
	}
}
