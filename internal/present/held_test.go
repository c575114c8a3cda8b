package present_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// boundIn names the row that shows each field of a binding.
var boundIn = map[string]string{
	"Account": "Runs as", "Actor": "Requester", "Approvers": "Votes", "Arguments": "Arguments", "Condition": "Condition", "Connection": "Connection",
	"Definition": "Definition", "Env": "Environment", "Expires": "Expires", "Fresh": "Sign-in", "Mode": "Risk", "OnBehalfOf": "On behalf of",
	"Pin": "Pin", "Policy": "Policy", "Quorum": "Votes", "Risk": "Risk rules", "Run": "Run", "Schema": "Schema", "Score": "Risk",
	"Server": "Server", "Tool": "Tool", "Kind": "Kind of request", "Session": "Client's session", "Origins": "Origins",
}

// TestBoundRows: each field of a binding has a value of its own, and the row that names it shows this value. A field that is bound and
// not shown turns this red.
func TestBoundRows(t *testing.T) {
	var h present.HeldCall
	bound := reflect.ValueOf(&h.Bound).Elem()
	texts := make(map[string][]string)
	for i := range bound.NumField() {
		texts[bound.Type().Field(i).Name] = fill(t, bound.Field(i), 100+10*i)
	}
	h.Bound.Fresh = 7 * 60_000
	texts["Fresh"] = []string{"7m0s"}
	h.Request.Binding = canonical.Sum("binding", nil)

	rows := make(map[string]string)
	for _, row := range h.BoundRows() {
		rows[row.Name] = row.Value
	}
	if rows["Binding"] != string(h.Request.Binding) {
		t.Errorf("the digest is shown as %q", rows["Binding"])
	}
	for field, wants := range texts { // in any order
		for _, want := range wants {
			if row := rows[boundIn[field]]; want == "" || !strings.Contains(row, want) {
				t.Errorf("%s is %q: the row %q shows %q", field, want, boundIn[field], row)
			}
		}
	}
}

// fill gives a field, and each part of it, a value that no other has. It returns the texts of these values.
func fill(t *testing.T, field reflect.Value, n int) (texts []string) {
	t.Helper()
	switch field.Interface().(type) {
	case canonical.Digest:
		field.SetString(string(canonical.Sum("field", []byte{byte(n)})))
		return []string{field.String()}
	case *states.Account:
		a := &states.Account{Connection: "the-connection", Issuer: "https://issuer.example.com", Label: "the-label", Scopes: []string{"repo", "read:org"}}
		field.Set(reflect.ValueOf(a))
		return []string{a.Connection, a.Issuer, a.Label, "repo read:org"}
	case []states.BoundRisk:
		rule := states.BoundRisk{Matched: false, Mode: "mode-of-rule", Rule: "rule-id", Score: 4711}
		field.Set(reflect.ValueOf([]states.BoundRisk{rule}))
		return []string{"mode-of-rule", "rule-id", "4711", "without effect"}
	case []string:
		field.Set(reflect.ValueOf([]string{"role-one", "role-two"}))
		return []string{"role-one", "role-two"}
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(fmt.Sprint("value-", n))
		return []string{field.String()}
	case reflect.Int, reflect.Int64:
		field.SetInt(int64(n))
		return []string{fmt.Sprint(n)}
	}
	t.Fatalf("no value is known for a %s", field.Type())
	return nil
}

