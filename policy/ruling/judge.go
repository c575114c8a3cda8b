package ruling

import (
	"slices"
	"sync"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// A Judge decides about recorded calls by a policy. It is safe for concurrent use.
type Judge struct {
	policy *rules.Content
	risk   *risk.Content // nil: the trace's own
	claims []string      // the claims that the policy and the risk rules may read

	mu       sync.Mutex                          // held while a bundle is compiled
	compiled map[canonical.Digest]*policy.Bundle // the bundles by the digest of the risk rules
}

// These are in [Ruling.Unknown] if a policy reads the client's session, or where arguments come from, and the run
// did not.
const (
	unreadSession = "the earlier calls of the session"
	unreadOrigins = "where the arguments come from"
)

// maxBundles bounds the bundles that a judge caches. Traces of a folder have few sets of risk
// rules; a folder with thousands costs time and not memory.
const maxBundles = 64

// NewJudge returns a judge by a policy and by risk rules. Without risk rules each call is judged
// with those that it was recorded with. Conditions may read the given claims.
func NewJudge(p *rules.Content, r *risk.Content, claims ...string) *Judge {
	return &Judge{
		policy:   p,
		risk:     r,
		claims:   claims,
		compiled: make(map[canonical.Digest]*policy.Bundle),
	}
}

// bundleFor compiles the policy with its risk rules or, if it has none, with those that the trace
// was recorded with. Nothing else that was recorded is compiled, because nothing else is asked.
func (j *Judge) bundleFor(recorded *policy.Content) (*policy.Bundle, error) {
	rated, key, claims := j.risk, canonical.Digest(""), slices.Clone(j.claims)
	if rated == nil && recorded.Risk != nil {
		rated, key = recorded.Risk, canonical.Sum("risk rules", canonical.MustMarshal(recorded.Risk))
		if recorded.Identity != nil {
			claims = append(claims, recorded.Identity.Claims...)
			key = canonical.Sum("risk rules", []byte(key), canonical.MustMarshal(recorded.Identity.Claims))
		}
	}

	j.mu.Lock()
	defer j.mu.Unlock()
	if b := j.compiled[key]; b != nil {
		return b, nil
	}

	slices.Sort(claims)
	b, err := policy.Compile(policy.Content{
		Format:   recorded.Format,
		Limits:   recorded.Limits,
		Summary:  recorded.Summary,
		Risk:     rated,
		Policy:   j.policy,
		Identity: &policy.IdentityRules{Claims: slices.Compact(claims)},
		Input:    policy.Input{MaxBytes: recorded.Input.MaxBytes},
		Planner:  policy.Planner{Mode: policy.PlannerRouter},
	})
	if err != nil {
		return nil, err
	}

	if len(j.compiled) >= maxBundles {
		clear(j.compiled)
	}

	j.compiled[key] = b
	return b, nil
}

// Judge decides about the call that a run requested. Roles come from the run's own configuration.
func (j *Judge) Judge(b *policy.Bundle, q policy.Question) (*Ruling, error) {
	judge, err := j.bundleFor(b.Content())
	if err != nil {
		return nil, err
	}
	input := Input(b, q.Server, q.Tool.Name, q.Env, q.Actor, q.Identity, q.Arguments, q.Now)
	input.History, input.Session, input.Origins = q.History, q.Session, q.Origins
	input.Pinned, input.Annotations = q.Tool.Pin != "", condition.Annotations(q.Tool.Annotations)
	if id := judge.Reread(q.Identity, b); id != nil {
		input.Actor.Groups = id.Groups
	}
	subject := condition.NewSubject(input)
	r := FromAssessment(judge.AssessSubject(subject))
	if policy.HasSubject(q.Actor) {
		r.Unknown = slices.DeleteFunc(subject.Unknown(), func(name string) bool { return !b.Omits(name) })
	}
	// The run recorded what its own rules read of the session.
	if q.Session != nil && judge.ReadsSession() && !b.ReadsSession() {
		r.Unknown = append(r.Unknown, unreadSession)
	}
	if q.InSession && judge.ReadsOrigins() && !b.ReadsOrigins() {
		r.Unknown = append(r.Unknown, unreadOrigins)
	}
	return r, nil
}

// Input returns the names that conditions may read about a call, without the facts about its tool.
// If env is empty, it uses the configuration's environment.
func Input(b *policy.Bundle, server, tool, env, actor string, id *policy.Identity, args []byte,
	now string) *condition.Input {
	if env == "" {
		env = b.Content().Env
	}
	return &condition.Input{
		Server: server,
		Tool:   tool,
		Env:    env,
		Args:   args,
		Now:    now,
		Actor:  b.ConditionActor(actor, id),
	}
}
