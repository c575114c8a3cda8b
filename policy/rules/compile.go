package rules

import (
	"cmp"
	"fmt"
	"slices"

	"pgfsm/internal/visible"
	"pgfsm/policy/condition"
)

// A policy is a [Policy] ready to judge.
type policy struct {
	id, reason, effect string
	globs              condition.Globs
	when, deny, ask    *condition.Program // nil is not written
	shadow             bool
	strict             bool // the policy could deny or hold
	approvers          []string
	quorum             int
	expires, fresh     int64
}

// Compile checks and compiles policies, whose conditions may read claims of these names. The error
// is [condition.Faults], which holds every fault at once; if there are more than [MaxPolicies] it
// holds that alone. Compile finds what one policy says against another or against itself, and what
// costs too much; the schema of policy.yaml has the forms and bounds of values. A word or number
// that is out of them never allows more: an unknown effect denies.
func Compile(c Content, claims ...string) (*Set, error) {
	if n := len(c.Policies); n > MaxPolicies {
		problem := fmt.Sprintf("there are %d policies, more than %d", n, MaxPolicies)
		return nil, condition.Faults{{List: "policies", Index: MaxPolicies, ID: c.Policies[MaxPolicies].ID,
			Problem: problem, Remedy: "say it with globs"}}
	}
	env, err := condition.PolicyEnv(claims...)
	if err != nil {
		return nil, err
	}

	b := &builder{env: env, programs: make(map[string]program), ids: make(map[string]int, len(c.Policies))}
	s := &Set{policies: make([]policy, len(c.Policies))}

	for i := range c.Policies {
		s.policies[i] = b.compilePolicy(i, &c.Policies[i])
	}

	if len(b.faults) > 0 {
		return nil, b.faults
	}

	// The programs are listed for questions about all of them: of history, and of identity.
	for i := range s.policies {
		for _, key := range []string{"when", "deny", "require_approval_if"} {
			s.programs.Add("policies", i, key, s.policies[i].globs, s.policies[i].conditionFor(key))
		}
	}

	return s, nil
}

// A builder reads policies one after the other and collects what is wrong with them.
type builder struct {
	env      *condition.Env
	programs map[string]program // the programs by source: the same text is compiled once
	bytes    int                // the length of all sources
	ids      map[string]int     // the index of the first policy with an id
	shadows  int
	faults   condition.Faults
	index    int // the policy being read
	source   *Policy
}

type program struct {
	program *condition.Program
	err     error
}

func (b *builder) addFault(key, remedy, format string, args ...any) {
	b.faults = append(b.faults, &condition.Fault{
		List:    "policies",
		Index:   b.index,
		ID:      b.source.ID,
		Key:     key,
		Problem: fmt.Sprintf(format, args...),
		Remedy:  remedy,
	})
}

func (b *builder) compilePolicy(i int, from *Policy) policy {
	b.index, b.source = i, from
	b.checkID()
	p := policy{id: from.ID, reason: from.Reason, effect: from.Effect}
	p.globs = from.Match.Compile(func(key string, err error) { b.addFault(key, "", "%s", err) })
	p.when = b.compileCondition("when", from.When)
	p.deny = b.compileRestriction("deny", from.Deny)
	p.ask = b.compileRestriction("require_approval_if", from.RequireApprovalIf)
	p.strict = from.Effect != Allow || from.Deny != "" || from.RequireApprovalIf != ""
	if p.shadow = from.Mode == Shadow; p.shadow {
		if b.shadows++; b.shadows == MaxShadow+1 {
			b.addFault("mode", "compare whole files with pgfsm policy diff", "more than %d policies are in shadow",
				MaxShadow)
		}
	}
	b.readApprovers(&p)
	return p
}

func (b *builder) checkID() {
	id := b.source.ID
	first, dup := b.ids[id]
	switch {
	case !isVisible(id):
		b.addFault("id", "", "the id holds characters that do not show, or begins or ends with a space")
	case dup:
		b.addFault("id", "give each policy its own", "policy %d has the same id", first)
	}
	if !dup {
		b.ids[id] = b.index
	}
}

// isVisible reports whether a text is not empty, and all of it is visible.
func isVisible(text string) bool {
	return text != "" && visible.Text(text) == text && !visible.Blank(text) && text[0] != ' ' &&
		text[len(text)-1] != ' '
}

// compileRestriction reads a condition that takes back an allow.
func (b *builder) compileRestriction(key, source string) *condition.Program {
	if source != "" && (b.source.Effect == Deny || b.source.Effect == Pending) {
		b.addFault(key, "put it into when, or write effect: allow", "%s stands only beside effect: allow", key)
	}
	return b.compileCondition(key, source)
}

func (b *builder) compileCondition(key, source string) *condition.Program {
	if source == "" {
		return nil
	}
	read, known := b.programs[source]
	if !known {
		if b.bytes > MaxConditions {
			return nil // reported already
		}
		if b.bytes += len(source); b.bytes > MaxConditions {
			b.addFault(key, "say it with fewer", "the conditions up to here have more than %d bytes together",
				MaxConditions)
			return nil
		}
		read.program, read.err = b.env.Bool(source)
		b.programs[source] = read
	}
	if read.err != nil {
		b.faults = append(b.faults, condition.NewFault("policies", b.index, b.source.ID, key, read.err))
		return nil
	}
	return read.program
}

// readApprovers reads the settings of approvers for held calls.
func (b *builder) readApprovers(p *policy) {
	source := b.source
	if !source.canHold() && (source.Effect == Allow || source.Effect == Deny) {
		for _, one := range []struct {
			key     string
			written bool
		}{{"approvers", len(source.Approvers) > 0}, {"quorum", source.Quorum != 0}, {"expires", source.Expires != 0},
			{"fresh", source.Fresh != 0}} {
			if one.written {
				b.addFault(one.key, "leave it out, or write effect: pending or require_approval_if",
					"the policy never holds a call")
			}
		}
		return
	}
	p.approvers = slices.Clone(source.Approvers)
	p.quorum = cmp.Or(source.Quorum, DefaultQuorum)
	p.expires = cmp.Or(source.Expires, DefaultExpires)
	p.fresh = source.Fresh
}
