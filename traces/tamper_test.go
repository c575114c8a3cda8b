package traces_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
	"pgfsm/states/statestest"
	"pgfsm/traces"
)

// A spot is a place in a trace and how it is spoiled.
type spot struct {
	pointer string
	how     string
	doc     []byte
	where   string // "header", "step", "outcome"; "" means that the document must be refused as no trace
	seq     int
}

// TestEveryChangeIsDetected changes, drops, doubles and swaps every JSON value and every step of a trace in turn.
func TestEveryChangeIsDetected(t *testing.T) {
	m := mustMachine(t)
	for _, name := range []string{"typed-and-summarized", "approved", "process-gone-when-dispatched"} {
		s := scenario(t, name)
		_, doc := record(t, m, &s)
		var tree any
		if err := json.Unmarshal(doc, &tree); err != nil {
			t.Fatal(err)
		}
		if _, err := traces.Read(canonical.MustMarshal(tree)); err != nil {
			t.Fatalf("%s: the unchanged trace, written anew in canonical form: %v", name, err)
		}
		spots := 0
		visit(tree, "", func(change spot) {
			spots++
			checkSpot(t, name, change)
		}, func() []byte { return canonical.MustMarshal(tree) })
		t.Logf("%s: %d changes, each detected", name, spots)
		if spots < 300 {
			t.Errorf("%s: only %d changes were tried", name, spots)
		}
	}
}

func scenario(tb testing.TB, name string) statestest.Scenario {
	tb.Helper()
	for _, s := range statestest.Scenarios() {
		if s.Name == name {
			return s
		}
	}
	tb.Fatalf("there is no scenario %q", name)
	return statestest.Scenario{}
}

func checkSpot(t *testing.T, name string, c spot) {
	t.Helper()
	_, err := traces.Read(c.doc)
	if err == nil {
		t.Errorf("%s: %s %s is not detected", name, c.how, c.pointer)
		return
	}
	var tampered *traces.TamperError
	if c.where == "" {
		return // no trace at all any more; refused
	}
	if !errors.As(err, &tampered) || tampered.Place != c.where || tampered.Seq != c.seq {
		t.Errorf("%s: %s %s: error %v, want %s %d to be named", name, c.how, c.pointer, err, c.where, c.seq)
	}
}

// visit spoils every value below v and puts it back.
func visit(v any, pointer string, try func(spot), doc func() []byte) {
	tell := func(p, how string) {
		where, seq := expected(p, how)
		try(spot{p, how, doc(), where, seq})
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range sortedNames(v) {
			p, was := pointer+"/"+name, v[name]
			for _, other := range others(was) {
				v[name] = other
				tell(p, fmt.Sprintf("changed to %.20v", other))
			}
			delete(v, name)
			tell(p, "dropped")
			v[name] = was
			v[name+"x"] = was
			tell(p, "doubled under another name")
			delete(v, name+"x")
			visit(was, p, try, doc)
		}
	case []any:
		for i := range v {
			p, was := pointer+"/"+strconv.Itoa(i), v[i]
			for _, other := range others(was) {
				v[i] = other
				tell(p, fmt.Sprintf("changed to %.20v", other))
			}
			v[i] = was
			visit(was, p, try, doc)
		}
	}
}

// sortedNames lists the members of m in canonical order.
func sortedNames(m map[string]any) (names []string) {
	dec := jsontext.NewDecoder(strings.NewReader(string(canonical.MustMarshal(m))))
	dec.ReadToken()
	for dec.PeekKind() == '"' {
		tok, _ := dec.ReadToken()
		names = append(names, tok.String())
		dec.SkipValue()
	}
	return names
}

// others are values that v could be changed to.
func others(v any) []any {
	switch v := v.(type) {
	case string:
		return []any{v + " ", nil}
	case float64:
		return []any{v + 1, -v - 1}
	case bool:
		return []any{!v}
	case nil:
		return []any{false, map[string]any{}}
	case []any:
		return []any{append(append([]any{}, v...), "x"), nil}
	case map[string]any:
		return []any{nil, []any{}}
	}
	return nil
}

// expected says which place must be named for a change at pointer.
func expected(pointer, how string) (string, int) {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	switch {
	case parts[0] == "steps" && len(parts) > 1:
		seq, _ := strconv.Atoi(parts[1])
		return "step", seq
	case len(parts) == 1 && (how == "dropped" || how == "changed to <nil>" || how == "doubled under another name"):
		return "", 0
	case parts[0] == "format" || parts[0] == "steps":
		return "", 0
	case parts[0] == "outcome" || parts[0] == "head":
		return "outcome", 0
	}
	return "header", 0
}

func TestStepsOutOfPlaceAreNamed(t *testing.T) {
	m := mustMachine(t)
	s := scenario(t, "typed-and-summarized")
	_, doc := record(t, m, &s)
	var tree map[string]jsontext.Value
	if err := json.Unmarshal(doc, &tree); err != nil {
		t.Fatal(err)
	}
	var steps []jsontext.Value
	if err := json.Unmarshal(tree["steps"], &steps); err != nil {
		t.Fatal(err)
	}
	n := len(steps)
	check := func(how string, changed []jsontext.Value, seq int) {
		t.Helper()
		tree["steps"] = canonical.MustMarshal(changed)
		_, err := traces.Read(canonical.MustMarshal(tree))
		var tampered *traces.TamperError
		switch {
		case !errors.As(err, &tampered):
			t.Errorf("%s: error %v, want a TamperError", how, err)
		case seq < n && (tampered.Place != "step" || tampered.Seq != seq):
			t.Errorf("%s: error %v, want step %d to be named", how, err, seq)
		}
	}
	for i := range n {
		dropped := append(append([]jsontext.Value{}, steps[:i]...), steps[i+1:]...)
		at := i
		if i == n-1 {
			at = n // a cut tail leaves no bad step: the outcome does not fit
		}
		check(fmt.Sprintf("step %d dropped", i), dropped, at)
		doubled := append(append([]jsontext.Value{}, steps[:i+1]...), steps[i:]...)
		check(fmt.Sprintf("step %d doubled", i), doubled, i+1)
		for j := i + 1; j < n; j++ {
			swapped := append([]jsontext.Value{}, steps...)
			swapped[i], swapped[j] = swapped[j], swapped[i]
			check(fmt.Sprintf("steps %d and %d swapped", i, j), swapped, i)
		}
	}
	check("all steps dropped", []jsontext.Value{}, 0)
}

// TestNumberLiteralsAreKept changes a number's spelling but not its value: also that is a change.
func TestNumberLiteralsAreKept(t *testing.T) {
	m := mustMachine(t)
	s := scenario(t, "typed-and-summarized")
	_, doc := record(t, m, &s)
	changed := strings.Replace(string(doc), `"seq":3,`, `"seq":3.0,`, 1)
	if changed == string(doc) {
		t.Fatal("the trace has no step 3")
	}
	if _, err := traces.Read([]byte(changed)); err == nil {
		t.Error("Read() accepts seq 3.0 for 3")
	}
}
