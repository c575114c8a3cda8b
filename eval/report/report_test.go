package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"pgfsm/eval"
	"pgfsm/eval/attack"
	"pgfsm/internal/test/golden"
	"pgfsm/internal/visible"
)

// TestPages holds both forms to files that were looked at. They change when the machine's table does: run with -update, and
// look at what changed.
func TestPages(t *testing.T) {
	r := read(t, "testdata/results")
	html, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	md, err := r.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/report.html", html)
	golden.File(t, "testdata/report.md", md)
}

// TestHostileTextStaysText shows that what files hold is neither markup nor invisible, and that a page stays of a size that
// a browser can show.
func TestHostileTextStaysText(t *testing.T) {
	r := read(t, hostile(t))
	html, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	md, err := r.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "<img", "<iframe", "<base", "<link", "</style><", "onload='", `onerror="`, "]]><"} {
		if bytes.Contains(html, []byte(bad)) {
			t.Errorf("the HTML page holds %s", bad)
		}
	}
	for name, doc := range map[string][]byte{"HTML": html, "Markdown": md} { // the order does not matter: each is looked at alone
		if line := string(doc); visible.Lines(line) != line || !utf8.ValidString(line) {
			t.Errorf("the page as %s holds what cannot be seen", name)
		}
		if len(doc) > 1<<20 {
			t.Errorf("the page as %s has %d bytes", name, len(doc))
		}
	}
	if n := tables(t, string(md)); n < 10 {
		t.Errorf("the Markdown page has %d tables", n)
	}
}

// tables counts the tables of a Markdown page, of which every row has as many cells as the first. Blocks of code are left out.
func tables(t *testing.T, md string) (n int) {
	t.Helper()
	cells, code := 0, ""
	for line := range strings.Lines(md) {
		mark := strings.TrimSpace(line)
		switch fenced := strings.HasPrefix(mark, "```"); {
		case code != "":
			if mark == code {
				code = ""
			}
			continue
		case fenced:
			code = mark
			continue
		}
		if !strings.HasPrefix(line, "|") {
			cells = 0
			continue
		}
		if cells == 0 {
			n++
			cells = strings.Count(line, "|")
		}
		if got := strings.Count(line, "|"); got != cells {
			t.Errorf("a row of the table has %d cells, not %d: %q", got-1, cells-1, line)
		}
	}
	if code != "" {
		t.Errorf("a block of code does not end")
	}
	return n
}

// TestWhatIsMissingIsSaid reads folders with a part of the results.
func TestWhatIsMissingIsSaid(t *testing.T) {
	all := []string{"attack.json", "20260102T030405Z_metrics.json", gatesName}
	for _, tt := range []struct {
		name   string
		has    []string
		misses []string // commands
		shows  []string // ids of sections
	}{
		{"all", all, nil, []string{"headline", "through", "arms", "stopped", "machine", "endtoend", "gates", "again"}},
		{"attacks-alone", all[:1], []string{"eval e2e", "eval gates"}, []string{"headline", "through", "arms", "stopped", "machine", "again"}},
		{"end-to-end-alone", all[1:2], []string{"eval attack", "eval gates"}, []string{"endtoend", "again"}},
		{"gates-alone", all[2:], []string{"eval attack", "eval e2e"}, []string{"gates", "again"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := read(t, folder(t, tt.has...))
			p, err := r.page()
			if err != nil {
				t.Fatal(err)
			}
			var shows []string
			for _, s := range p.Sections {
				shows = append(shows, s.ID)
			}
			if diff := cmp.Diff(tt.shows, shows); diff != "" {
				t.Errorf("sections (-want +got):\n%s", diff)
			}
			missing := strings.Join(r.Missing(), "\n")
			html, err := r.HTML()
			if err != nil || len(r.Missing()) != len(tt.misses) {
				t.Fatalf("missing: %s, error: %v", missing, err)
			}
			for _, command := range tt.misses {
				if !strings.Contains(missing, command) || !bytes.Contains(html, []byte(command)) {
					t.Errorf("nobody is told that %s was not run", command)
				}
			}
		})
	}
}

// folder is a folder with some of the good results.
func folder(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		doc, err := os.ReadFile(filepath.Join("testdata", "results", name))
		if err != nil {
			t.Fatal(err)
		}
		put(t, dir, name, doc)
	}
	return dir
}

