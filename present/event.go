package present

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
	"pgfsm/policy/visible"
	"pgfsm/traces/ledger"
)

// An Event is one event of the ledger with its whole payload.
type Event struct {
	SchemaVersion int              `json:"schema_version,omitzero"` // 0 inside another document
	Seq           int64            `json:"seq"`
	At            string           `json:"at"`
	Type          ledger.Type      `json:"type"`
	Run           string           `json:"run"`
	By            string           `json:"by"`
	Payload       jsontext.Value   `json:"payload"`
	Prev          canonical.Digest `json:"prev"`
	RunPrev       canonical.Digest `json:"run_prev"`
	Hash          canonical.Digest `json:"hash"`
}

// NewEvent returns an event with its payload.
func NewEvent(r ledger.Reader, e *ledger.Event) (Event, error) {
	payload, err := e.Whole(r)
	return Event{
		Seq: e.Seq, At: e.At, Type: e.Type, Run: e.RunID, By: e.By, Payload: payload, Prev: e.Prev, RunPrev: e.RunPrev, Hash: e.Hash,
	}, err
}

// details are the most important members of payloads, and how a line introduces them.
var details = map[ledger.Type][]struct{ pointer, word string }{
	ledger.RequestCreated:    {{"/call/server", ""}, {"/call/tool", ""}, {"/env", "env "}},
	ledger.CallReserved:      {{"/last", "steps up to "}},
	ledger.RiskScored:        {{"/mode", ""}, {"/score", "score "}},
	ledger.DecisionMade:      {{"/outcome", ""}, {"/policy", "policy "}, {"/code", ""}, {"/reason", ""}},
	ledger.ApprovalRequested: {{"/quorum", "quorum "}, {"/approvers", "of "}, {"/expires", "until "}},
	ledger.ApprovalApproved:  {{"/reason", ""}},
	ledger.ApprovalDenied:    {{"/reason", ""}},
	ledger.ApprovalExpired:   {{"/expires", "at "}},
	ledger.RunClaimed:        {{"/owner", "by process "}},
	ledger.ProxySent:         {{"/permit", "permit "}},
	ledger.ToolResult:        {{"/bytes", "bytes "}},
	ledger.RunEnded:          {{"/outcome/state", ""}, {"/outcome/code", ""}, {"/outcome/reason", ""}},
	ledger.TokenCreated:      {{"/role", ""}, {"/name", "for "}, {"/expires", "until "}},
	ledger.TokenRevoked:      {{"/id", ""}},
	ledger.OutcomeDelivered:  {{"/how", "by "}},
	ledger.MCPPassed:         {{"/direction", ""}, {"/server", ""}, {"/method", ""}},
	ledger.LedgerPruned:      {{"/events", "events "}, {"/runs", "runs "}, {"/before", "before "}},
}

// Line describes the event to people in one line, escaped.
func (e *Event) Line(withRun bool) string {
	words := []string{fmt.Sprintf("%6d  %s  %-18s", e.Seq, visible.Text(e.At), visible.Text(string(e.Type)))}
	if withRun {
		words = append(words, fmt.Sprintf("%-36s", visible.Text(e.Run)))
	}
	words = append(words, visible.Clip(e.By, maxWords))
	for _, d := range details[e.Type] {
		text := valueAt(e.Payload, d.pointer)
		if d.pointer == "/approvers" && text == "[]" {
			text = "any approver"
		}
		if text != "" {
			words = append(words, d.word+visible.Clip(text, maxWords))
		}
	}
	return strings.Join(words, "  ")
}

// valueAt returns the value at a JSON pointer, a string without its quotation marks; empty if there is none.
func valueAt(v jsontext.Value, pointer string) string {
	for name := range jsontext.Pointer(pointer).Tokens() {
		var members map[string]jsontext.Value
		if json.Unmarshal(v, &members) != nil || members[name] == nil {
			return ""
		}
		v = members[name]
	}
	if v.Kind() != '"' {
		return string(v)
	}
	text, err := canonical.Unquote(v)
	if err != nil {
		return string(v)
	}
	return text
}
