package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestServeLogJSON: every line of the log is a JSON object, and those about calls and votes have stable keys.
func TestServeLogJSON(t *testing.T) {
	t.Parallel()
	o := newOffice(t, holdLook, "limits: {rate: {tools: {echo: {look: {per_minute: 1, burst: 2}}}}}\n")
	o.stop(t, exitYes)
	o.served = serve(t, o.dir, "--log-format", "json")
	a := o.agent("/mcp", o.ci)
	run := o.held(t, a, `{"n":1}`)
	o.decide(t, "approve", run, o.bob)
	o.ended(t, run, "executed", "")
	a.call("echo__nothing", `{}`)
	denied := o.held(t, a, `{"n":2}`)
	o.decide(t, "deny", denied, o.bob)
	o.ended(t, denied, "denied", "approval_denied")
	a.call("echo__look", `{"n":3}`)
	o.stop(t, exitYes)
	want := map[string][]string{ // the keys of a line, in their order
		"held":    {"time", "level", "msg", "run", "actor", "server", "tool", "policy"},
		"vote":    {"time", "level", "msg", "run", "actor", "approve"},
		"call":    {"time", "level", "msg", "run", "actor", "server", "tool", "state", "code", "effect", "reason"},
		"limited": {"time", "level", "msg", "by", "actor", "server", "tool", "retry_after_s"},
	}
	seen, ends := make(map[string]int), make(map[string]int) // lines by message, and lines "call" by run
	for line := range strings.Lines(o.stderr.String()) {
		dec, keys, object := json.NewDecoder(strings.NewReader(line)), []string(nil), make(map[string]any)
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatalf("a line is no JSON object: %v\n%s", err, line)
		}
		for at := 0; dec.More() || at == 0; at++ {
			token, err := dec.Token()
			if err != nil {
				break
			}
			if key, ok := token.(string); ok && at%2 == 1 {
				keys = append(keys, key)
			}
		}
		msg := object["msg"].(string)
		seen[msg]++
		if known := want[msg]; known != nil && !slices.Equal(keys, known) {
			t.Errorf("a line %q has the keys %q, want %q", msg, keys, known)
		}
		if msg == "call" && object["run"] == run && (object["state"] != "answered" || object["actor"] != "ci" || object["tool"] != "look") {
			t.Errorf("the end of the approved call is logged as %s", line)
		}
		if id, _ := object["run"].(string); msg == "call" && id != "" {
			ends[id]++
		}
		if msg == "vote" && object["run"] == run && (object["run"] != run || object["actor"] != "bob" || object["approve"] != true) {
			t.Errorf("the vote is logged as %s", line)
		}
	}
	if ends[run] != 1 || ends[denied] != 1 {
		t.Errorf("%d lines tell of the end of the approved call, %d of the denied one, want one each", ends[run], ends[denied])
	}
	for msg := range want { // in any order
		if seen[msg] == 0 {
			t.Errorf("no line %q in\n%s", msg, o.stderr)
		}
	}
	command(t.Context(), nil, "serve", "-c", o.config, "--log-format", "xml").Want(t, exitCould)
}
