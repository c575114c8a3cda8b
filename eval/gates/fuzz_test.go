package gates

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgfsm/internal/test/check"
	"pgfsm/policy/corpus"
	"pgfsm/states"
)

// plannerOutputs are the outputs of all corpora that are small enough for a fuzzer.
func plannerOutputs(tb testing.TB) (all [][]byte) {
	tb.Helper()
	plans, err := corpus.Load[corpus.Case]("plans")
	check.NoError(tb, err)
	runs, err := corpus.Load[corpus.Run]("runs")
	check.NoError(tb, err)
	for _, p := range plans {
		all = append(all, p.Bytes())
	}
	for _, r := range runs {
		all = append(all, r.Bytes())
	}
	return slices.DeleteFunc(all, func(text []byte) bool { return len(text) > 2000 })
}

// checkRun takes a planner's output through the machine. A call that is made is the plan's, of an allowed tool, and its arguments fit
// the schema, by readers that share no code with the gates.
func checkRun(t *testing.T, e *evaluation, plain *scene, output []byte) {
	r, w := plain.newRun(output)
	o, err := e.subject.play(w, e.runner, r)
	switch {
	case err != nil || len(w.Calls) > 1:
		t.Fatalf("%q: %v, %d calls", output, err, len(w.Calls))
	case len(w.Calls) == 0:
		if o.State == string(states.Answered) {
			t.Fatalf("%q: answered without a call", output)
		}
		return
	}
	c := w.Calls[0]
	var args map[string]any
	if !json.Valid(output) || !isPlanned(output, c) || decodeNumbers(c.Args, &args) != nil {
		t.Fatalf("%q: the call %s is not the plan's", output, c.Args)
	}
	if !(c.Server == serverKB && c.Tool == toolFetch && fetchFits(args) || c.Server == serverDesk && c.Tool == toolSearch && searchFits(args)) {
		t.Fatalf("%q: called %s of %s with %s", output, c.Tool, c.Server, c.Args)
	}
}

var entryID = regexp.MustCompile(`^entry-[0-9]{3}\z`)

// fetchFits checks what matters most of the arguments of fetch_entry, by hand.
func fetchFits(args map[string]any) bool {
	for name := range args {
		if !slices.Contains([]string{"entry_id", "lang", "version", "tags", "exact", "weight", "filter"}, name) {
			return false
		}
	}
	id, _ := args["entry_id"].(string)
	lang, given := args["lang"]
	return entryID.MatchString(id) && (!given || lang == "en" || lang == "de")
}

// searchFits checks the arguments of search_tickets, by hand.
func searchFits(args map[string]any) bool {
	query, isText := args["query"].(string)
	limit, limited := args["limit"]
	_, isNumber := limit.(json.Number)
	n := utf8.RuneCountInString(query)
	return isText && n >= 1 && n <= 80 && limited == isNumber && len(args) == 1 || limited && isNumber && len(args) == 2
}

func FuzzRun(f *testing.F) {
	for _, text := range plannerOutputs(f) {
		f.Add(text)
	}
	e, plain := evaluates(f, realSubject())
	f.Fuzz(func(t *testing.T, output []byte) {
		if strings.Count(string(output), "{") < 100 {
			checkRun(t, e, plain, output)
		}
	})
}
