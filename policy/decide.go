package policy

import "pgfsm/policy/canonical"

// Question is all that a policy may look at. None of it was written by the agent, except Arguments.
type Question struct {
	Server    string
	Tool      *Tool
	Env       string
	Actor     string
	Arguments []byte
	Now       string // RFC 3339; the time of the request or of the decision
}

// Assessment is how risky a call is and what the policy says of it.
type Assessment struct {
	Expires string  `json:"expires"` // for a held call, until when a person may decide: 2006-01-02T15:04:05Z; empty has passed
	Mode    string  `json:"mode"`    // the risk mode; "unrated" where no risk rules are configured
	Score   int     `json:"score"`   // 0 where no risk rules are configured
	Verdict Verdict `json:"verdict"`
}

// A Decider says whether a validated, authorized call may run, must not, or needs a person.
type Decider interface {
	Decide(Question) Assessment
}

// WithDecider returns a bundle that asks d. Without one the allowlist, which has already spoken, decides.
func (b *Bundle) WithDecider(d Decider) *Bundle {
	c := &Bundle{
		content: b.content, canonical: b.canonical, digest: b.digest, screen: b.screen, allow: b.allow, pins: b.pins,
		grants: b.grants, outputs: b.outputs, schemaLimits: b.schemaLimits, decider: d, catalogs: make(map[canonical.Digest]*Catalog),
	}
	return c
}

// Decide assesses a call. With no policy configured the allowlist decides: the call is allowed.
func (b *Bundle) Decide(q Question) Assessment {
	if q.Tool == nil || !q.Tool.Effective() {
		return Assessment{Mode: "unrated", Verdict: blocked(GatePolicy, CodePolicyDenied, "There is no tool to decide about.")}
	}
	if b.decider == nil {
		return Assessment{Mode: "unrated", Verdict: allowed(GatePolicy, "No policy is configured; the allowlist decides.")}
	}
	return b.decider.Decide(q)
}
