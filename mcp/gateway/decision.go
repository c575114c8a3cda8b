package gateway

import (
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/mcp/upstream"
)

// A Decision tells a client about a call whose result it does not get. The call was rejected, waits
// for approval or failed, or its result is withheld. The fields are in the order of their names.
type Decision struct {
	Code    string `json:"code"`              // one of docs/reference/errors.md
	Connect string `json:"connect,omitempty"` // URL where people connect accounts
	Decide  string `json:"decide,omitempty"`  // URL where approvers decide
	// upstream.EffectNotSent, upstream.EffectUnknown or upstream.EffectDone.
	Effect string `json:"effect"`
	Policy string `json:"policy"` // name of the deciding policy; empty if none decided
	Reason string `json:"reason"`
	Retry  string `json:"retry"`                  // advice to the agent
	After  int    `json:"retry_after_s,omitzero"` // seconds
	RunID  string `json:"run_id"`
}

// Result returns the decision as the result of a tools/call. Models get it as text. Programs get it
// in _meta, and as the last line of the text, because some clients show only text. It has no
// structuredContent: clients validate that against the tool's outputSchema, even in errors.
func (d Decision) Result(isError bool) jsontext.Value {
	type text struct {
		Text string `json:"text"`
		Type string `json:"type"`
	}
	type meta struct {
		Decision Decision `json:"io.pgfsm/decision"`
	}
	return canonical.MustSorted(struct {
		Meta    meta   `json:"_meta"`
		Content []text `json:"content"`
		IsError bool   `json:"isError"`
	}{meta{d}, []text{{d.certainty() + d.Reason + "\n" + string(canonical.MustSorted(d)), "text"}}, isError})
}

// certainty says whether the call has run, may have run, or has not. It comes first, because
// several clients show a model only the text.
func (d Decision) certainty() string {
	switch d.Effect {
	case upstream.EffectNotSent:
		return "The call was not sent: "
	case upstream.EffectDone:
		return "The call was made; the result is withheld. "
	default:
		return "The call may have happened: check before repeating. "
	}
}

// withheldResult returns the result for a call that was made but whose result the client does not
// get.
func withheldResult(code, why, run string) jsontext.Value {
	return Decision{
		Code:   code,
		Effect: upstream.EffectDone,
		Reason: why,
		Retry:  "no",
		RunID:  run,
	}.Result(true)
}
