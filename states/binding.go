package states

import (
	"fmt"
	"strings"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// Binding is the judgement that an approval binds: all that approvers see of a held call, without
// the wording of reasons. Approvers send its digest with their votes. Other parts of the bundle are
// not bound: they may change as long as the judgement stays the same.
type Binding struct {
	Account    *Account         `json:"account,omitzero"` // the connection whose credentials the call uses
	Actor      string           `json:"actor"`
	Approvers  []string         `json:"approvers"`
	Arguments  canonical.Digest `json:"arguments"`
	Condition  string           `json:"condition"`
	Connection canonical.Digest `json:"connection"` // the way to the server
	Definition canonical.Digest `json:"definition"`
	Env        string           `json:"env"`
	Expires    string           `json:"expires"`
	// The greatest age of the approver's sign-in at a vote; 0: any.
	Fresh      int64  `json:"fresh_ms,omitzero"`
	Kind       string `json:"kind,omitzero"` // only if the client makes the call itself
	Mode       string `json:"mode"`
	OnBehalfOf string `json:"on_behalf_of,omitzero"` // the person for whom the actor acts
	// Where the arguments come from; empty if that was not read.
	Origins canonical.Digest `json:"origins,omitzero"`
	Pin     canonical.Digest `json:"pin"` // empty if the tool is not pinned
	Policy  string           `json:"policy"`
	Quorum  int              `json:"quorum"`
	Risk    []BoundRisk      `json:"risk"`
	Run     string           `json:"run"`
	// The operator's, in place of the tool's inputSchema.
	Schema  canonical.Digest `json:"schema,omitempty"`
	Score   int              `json:"score"`
	Server  string           `json:"server"`
	Session string           `json:"session,omitzero"` // likewise: the client's session, see [Session.Key]
	Tool    string           `json:"tool"`
}

// BoundRisk is the effect of one risk rule on the judgement.
type BoundRisk struct {
	Matched bool   `json:"matched"`
	Mode    string `json:"mode"`
	Rule    string `json:"rule"`
	Score   int    `json:"score"`
}

// bindCall returns the judgement of a bundle about the run's call.
func bindCall(r *Run, b *policy.Bundle, tool *policy.Tool, a *AssessedFact) Binding {
	binding := Binding{
		Account:    r.request.Account,
		Actor:      r.request.Actor,
		Approvers:  a.Approvers,
		Arguments:  a.Arguments,
		Condition:  a.Condition,
		Connection: b.Connection(tool.Server),
		Definition: tool.Digest,
		Env:        b.Content().Env,
		Expires:    a.Expires,
		Fresh:      a.Fresh,
		Mode:       a.Mode,
		Origins:    r.facts.Authorized.origins().digest(),
		Pin:        tool.Pin,
		Policy:     a.Policy,
		Quorum:     a.Quorum,
		Run:        r.id,
		Schema:     tool.OwnSchema,
		Score:      a.Score,
		Server:     tool.Server,
		Tool:       tool.Name,
	}

	if Delegates(r.request.Kind) {
		binding.Kind, binding.Session = r.request.Kind, r.request.Session.Key()
	}
	if id := r.request.Identity; id != nil {
		binding.OnBehalfOf = id.OnBehalfOf
	}

	for _, c := range a.Risk {
		binding.Risk = append(binding.Risk, BoundRisk{
			Matched: c.Matched,
			Mode:    c.Mode,
			Rule:    c.Rule,
			Score:   c.Score,
		})
	}

	return binding
}

// digest is the digest that an approver sends with a vote.
func (b *Binding) digest() canonical.Digest {
	return canonical.Sum("approval binding", canonical.MustSorted(b))
}

// describeChanges names what differs in a later judgement; empty if nothing does.
func (b *Binding) describeChanges(now *Binding) string {
	if b.digest() == now.digest() {
		return ""
	}

	var differences []string
	for _, m := range []struct {
		name          string
		before, after any
	}{
		{"the environment", b.Env, now.Env},
		{"the connection of the server", b.Connection.Short(), now.Connection.Short()},
		{"the tool's definition", b.Definition.Short(), now.Definition.Short()},
		{"the origins of the arguments", b.Origins.Short(), now.Origins.Short()},
		{"the tool's pin", b.Pin.Short(), now.Pin.Short()},
		{"the operator's schema of the tool", b.Schema.Short(), now.Schema.Short()},
		{"the risk mode", b.Mode, now.Mode}, {"the risk score", b.Score, now.Score},
		{"the risk rules", b.riskRules(), now.riskRules()},
		{"the policy", b.Policy, now.Policy}, {"the policy's condition", b.Condition, now.Condition},
		{"the approvers", b.Approvers, now.Approvers},
		{"the quorum", b.Quorum, now.Quorum}, {"the expiry", b.Expires, now.Expires},
		{"the policy's fresh_ms", b.Fresh, now.Fresh},
	} {
		oldText, newText := fmt.Sprintf("%q", fmt.Sprint(m.before)), fmt.Sprintf("%q", fmt.Sprint(m.after))
		if oldText != newText {
			differences = append(differences, fmt.Sprintf("%s was %s and is %s", m.name, oldText, newText))
		}
	}

	if len(differences) == 0 {
		return "the judgement is not the same"
	}

	return strings.Join(differences, "; ")
}

// riskRules describes the risk rules in one line.
func (b *Binding) riskRules() string {
	var texts []string
	for _, c := range b.Risk {
		texts = append(texts, fmt.Sprintf("%s: %s, score %d", c.Rule, c.Mode, c.Score))
	}
	return strings.Join(texts, "; ")
}
