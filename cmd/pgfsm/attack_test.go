package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgfsm/internal/canonical"
	"pgfsm/internal/cli"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/policy"
	"pgfsm/policy/corpus"
)

// An attackWorld is the plain world of the corpora: a model that says what a case says, and servers that write down their calls.
type attackWorld struct {
	dir     string
	plan    string
	page    string // of the server kb
	prompts int
	calls   []string // arguments
}

func newAttackWorld(t *testing.T) *attackWorld {
	t.Helper()
	w := &attackWorld{page: corpus.Document("kb")}
	model := mcptest.NewModel(t, func(_ *mcptest.Model, out http.ResponseWriter, _ *http.Request, p mcptest.Prompt) {
		w.prompts++
		if strings.Contains(p.System, "delete_entry") {
			t.Errorf("the planner is shown a tool that is not allowed: %s", p.System)
		}
		mcptest.SayJSON(out, http.StatusOK, mcptest.Spoken(w.plan))
	})
	server := func(page func() string) string {
		s := mcptest.New(t, func(method string) string {
			if method == "tools/list" {
				return page()
			}
			return mcptest.Honest(method)
		})
		s.Arguments = func(args []byte) string {
			w.calls = append(w.calls, string(args))
			return mcptest.OneText
		}
		return s.URL
	}
	kb := server(func() string { return w.page })
	desk := server(func() string { return corpus.Document("desk") })
	w.dir = clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers:
  kb: {type: http, url: %q}
  desk: {type: http, url: %q}
allowlist: allowlist.json
planner: {mode: llm, llm: {base_url: %q, model: m}}
summary: {mode: never}
`, kb, desk, model.URL+"/v1"), "allowlist.json", `{"kb": ["fetch_entry"], "desk": ["search_tickets"]}`)
	return w
}

// run asks a question, and checks what no run may show.
func (w *attackWorld) run(t *testing.T, question string) clitest.Result {
	t.Helper()
	w.prompts, w.calls = 0, nil
	r := command(t.Context(), nil, "run", "--planner", "llm", "--json", "-c", filepath.Join(w.dir, "pgfsm.yaml"), question)
	if i := strings.IndexFunc(strings.TrimSuffix(r.Stdout, "\n"), unsafeOnTerminal); i >= 0 || r.Stderr != "" {
		t.Errorf("stdout holds an unescaped character at %d, stderr %q", i, r.Stderr)
	}
	return r
}

// wantBlocked wants a run that a gate blocked, and no call.
func (w *attackWorld) wantBlocked(t *testing.T, r clitest.Result, code string) {
	t.Helper()
	r.Want(t, cli.ExitNo, "/type", "blocked", "/code", code, "/effect", "not_sent")
	if len(w.calls) > 0 {
		t.Errorf("%d calls reached a server: %.200q", len(w.calls), w.calls)
	}
}

// wantCall wants a run with exactly one call, with these arguments in canonical form.
func (w *attackWorld) wantCall(t *testing.T, r clitest.Result, args []byte) {
	t.Helper()
	r.Want(t, cli.ExitYes, "/state", "answered", "/effect", "done")
	want, err := canonical.JSON(args)
	if err != nil || len(w.calls) != 1 || w.calls[0] != string(want) {
		t.Errorf("calls = %.300q, want one with %.300s (%v)", w.calls, want, err)
	}
}

// unsafeOnTerminal reports whether a character could do something to a terminal.
func unsafeOnTerminal(r rune) bool {
	return r < ' ' && r != '\n' || 0x7f <= r && r < 0xa0 || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069
}

// some are a few cases of a corpus, from its first to its last; all if the long tests are asked for (make soak). The tests of each gate
// judge the others.
func some[T any](t *testing.T, name string, few int, fits func(T) bool) (chosen []T) {
	t.Helper()
	all, err := corpus.Load[T](name)
	check.NoError(t, err)
	var class []T
	for _, c := range all {
		if fits(c) {
			class = append(class, c)
		}
	}
	if os.Getenv("PGFSM_SOAK") != "" || len(class) <= few {
		return class
	}
	for i := range few {
		chosen = append(chosen, class[i*(len(class)-1)/(few-1)])
	}
	return chosen
}

func isText(t corpus.Text) bool { return utf8.Valid(t.Bytes()) && len(t.Bytes()) < 1<<20 }

const goodEntryPlan = `{"type":"call_tool","server":"kb","tool":"fetch_entry","args":{"entry_id":"entry-002"}}`

// TestAttacks takes cases of each corpus through whole runs, with a model and servers over HTTP: no call that is not permitted reaches
// a server, each refusal has its code, and every trace replays.
func TestAttacks(t *testing.T) {
	t.Parallel()
	w := newAttackWorld(t)
	runs := 0
	for _, c := range some(t, "requests", 10, func(c corpus.Case) bool { return c.Want == string(policy.CodeInputDenied) }) {
		t.Run("request/"+c.ID, func(t *testing.T) {
			runs++
			w.wantBlocked(t, w.run(t, string(c.Bytes())), c.Want)
			if w.prompts > 0 {
				t.Errorf("the model was asked %d times, want never", w.prompts)
			}
		})
	}
	for _, c := range some(t, "plans", 10, func(c corpus.Case) bool {
		return c.Want != policy.PlanCallTool && c.Want != policy.PlanFinalAnswer && isText(c.Text)
	}) {
		t.Run("plan/"+c.ID, func(t *testing.T) {
			runs++
			w.plan = string(c.Bytes())
			w.wantBlocked(t, w.run(t, "plan "+c.ID), c.Want)
		})
	}
	for _, c := range some(t, "runs", 10, func(c corpus.Run) bool { return c.World == "" && isText(c.Text) }) {
		t.Run("run/"+c.ID, func(t *testing.T) {
			runs++
			w.plan = string(c.Bytes())
			r := w.run(t, "run "+c.ID)
			code, blocked := strings.CutPrefix(c.Want, "blocked ")
			switch {
			case blocked:
				w.wantBlocked(t, r, code)
			case c.Want == "called":
				args, err := clitest.ValueAt(c.Bytes(), "/args")
				check.NoError(t, err)
				w.wantCall(t, r, args)
			default:
				r.Want(t, cli.ExitYes, "/type", "final_answer", "/state", "needs_info")
			}
		})
	}
	for _, c := range some(t, "schemas", 10, func(c corpus.Schema) bool {
		return (c.Want == "fits" || c.Want == "invalid") && isText(c.Schema) && strings.HasPrefix(string(c.Document()), "{")
	}) {
		t.Run("schema/"+c.ID, func(t *testing.T) {
			runs++
			w.page = `{"tools":[{"name":"fetch_entry","inputSchema":` + string(c.Schema.Bytes()) + `}]}`
			w.plan = mcptest.PlanFor("kb", "fetch_entry", string(c.Document()))
			r := w.run(t, "schema "+c.ID)
			if c.Want == "fits" {
				w.wantCall(t, r, c.Document())
			} else {
				w.wantBlocked(t, r, string(policy.CodeArgumentsInvalid))
			}
		})
	}

	r := command(t.Context(), nil, "replay", "--json", filepath.Join(w.dir, "traces"))
	r.Want(t, cli.ExitYes, "/ok", "true")
	if r.Member(fmt.Sprintf("/traces/%d/ok", runs-1)) != "true" || r.Member(fmt.Sprintf("/traces/%d", runs)) != "" {
		t.Errorf("not exactly %d traces were replayed", runs)
	}
}

// TestAttackOnTheTerminal: a person sees what a model says as text that does nothing to the terminal.
func TestAttackOnTheTerminal(t *testing.T) {
	t.Parallel()
	w := newAttackWorld(t)
	const paint = `\u001b[2J\u202e\u0007\u009b\r`
	for _, tc := range []struct{ name, plan, shows string }{
		{"question", `{"type":"final_answer","answer":"` + paint + `Which?","needs_more_info":true}`, "The planner asks: "},
		{"tool", `{"type":"call_tool","server":"kb","tool":"fetch` + paint + `","args":{}}`, "tool_unknown"},
		{"argument", `{"type":"call_tool","server":"kb","tool":"fetch_entry","args":{"` + paint + `":1}}`, "arguments_invalid"},
		{"member", `{"` + paint + `":1,"type":"call_tool","server":"kb","tool":"fetch_entry","args":{}}`, "plan_invalid"},
		{"text-around-the-plan", "\x1b[2J\u202e" + goodEntryPlan, "plan_not_strict"},
		{"argument-that-is-called-with", `{"type":"call_tool","server":"desk","tool":"search_tickets","args":{"query":"` + paint + `"}}`, "Result (raw, untyped)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w.plan = tc.plan
			r := command(t.Context(), nil, "run", "--planner", "llm", "-c", filepath.Join(w.dir, "pgfsm.yaml"), "anything")
			if i := strings.IndexFunc(r.Stdout+r.Stderr, unsafeOnTerminal); i >= 0 || !strings.Contains(r.Stdout, tc.shows) {
				t.Errorf("stdout and stderr = %q, want %q and nothing hidden (at %d)", r.Stdout+r.Stderr, tc.shows, i)
			}
		})
	}
}