func put(t *testing.T, dir, name string, doc []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), doc, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLongTablesAreCut takes a table to its bound and one past it.
func TestLongTablesAreCut(t *testing.T) {
	for _, tt := range []struct {
		name     string
		n        int
		says     string // of what was left out
		saysNone bool
	}{
		{"rows-at-the-limit", maxRows, "(the first 200 of", true},
		{"rows-one-past-it", maxRows + 1, "Attack calls that were stopped, by arm (the first 200 of 201 rows)", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &attack.Result{Format: attack.Format, Arms: []attack.Arm{attack.Approvals}}
			r.Overall = attack.Section{Attacks: tt.n, Arms: []attack.ArmSection{{Arm: attack.Approvals, Attack: eval.Of(tt.n, tt.n)}}}
			for i := range tt.n {
				name := fmt.Sprintf("n%d", i)
				r.Overall.Arms[0].Stopped = append(r.Overall.Arms[0].Stopped, attack.Stopped{Gate: "policy", Code: name, Wants: 1})
			}
			doc, err := json.Marshal(r, json.Deterministic(true))
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			put(t, dir, "attack.json", doc)
			html, err := read(t, dir).HTML()
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(string(html), tt.says); got == tt.saysNone {
				t.Errorf("the page says %q: %t", tt.says, got)
			}
		})
	}
}

// TestFilesOfOneGroupAreAddedUp reads two suites of one group, and one of another.
func TestFilesOfOneGroupAreAddedUp(t *testing.T) {
	arms := []attack.Arm{attack.Naive, attack.Approvals}
	edge := attack.Edge{From: "received", On: "screen", To: "screened", Runs: 4}
	result := func(suite string, naive, last int) *attack.Result {
		section := func(name string) attack.Section {
			return attack.Section{Suite: name, Cases: 10, Attacks: 10, Tasks: 4, Arms: []attack.ArmSection{
				{Arm: attack.Naive, Attack: eval.Of(naive, 10), Cluster: eval.Interval{Low: 0.5, High: 1}},
				{
					Arm: attack.Approvals, Attack: eval.Of(last, 10), Needs: eval.Of(5, 8), Asked: attack.Asked{Needs: 3},
					Stopped: []attack.Stopped{{Gate: "policy", Code: "policy_denied", Wants: 2}, {Gate: suite, Code: "own", Wants: 3}},
					Edges:   attack.Edges{Wants: []attack.Edge{edge}},
				},
			}}
		}
		return &attack.Result{Format: attack.Format, Arms: arms, Overall: section(""), Suites: []attack.Section{section(suite)}}
	}
	other, machine := result("mail", 1, 1), result("mail", 1, 1)
	other.Arms, other.Overall.Arms, other.Suites[0].Arms = arms[1:], other.Overall.Arms[1:], other.Suites[0].Arms[1:]
	machine.Machine = "sha256:1"
	for _, tt := range []struct {
		name  string
		files map[string]*attack.Result
		says  []string // as Markdown
		fails string
	}{
		{
			"two-suites-of-one-group", map[string]*attack.Result{"x-attack-bank.json": result("bank", 10, 1), "x-attack-mail.json": result("mail", 9, 0)},
			[]string{
				"\n### x\n", "| overall | 20 | 95.0 % (19/20), 76.4 to 99.1 % | 5.0 % (1/20), 0.9 to 23.6 % | 62.5 % (10/16), 38.6 to 81.5 % | 0.75, 6 in 8 tasks |",
				"| bank | 10 |", "| mail | 10 |", "| policy | policy_denied | 0 | 4 |", "| bank | own | 0 | 3 |", "| received | screen | screened | 8 | 0 |",
			}, "",
		},
		{
			"two-groups", map[string]*attack.Result{"attack.json": result("bank", 10, 1), "y.attack.json": result("mail", 9, 0)},
			[]string{"\n### attack\n", "\n### y\n", "| bank | 10 | 100.0 %", "| mail | 10 | 90.0 %"}, "",
		},
		{
			"groups-without-the-word", map[string]*attack.Result{"bank.json": result("bank", 10, 1), "mail.json": result("mail", 9, 0)},
			[]string{"\n### bank\n", "\n### mail\n"}, "",
		},
		{
			"one-suite-in-two-groups", map[string]*attack.Result{"before.json": result("bank", 10, 1), "after.json": result("bank", 9, 0)},
			[]string{"\n### before\n", "\n### after\n", "| bank | 10 | 100.0 %", "| bank | 10 | 90.0 %"}, "",
		},
		{
			"groups-of-one-name", map[string]*attack.Result{"x.json": result("bank", 10, 1), "x-attack.json": result("bank", 9, 0)},
			[]string{"\n### x.json\n", "\n### x-attack.json\n"}, "",
		},
		{
			"one-suite-twice", map[string]*attack.Result{"attack-1.json": result("bank", 10, 1), "attack-2.json": result("bank", 10, 1)}, nil,
			`attack-1.json and attack-2.json both hold the suite "bank", and would be added up: remove one of them from the folder`,
		},
		{"other-arms", map[string]*attack.Result{"attack-1.json": result("bank", 10, 1), "attack-2.json": other}, nil, "attack-2.json: it has other arms"},
		{"another-machine", map[string]*attack.Result{"attack-1.json": result("bank", 10, 1), "attack-2.json": machine}, nil, "attack-2.json: it is of another machine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, r := range tt.files { // files of a folder: the order does not matter
				doc, err := json.Marshal(r, json.Deterministic(true))
				if err != nil {
					t.Fatal(err)
				}
				put(t, dir, name, doc)
			}
			r, err := Read(dir)
			if tt.fails != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.fails) {
					t.Fatalf("Read() = %v, want %s", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			md, err := r.Markdown()
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.says {
				if !strings.Contains(string(md), want) {
					t.Errorf("the page does not say %q:\n%s", want, md)
				}
			}
		})
	}
}