// TestTracks: the states of the machine are in one phase each, or are those in which a run begins or ends early. A track says where a run is.
func TestTracks(t *testing.T) {
	phaseOf := make(map[string]string)
	for _, phase := range states.Phases(states.KindAgent) {
		for _, state := range phase.States {
			if phaseOf[string(state)] != "" {
				t.Errorf("%s is in two phases", state)
			}
			phaseOf[string(state)] = phase.Name
		}
	}
	for _, place := range states.Table().Places {
		early := place.State == states.Received || place.State == states.NeedsInfo || place.State == states.Blocked || place.State == states.Failed
		for _, state := range []fsm.State{states.Delegated, states.Reported, states.Unreported} { // TestTracksOfDelegatedCalls
			early = early || place.State == state
		}
		if early == (phaseOf[string(place.State)] != "") {
			t.Errorf("%s is in the phase %q", place.State, phaseOf[string(place.State)])
		}
	}
	for _, tc := range []struct {
		name, state, ended string
		steps              int
		held               bool
		want               string
	}{
		{"just-asked", "received", "", 0, false, "Gates □□□□□□  Call □□□  Result □□□  0 of 12 states"},
		{"waits-for-approvers", "pending", "", 7, true, "Gates ■■■■■■  Approval ▣□  Call □□□  Result □□□  7 of 14 states: pending: waits here"},
		{"answered", "answered", "at", 12, false, "Gates ■■■■■■  Call ■■■  Result ■■■  12 of 12 states"},
		{"answered-without-summary", "answered", "at", 11, false, "Gates ■■■■■■  Call ■■■  Result ■■  11 of 11 states"},
		{"answered-untyped", "answered", "at", 10, false, "Gates ■■■■■■  Call ■■■  Result ■  10 of 10 states"},
		{"arguments-refused", "blocked", "at", 4, false, "Gates ■■■✗□□  Call □□□  Result □□□  4 of 12 states: validated: ended here"},
		{"denied-by-an-approver", "blocked", "at", 8, true, "Gates ■■■■■■  Approval ✗□  Call □□□  Result □□□  7 of 14 states: pending: ended here"},
		{"call-failed", "failed", "at", 9, false, "Gates ■■■■■■  Call ■✗□  Result □□□  8 of 12 states: dispatched: ended here"},
		{"not-typed", "failed", "at", 10, false, "Gates ■■■■■■  Call ■■■  Result ✗□□  10 of 12 states: typed: ended here"},
		{"asked-back", "needs_info", "at", 4, false, "Gates ■■?□□□  Call □□□  Result □□□  3 of 12 states: planned: asked back"},
		{"refused-at-once", "blocked", "at", 1, false, "Gates ✗□□□□□  Call □□□  Result □□□  1 of 12 states: screened: ended here"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := present.Run{State: tc.state, Ended: tc.ended, Steps: tc.steps}
			if tc.held {
				r.Binding = canonical.Sum("binding", nil)
			}
			got := present.NewTrack(&r).Text(func(_ present.TrackClass, sign string) string { return sign })
			if got != tc.want {
				t.Errorf("the track is %q, want %q", got, tc.want)
			}
		})
	}
}

// TestTracksOfDelegatedCalls: a call that the client makes itself ends with its report.
func TestTracksOfDelegatedCalls(t *testing.T) {
	for _, tc := range []struct {
		name, state, ended string
		status             ledger.Status
		steps              int
		want               string
	}{
		{"handed-out", "delegated", "", ledger.Delegated, 8, "Gates ■■■■■■  Permit ■▣  Report □  8 of 9 states: delegated: waits here"},
		{"reported", "reported", "at", ledger.Reported, 9, "Gates ■■■■■■  Permit ■■  Report ■  9 of 9 states"},
		{"unreported", "unreported", "at", ledger.Unreported, 9, "Gates ■■■■■■  Permit ■▣  Report □  8 of 9 states: delegated: waits here"},
		{"denied", "blocked", "at", ledger.Denied, 6, "Gates ■■■■■✗  Permit □□  Report □  6 of 9 states: assessed: ended here"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := present.Run{Kind: states.KindHook, State: tc.state, Ended: tc.ended, Status: tc.status, Steps: tc.steps}
			got := present.NewTrack(&r).Text(func(_ present.TrackClass, sign string) string { return sign })
			if got != tc.want {
				t.Errorf("the track is %q, want %q", got, tc.want)
			}
		})
	}
}
