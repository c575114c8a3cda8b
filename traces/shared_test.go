package traces_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
)

// TestKnownListingInAnotherPlace puts the bytes of a listing that the reader knows where no event stands: in the arguments
// of a plan. A planner can do that. An honest trace stays honest, and a trace that was changed so stays changed.
func TestKnownListingInAnotherPlace(t *testing.T) {
	m := statestest.MustMachine(t)
	s := scenario(t, "tool-unknown")
	plan := func(event string) states.Event {
		return &states.Completed{Content: canonical.Text(`{"type":"call_tool","server":"s","tool":"t","args":{"event":` + event + `}}`)}
	}
	s.World.Plan = plan(`""`)
	_, empty := record(t, m, &s)
	listing := listingOf(t, empty)

	honest := scenario(t, "tool-unknown")
	honest.World.Plan = plan(listing)
	_, carrying := record(t, m, &honest)

	warm := traces.NewReplayer(m, nil)
	if _, err := warm.Read(empty); err != nil {
		t.Fatal(err)
	}
	trace, err := warm.Read(carrying)
	if err != nil {
		t.Fatalf("an honest trace whose plan carries the listing: %v", err)
	}
	if _, err := warm.Replay(trace); err != nil {
		t.Errorf("Replay() = %v", err)
	}
	forged := bytes.Replace(empty, []byte(`"args":{"event":""}`), []byte(`"args":{"event":`+listing+`}`), 1)
	if bytes.Equal(forged, empty) {
		t.Fatal("nothing was changed")
	}
	_, cold := traces.Read(forged)
	_, err = warm.Read(forged)
	if cold == nil || err == nil || cold.Error() != err.Error() {
		t.Errorf("a forged trace: cold reader %v, warm reader %v; want the same refusal", cold, err)
	}
}

// listingOf returns the recorded listing of a trace, byte for byte.
func listingOf(t *testing.T, doc []byte) string {
	t.Helper()
	var tree struct {
		Steps []struct {
			Event jsontext.Value `json:"event"`
		} `json:"steps"`
	}
	if err := json.Unmarshal(doc, &tree); err != nil {
		t.Fatal(err)
	}
	listing := string(tree.Steps[1].Event)
	if !strings.HasPrefix(listing, `{"happened":"tools_listed"`) || len(listing) < 1<<10 {
		t.Fatalf("step 1 holds no listing that is worth remembering: %.60s", listing)
	}
	return listing
}