// TestCallsOfOneAttackAreCut takes the calls of one attack to their bounds.
func TestCallsOfOneAttackAreCut(t *testing.T) {
	call := eval.Call{Server: "s", Tool: "t", Args: []byte(`{ "a": [1,  2] }`)}
	long := eval.Call{Server: "s", Tool: "t", Args: []byte(`{"a":"` + strings.Repeat("x", maxTextBytes) + `"}`)}
	odd := eval.Call{Server: "s", Tool: "t", Args: []byte(`{"a":`)} // no JSON: it is shown as it is
	for _, tt := range []struct {
		name  string
		calls []eval.Call
		want  int
		last  string
	}{
		{"none", nil, 0, ""},
		{"one", []eval.Call{call}, 1, `s/t {"a":[1,2]}`},
		{"at-the-limit", slicesOf(call, maxCalls), maxCalls, `s/t {"a":[1,2]}`},
		{"one-past-it", slicesOf(call, maxCalls+1), maxCalls + 1, "and 1 more call"},
		{"a-long-one", []eval.Call{long}, 1, fmt.Sprintf("x… (%d bytes)", maxTextBytes+len(`s/t {"a":""}`))},
		{"no-json", []eval.Call{odd}, 1, `s/t {"a":`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := callsOf(&attack.Through{Calls: tt.calls})
			if len(got) != tt.want || len(got) > 0 && !strings.HasSuffix(got[len(got)-1], tt.last) {
				t.Errorf("%d calls, the last %q, want %d and %q", len(got), got, tt.want, tt.last)
			}
		})
	}
}

func slicesOf(c eval.Call, n int) (all []eval.Call) {
	for range n {
		all = append(all, c)
	}
	return all
}

// TestRegressionSuiteHasNoAttacks reads a result of cases without attacks, as those of a user's own traces are.
func TestRegressionSuiteHasNoAttacks(t *testing.T) {
	r := &attack.Result{Format: attack.Format, Arms: []attack.Arm{attack.Approvals}}
	r.Overall = attack.Section{Cases: 3, Tasks: 3, Arms: []attack.ArmSection{{Arm: attack.Approvals, Needs: eval.Of(3, 3), Utility: eval.Of(3, 3)}}}
	doc, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put(t, dir, "own-attacks.json", doc)
	p, err := read(t, dir).page()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Sections {
		if s.ID == "arms" || s.ID == "machine" || s.ID == "through" {
			t.Errorf("there is a section %q about attacks that there are not", s.Title)
		}
	}
	md := string(p.markdown())
	for _, want := range []string{"| none |", "100.0 % (3/3)", "0.00, 0 in 3 tasks"} {
		if !strings.Contains(md, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
