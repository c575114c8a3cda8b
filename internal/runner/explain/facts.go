package explain

import (
	"cmp"
	"fmt"
	"strings"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/condition"
)

// Sources of [Facts].
const (
	FromAllowlist = "allowlist"       // the allowlist has a pin of the tool, or none
	FromStored    = "kept definition" // the pin's; a run calls no other definition of the tool
	FromServer    = "server"          // the server's current listing
	FromCaller    = "given"           // a flag or a test gives the fact
	FromNowhere   = "unknown"
)

// Facts hold what conditions can read about a tool besides its name, and the sources. If risk rules
// or policies read the client's session, or the origins of arguments, and none is given, Session is
// [FromNowhere]: the call is judged as one without a known session.
type Facts struct {
	Pinned          bool               `json:"pinned"`
	PinnedFrom      string             `json:"pinned_from"`
	Annotations     policy.Annotations `json:"annotations"`
	AnnotationsFrom string             `json:"annotations_from"`
	Session         string             `json:"session,omitzero"`
}

// Facts returns what is known about a tool. The caller's values take precedence; nil gives none.
func (e *Explainer) Facts(server, tool string, pinned *bool, annotations *policy.Annotations) Facts {
	f := Facts{Pinned: policy.PinOf(e.bundle.Content().Pins, server, tool) != "", PinnedFrom: FromAllowlist,
		AnnotationsFrom: FromNowhere}
	if t, _ := e.catalog.Find(server, tool); t != nil {
		f.Annotations, f.AnnotationsFrom = t.Annotations, FromStored
		if e.live {
			f.AnnotationsFrom = FromServer
		}
	}
	if pinned != nil {
		f.Pinned, f.PinnedFrom = *pinned, FromCaller
	}
	if annotations != nil {
		f.Annotations, f.AnnotationsFrom = *annotations, FromCaller
	}
	return f
}

// String describes the facts for people.
func (f Facts) String() string {
	pinned := "not pinned"
	if f.Pinned {
		pinned = "pinned"
	}
	var hints []string
	for _, h := range []struct {
		name  string
		value *bool
	}{
		{"readOnlyHint", f.Annotations.ReadOnly}, {"destructiveHint", f.Annotations.Destructive},
		{"idempotentHint", f.Annotations.Idempotent}, {"openWorldHint", f.Annotations.OpenWorld},
	} {
		if h.value != nil {
			hints = append(hints, fmt.Sprintf("%s %t", h.name, *h.value))
		}
	}
	text := fmt.Sprintf("%s (%s), annotations: %s (%s)", pinned, f.PinnedFrom,
		cmp.Or(strings.Join(hints, ", "), "none"), f.AnnotationsFrom)
	if f.Session != "" {
		text += ", session: " + f.Session
	}
	return text
}

// ParseAnnotations reads a JSON object of MCP's hints.
func ParseAnnotations(text string) (*policy.Annotations, error) {
	hints := new(policy.Annotations)
	if err := canonical.Unmarshal([]byte(text), hints); err != nil {
		return nil, fmt.Errorf("annotations: %w; give readOnlyHint, destructiveHint, idempotentHint and openWorldHint, "+
			"as far as the tool has them, such as '{\"readOnlyHint\": true}'", err)
	}
	return hints, nil
}

// parseHistory reads results of queries about earlier calls, each as QUERY=NUMBER.
func parseHistory(values []string) (answers []policy.HistoryAnswer, err error) {
	for _, value := range values {
		equals := strings.LastIndexByte(value, '=')
		if equals < 0 {
			return nil, fmt.Errorf("history: %q has no number; write 'history.count(\"actor\", \"1h\")=5'", value)
		}
		a, err := condition.ParseAnswer(strings.TrimSpace(value[:equals]), strings.TrimSpace(value[equals+1:]))
		if err != nil {
			return nil, fmt.Errorf("history: %q: %w; write 'history.count(\"actor\", \"1h\")=5'", value, err)
		}
		answers = append(answers, a)
	}
	return answers, nil
}
