package fsm_test

import (
	"slices"
	"strings"
	"testing"

	"pgfsm/fsm"
)

type table = fsm.Table[*subject]

// rules lists the rule of every mistake in err, each once, in order.
func rules(err error) []string {
	var all []string
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, one := range joined.Unwrap() {
		mistake, ok := one.(*fsm.Mistake)
		if !ok {
			return append(all, "not a mistake: "+one.Error())
		}
		if !slices.Contains(all, mistake.Rule) {
			all = append(all, mistake.Rule)
		}
	}
	return all
}

// rowOf finds a row that the test is about to break.
func rowOf(t *testing.T, tab *table, from fsm.State, on fsm.Trigger) *fsm.Row[*subject] {
	t.Helper()
	for i := range tab.Rows {
		if tab.Rows[i].From == from && tab.Rows[i].On == on {
			return &tab.Rows[i]
		}
	}
	t.Fatalf("the test table has no row %s -%s->", from, on)
	return nil
}

// again adds a row with everything it needs.
func again(tab *table, from fsm.State, on fsm.Trigger, to fsm.State) {
	row := tab.Rows[0]
	row.From, row.On, row.To = from, on, to
	tab.Rows = append(tab.Rows, row)
}

type newTransitionError struct {
	name  string
	rule  string // one that must be among the mistakes
	wreck func(*testing.T, *table)
}

// refusals break the test table in every way that a proof or a check is there for.
var refusals = []newTransitionError{
	{"nameless-table", "written", func(_ *testing.T, tab *table) { tab.Name = " " }},
	{"place-without-sentence", "written", func(_ *testing.T, tab *table) { tab.Places[3].Established = "" }},
	{"row-without-why", "written", func(_ *testing.T, tab *table) { tab.Rows[3].Why = "\t" }},
	{"guard-without-name", "written", func(_ *testing.T, tab *table) { tab.Rows[3].Guard.Name = "" }},
	{"guard-without-why", "written", func(_ *testing.T, tab *table) { tab.Rows[3].Guard.Why = "" }},
	{"guard-without-function", "allow", func(_ *testing.T, tab *table) { tab.Rows[3].Guard.Allow = nil }},
	{"state-with-space", "named", func(_ *testing.T, tab *table) { tab.Places[1].State = "scr eened" }},
	{"trigger-with-capital", "named", func(t *testing.T, tab *table) { rowOf(t, tab, "planned", "ask").On = "Ask" }},
	{"nameless-state", "named", func(_ *testing.T, tab *table) { tab.Places[1].State = "" }},
	{"state-beginning-with-digit", "named", func(_ *testing.T, tab *table) { tab.Places[1].State = "1screened" }},
	{"place-twice", "declared", func(_ *testing.T, tab *table) { tab.Places = append(tab.Places, tab.Places[2]) }},
	{"no-rows", "declared", func(_ *testing.T, tab *table) { tab.Rows = nil }},
	{"no-places", "declared", func(_ *testing.T, tab *table) { tab.Places = nil }},
	{"row-from-unknown-state", "declared", func(_ *testing.T, tab *table) { again(tab, "dreamt", "block", "blocked") }},
	{"row-to-unknown-state", "declared", func(t *testing.T, tab *table) { rowOf(t, tab, "planned", "ask").To = "asked" }},
	{"unknown-effect", "declared", func(_ *testing.T, tab *table) { tab.Claims.Effects[0].State = "sent" }},
	{"unknown-dominator", "declared", func(_ *testing.T, tab *table) { tab.Claims.Effects[0].Dominators[0] = "seen" }},
	{"unknown-via", "declared", func(_ *testing.T, tab *table) { tab.Claims.Between[0].Via = "agreed" }},
	{"unknown-state-in-exits", "declared", func(_ *testing.T, tab *table) { tab.Claims.Exits[1].States[0] = "x" }},
	{"unknown-sole-entry", "declared", func(_ *testing.T, tab *table) { tab.Claims.SoleEntry[0] = "x" }},
	{"unused-place", "used", func(_ *testing.T, tab *table) {
		tab.Places = append(tab.Places, fsm.Place{State: "idle", Established: "nothing", Terminal: true})
	}},
	{"unused-claimed-trigger", "used", func(_ *testing.T, tab *table) { tab.Claims.Exits[2].On[0] = "deny" }},
	{"two-rows-for-one-trigger", "deterministic", func(_ *testing.T, tab *table) {
		again(tab, "received", "screen", "screened")
	}},
	{"trigger-with-two-meanings", "one-meaning", func(_ *testing.T, tab *table) {
		again(tab, "received", "plan", "validated")
	}},
	{"cycle", "acyclic", func(_ *testing.T, tab *table) { again(tab, "approved", "hold", "pending") }},
	{"row-to-itself", "acyclic", func(_ *testing.T, tab *table) { again(tab, "planned", "plan", "planned") }},
	{"way-back", "ranks-rise", func(_ *testing.T, tab *table) { again(tab, "approved", "hold", "pending") }},
	{"way-out-of-terminal", "terminals-closed", func(_ *testing.T, tab *table) {
		again(tab, "answered", "block", "blocked")
	}},
	{"no-terminal", "terminals-closed", func(_ *testing.T, tab *table) {
		for i := range tab.Places {
			tab.Places[i].Terminal = false
		}
	}},
	{"dead-end", "reaches-terminal", func(_ *testing.T, tab *table) { tab.Places[18].Terminal = false }},
	{"unreachable-state", "reachable", func(t *testing.T, tab *table) {
		rowOf(t, tab, "assessed", "hold").From = "pending"
	}},
	{"two-effects-on-a-path", "one-effect", func(_ *testing.T, tab *table) {
		again(tab, "approved", "dispatch", "permitted")
	}},
	{"no-effect-trigger", "one-effect", func(_ *testing.T, tab *table) { tab.Claims.Effects = nil }},
	{"both-effects-on-a-path", "one-effect", func(_ *testing.T, tab *table) {
		again(tab, "delegated", "dispatch", "dispatched")
	}},
	{"effect-by-another-trigger", "one-way-in-dispatched", func(_ *testing.T, tab *table) {
		again(tab, "assessed", "rush", "dispatched")
	}},
	{"effect-by-a-second-row", "one-way-in-dispatched", func(_ *testing.T, tab *table) {
		again(tab, "approved", "dispatch", "dispatched")
	}},
	{"way-round-a-dominator", "dominates-delegated-authorized", func(_ *testing.T, tab *table) {
		again(tab, "validated", "assess", "assessed")
	}},
	{"dominator-is-the-start", "dominates-dispatched-received", func(_ *testing.T, tab *table) {
		tab.Claims.Effects[0].Dominators[0] = "received"
	}},
	{"dominator-is-the-effect", "dominates-dispatched-dispatched", func(_ *testing.T, tab *table) {
		tab.Claims.Effects[0].Dominators[0] = "dispatched"
	}},
	{"way-round-the-approval", "between-pending-permitted", func(_ *testing.T, tab *table) {
		again(tab, "pending", "permit", "permitted")
	}},
	{"between-without-a-path", "between-permitted-pending", func(_ *testing.T, tab *table) {
		tab.Claims.Between[0] = fsm.Between{From: "permitted", To: "pending", Via: "approved"}
	}},
	{"missing-exit", "exits-1", func(t *testing.T, tab *table) { rowOf(t, tab, "pending", "block").From = "dispatched" }},
	{"empty-exits", "exits-7", func(_ *testing.T, tab *table) {
		tab.Claims.Exits = append(tab.Claims.Exits, fsm.Exits{})
	}},
	{"second-entry", "sole-entry-executed", func(_ *testing.T, tab *table) {
		again(tab, "permitted", "return", "executed")
	}},
}

