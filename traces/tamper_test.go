package traces_test

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
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

// TestEveryChangeIsDetected changes, drops, doubles and swaps every JSON value and every step of a
// trace in turn.
func TestEveryChangeIsDetected(t *testing.T) {
	m := statestest.MustMachine(t)
	all := map[string][]byte{}
	for _, name := range []string{ // together they have every command, event and fact
		"typed-and-summarized", "approved", "parked", "planner-asks-back", "tool-not-allowed", "call-timed-out",
		"process-gone-when-dispatched", "result-not-utf8", "policy-on-trial-is-recorded", "risk-that-fails-is-more",
	} {
		s := statestest.Find(t, name)
		_, all[name] = record(t, m, &s)
	}
	if os.Getenv("PGFSM_SOAK") != "" {
		names, docs := good(t)
		for i, name := range names {
			all[name] = docs[i]
		}
	}
	total := 0
	for name, doc := range all {
		var tree any
		check.NoError(t, json.Unmarshal(doc, &tree))
		if _, err := traces.Read(canonical.MustMarshal(tree)); err != nil {
			t.Fatalf("%s: the unchanged trace, written anew in canonical form: %v", name, err)
		}
		changes := 0
		visit(tree, "", func(any) {}, func(change spot) {
			changes++
			checkSpot(t, name, change)
		}, func() []byte { return canonical.MustMarshal(tree) })
		if changes < 150 {
			t.Errorf("%s: only %d changes were tried", name, changes)
		}
		total += changes
	}
	t.Logf("%d traces, %d changes, each detected", len(all), total)
}

func checkSpot(t *testing.T, name string, c spot) {
	t.Helper()
	_, err := traces.Read(c.doc)
	var tampered *traces.TamperError
	switch {
	case err == nil:
		t.Errorf("%s: %s %s is not detected", name, c.how, c.pointer)
	case c.where == "":
		if !strings.Contains(err.Error(), "not a trace") {
			t.Errorf("%s: %s %s: error %v, want it to be no trace at all", name, c.how, c.pointer, err)
		}
	case !errors.As(err, &tampered) || tampered.Place != c.where || tampered.Seq != c.seq && c.seq != stepsBefore:
		t.Errorf("%s: %s %s: error %v, want %s %d to be named", name, c.how, c.pointer, err, c.where, c.seq)
	}
}

// visit spoils every value below v, which stands at pointer and is replaced by set, and puts it
// back.
func visit(v any, pointer string, set func(any), try func(spot), doc func() []byte) {
	tell := func(p, how string) {
		where, seq := expected(p, how)
		try(spot{p, how, doc(), where, seq})
	}
	switch v := v.(type) {
	case map[string]any:
		names := sortedNames(v)
		for i, name := range names {
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
			if next := names[(i+1)%len(names)]; pointer != "" && !reflect.DeepEqual(was, v[next]) {
				v[name], v[next] = v[next], v[name]
				tell(p, "swapped with "+next)
				v[name], v[next] = v[next], v[name]
			}
			visit(was, p, func(x any) { v[name] = x }, try, doc)
		}
	case []any:
		for i := range v {
			p, was := pointer+"/"+strconv.Itoa(i), v[i]
			for _, other := range others(was) {
				v[i] = other
				tell(p, fmt.Sprintf("changed to %.20v", other))
			}
			v[i] = was
			if pointer != "/steps" { // steps are dropped, doubled and swapped in a test of their own
				set(slices.Delete(slices.Clone(v), i, i+1))
				tell(p, "dropped")
				set(slices.Insert(slices.Clone(v), i, was))
				tell(p, "doubled")
				if next := (i + 1) % len(v); !reflect.DeepEqual(was, v[next]) {
					swapped := slices.Clone(v)
					swapped[i], swapped[next] = swapped[next], swapped[i]
					set(swapped)
					tell(p, "swapped")
				}
				set(v)
			}
			visit(was, p, func(x any) { v[i] = x }, try, doc)
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
	case len(parts) == 1 && how == "doubled under another name":
		return "header", 0
	case parts[0] == "format":
		return "", 0
	case parts[0] == "steps" && len(parts) > 1:
		seq, _ := strconv.Atoi(parts[1])
		return "step", seq
	case parts[0] == "steps" && (how == "dropped" || how == "changed to <nil>"):
		return "step", 0
	case parts[0] == "steps":
		return "step", stepsBefore
	case parts[0] == "outcome" || parts[0] == "head":
		return "outcome", 0
	}
	return "header", 0
}

// stepsBefore stands for the number of steps that a trace has: what is put behind them is named by
// it.
const stepsBefore = -1

func TestStepsOutOfPlaceAreNamed(t *testing.T) {
	m := statestest.MustMachine(t)
	s := statestest.Find(t, "typed-and-summarized")
	_, doc := record(t, m, &s)
	var tree map[string]jsontext.Value
	check.NoError(t, json.Unmarshal(doc, &tree))
	var steps []jsontext.Value
	check.NoError(t, json.Unmarshal(tree["steps"], &steps))
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
	m := statestest.MustMachine(t)
	s := statestest.Find(t, "typed-and-summarized")
	_, doc := record(t, m, &s)
	changed := strings.Replace(string(doc), `"seq":3,`, `"seq":3.0,`, 1)
	if changed == string(doc) {
		t.Fatal("the trace has no step 3")
	}
	if _, err := traces.Read([]byte(changed)); err == nil {
		t.Error("Read() accepts seq 3.0 for 3")
	}
}
