package present

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
)

// An Event is one event of the ledger.
type Event struct {
	SchemaVersion int            `json:"schema_version,omitzero"` // 0 inside another document
	Entry         int64          `json:"entry"`                   // index of the event's entry
	At            string         `json:"at"`
	Type          ledger.Type    `json:"type"`
	Run           string         `json:"run"`
	By            string         `json:"by"`
	Display       string         `json:"display,omitzero"` // name of the event's actor for people
	Payload       jsontext.Value `json:"payload"`
}

// NewEvent returns an event in its form for people: the requester is the actor of a created
// request.
func NewEvent(e *ledger.Event) Event {
	actor, display := e.By, valueAt(e.Payload, "/display")
	if e.Type == ledger.RequestCreated {
		actor, display = valueAt(e.Payload, "/request/actor"), valueAt(e.Payload, "/request/identity/display")
	}
	return Event{
		Entry:   e.Index,
		At:      e.At,
		Type:    e.Type,
		Run:     e.RunID,
		By:      actor,
		Display: display,
		Payload: e.Payload,
	}
}

// details lists the most important members of payloads, and the words that introduce them in a
// line.
var details = map[ledger.Type][]struct{ pointer, word string }{
	ledger.LogCreated:        {{"/origin", ""}},
	ledger.RequestCreated:    {{"/call/server", ""}, {"/call/tool", ""}},
	ledger.CallReserved:      {{"/last", "steps up to "}},
	ledger.RiskScored:        {{"/mode", ""}, {"/score", "score "}},
	ledger.DecisionMade:      {{"/outcome", ""}, {"/policy", "policy "}, {"/code", ""}, {"/reason", ""}},
	ledger.ApprovalRequested: {{"/quorum", "quorum "}, {"/approvers", "of "}, {"/expires", "until "}},
	ledger.ApprovalApproved:  {{"/reason", ""}},
	ledger.ApprovalDenied:    {{"/reason", ""}},
	ledger.ApprovalExpired:   {{"/expires", "at "}},
	ledger.ProxySent:         {{"/permit", "permit "}},
	ledger.ToolResult:        {{"/bytes", "bytes "}, {"/redacted", "redacted "}},
	ledger.CallDelegated:     {{"/call", "client's call "}},
	ledger.CallReported:      {{"/failed", "failed "}, {"/result", "result "}},
	ledger.CallRewritten:     {{"/args", ""}},
	ledger.CallUnreported:    {{"/reason", ""}},
	ledger.ReportLate:        {{"/run", "run "}},
	ledger.PromptCaptured:    {{"/session", ""}, {"/source", ""}, {"/text", ""}},
	ledger.RunEnded: {{"/outcome/state", ""}, {"/outcome/effect", "effect "}, {"/outcome/code", ""},
		{"/outcome/reason", ""}},
	ledger.TokenCreated:      {{"/role", ""}, {"/name", "for "}, {"/expires", "until "}},
	ledger.TokenRevoked:      {{"/id", ""}},
	ledger.IdentityBlocked:   {{"/issuer", ""}, {"/subject", ""}},
	ledger.IdentityUnblocked: {{"/issuer", ""}, {"/subject", ""}},
	ledger.ConnectionMade:    {{"/server", ""}, {"/account", "account "}},
	ledger.ConnectionEnded:   {{"/person", ""}, {"/server", ""}, {"/reason", ""}},
	ledger.AccessRefused:     {{"/endpoint", ""}, {"/scope", "needs "}, {"/server", "no connection to "}},
	ledger.KeyAdded:          {{"/key", ""}},
	ledger.KeyRemoved:        {{"/key", ""}},
	ledger.OutcomeDelivered:  {{"/how", "by "}},
	ledger.BundleActivated: {{"/cause", ""}, {"/actor", "by "}, {"/bundle", "bundle "},
		{"/previous", "instead of "}, {"/env", "env "}, {"/build", "build "}},
	ledger.CommandStarted: {{"/bundle", "bundle "}, {"/env", "env "}, {"/build", "build "}},
	ledger.MCPPassed:      {{"/direction", ""}, {"/server", ""}, {"/method", ""}},
	ledger.LedgerClosed:   {{"/target", "goes on in "}},
	ledger.LedgerPruned:   {{"/kind", ""}, {"/runs", "runs "}, {"/before", "before "}, {"/reason", "because of "}},
}

// Line describes the event for people in one line, escaped.
func (e *Event) Line(withRun bool) string {
	words := []string{fmt.Sprintf("%6d  %s  %-18s", e.Entry, visible.Text(e.At), visible.Text(string(e.Type)))}
	if withRun {
		words = append(words, fmt.Sprintf("%-36s", visible.Text(e.Run)))
	}
	return strings.Join(append(words, e.detailWords()...), "  ")
}

// Detail returns [Event.Line] without the entry, the time and the run.
func (e *Event) Detail() string {
	return strings.Join(append([]string{visible.Text(string(e.Type))}, e.detailWords()...), "  ")
}

// outcome returns the decision, or the state in which the run ended; empty for other events.
func (e *Event) outcome() string {
	switch e.Type {
	case ledger.DecisionMade:
		return valueAt(e.Payload, "/outcome")
	case ledger.RunEnded:
		return valueAt(e.Payload, "/outcome/state")
	}
	return ""
}

// detailWords returns the event's actor and the most important members of the payload.
func (e *Event) detailWords() []string {
	words := []string{ShortName(e.By, e.Display, maxWords)}
	for _, d := range details[e.Type] {
		text := valueAt(e.Payload, d.pointer)
		if d.pointer == "/approvers" && text == "[]" {
			text = "any approver"
		}
		if text != "" {
			words = append(words, d.word+visible.Clip(text, maxWords))
		}
	}
	return words
}

// valueAt returns the value at a JSON pointer; empty if there is none. A string has no quotation
// marks.
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