// TestCompileRefuses shows every proof and check red once.
func TestCompileRefuses(t *testing.T) {
	for _, test := range refusals {
		t.Run(test.name, func(t *testing.T) {
			tab := realistic()
			test.wreck(t, &tab)
			m, err := fsm.Compile(tab)
			if m != nil || !slices.Contains(rules(err), test.rule) {
				t.Errorf("Compile = %v, %v with rules %v, want a mistake by rule %s", m, err, rules(err), test.rule)
			}
		})
	}
}

// A proof that no table above breaks would be one that nobody has seen fail.
func TestEveryKindOfProofIsSeenToFail(t *testing.T) {
	for _, p := range fsm.Prove(realistic().Spec()) {
		kind := strings.SplitN(p.ID, "-", 2)[0]
		red := func(r newTransitionError) bool { return strings.HasPrefix(r.rule, kind) }
		if !slices.ContainsFunc(refusals, red) {
			t.Errorf("no refusal breaks %s", p.ID)
		}
	}
}

func TestCompileReportsEverythingAtOnce(t *testing.T) {
	tab := realistic()
	tab.Rows[0].Why, tab.Rows[1].Guard.Allow, tab.Places[2].Established = "", nil, ""
	_, err := fsm.Compile(tab)
	want := `fsm: table "pgfsm": allow: ` +
		`row 2 (received -block-> blocked): guard "gate_blocks" has no Allow function
fsm: table "pgfsm": written: place 3 (discovered) has no established sentence
fsm: table "pgfsm": written: row 1 (received -screen-> screened) has no why`
	if err == nil || err.Error() != want {
		t.Errorf("Compile = %v, want %v", err, want)
	}
}

func TestCompileRefusesTheZeroTable(t *testing.T) {
	if m, err := fsm.Compile(fsm.Table[int]{}); err == nil {
		t.Errorf("Compile(zero) = %v, nil, want an error", m)
	}
}
