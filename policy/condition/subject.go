package condition

import (
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// A Subject is an [Input] that conditions judge. It converts a name to a value at the first use and caches the value, so arguments are decoded at most
// once. It also has the budget of the decision. A Subject is for one goroutine at a time; the Input must not change meanwhile.
type Subject struct {
	in      *Input
	risk    Risk
	values  [nameCount]ref.Val
	vars    []variable
	answers []variable // to queries; nil until there is one
	missing int        // how many queries had none
	unknown []string   // see Unknown

	deciding, trial budget
	onTrial         bool // the budget of shadow policies is charged
}

type variable struct {
	name  string
	value ref.Val
}

// NewSubject returns a Subject for in, with the whole budget of a decision.
func NewSubject(in *Input) *Subject {
	return (&Subject{in: in, risk: in.Risk}).WithBudget(MaxDecision, MaxTrial)
}

// Input returns the input, with the risk that was set last.
func (s *Subject) Input() Input {
	in := *s.in
	in.Risk = s.risk
	return in
}

// WithRisk replaces the risk of the Input, and returns s.
func (s *Subject) WithRisk(r Risk) *Subject {
	s.risk = r
	s.values[nameRiskScore], s.values[nameRiskMode], s.values[nameRiskRules] = nil, nil, nil
	return s
}

// WithOpenRisk makes every use of the risk an error, because it depends on missing answers. It returns s.
func (s *Subject) WithOpenRisk() *Subject {
	for _, n := range []int{nameRiskScore, nameRiskMode, nameRiskRules} {
		s.values[n] = types.NewErr("%s depends on calls before", names[n].Name)
	}
	return s
}

// Missing returns how many queries of conditions had no answer.
func (s *Subject) Missing() int { return s.missing }

// Unknown returns which of actor.groups and actor.claims.NAME conditions read although they are unknown. It omits what only policies in shadow read.
func (s *Subject) Unknown() []string { return s.unknown }

func (s *Subject) readUnknown(name string) {
	if !s.onTrial && !slices.Contains(s.unknown, name) {
		s.unknown = append(s.unknown, name)
	}
}

// WithScore sets `score`, for expressions of risk rules, and returns s. Until it is set, a use of `score` is an error.
func (s *Subject) WithScore(score float64) *Subject {
	s.values[nameScore] = types.Double(score)
	return s
}

// WithVar sets `vars.NAME`, for expressions of risk rules, and returns s.
func (s *Subject) WithVar(name string, value float64) *Subject {
	return s.setVar(name, types.Double(value))
}

// WithFailedVar marks `vars.NAME` as failed: every use of it is an error with the reason. It returns s.
func (s *Subject) WithFailedVar(name, reason string) *Subject {
	return s.setVar(name, types.NewErr("vars.%s failed: %s", name, reason))
}

func (s *Subject) setVar(name string, value ref.Val) *Subject {
	for i := range s.vars {
		if s.vars[i].name == name {
			s.vars[i].value = value
			return s
		}
	}
	s.vars = append(s.vars, variable{name, value})
	return s
}

// A view adapts a Subject to CEL. It is a separate type so that Subject does not export CEL's methods.
type view Subject

var _ cel.Activation = (*view)(nil)

// Parent implements [cel.Activation].
func (*view) Parent() cel.Activation { return nil }

// ResolveName implements [cel.Activation]. The name is one that [Env] declared; it never comes from the arguments.
func (v *view) ResolveName(full string) (any, bool) {
	if name, ok := strings.CutPrefix(full, varPrefix); ok {
		for i := range v.vars {
			if v.vars[i].name == name {
				return v.vars[i].value, true
			}
		}
		return types.NewErr("%s has no value", full), true
	}
	if name, ok := strings.CutPrefix(full, ClaimPrefix); ok {
		value := v.in.Actor.claim(name)
		if types.IsError(value) {
			(*Subject)(v).readUnknown(full)
		}
		return value, true
	}
	if strings.HasPrefix(full, historyPrefix) {
		return (*Subject)(v).answered(full), true
	}
	n, ok := nameOf(full)
	if !ok {
		return nil, false
	}
	if n == nameActorGroups && v.in.Actor.Groups == nil {
		(*Subject)(v).readUnknown(full)
	}
	if v.values[n] == nil {
		v.values[n] = (*Subject)(v).value(n)
	}
	return v.values[n], true
}

// value converts one name to a value.
func (s *Subject) value(n int) ref.Val {
	a := &s.in.Annotations
	switch n {
	case nameServer:
		return nameText(s.in.Server)
	case nameTool:
		return nameText(s.in.Tool)
	case nameEnv:
		return nameText(s.in.Env)
	case nameActorID:
		return nameText(s.in.Actor.ID)
	case nameActorRoles, nameActorKind, nameActorClient, nameActorOnBehalfOf, nameActorGroups:
		return s.in.Actor.value(n)
	case nameArgs:
		return decodeArgs(s.in.Args)
	case nameReadOnly:
		return types.Bool(hint(a.ReadOnly, false))
	case nameDestructive:
		return types.Bool(hint(a.Destructive, true))
	case nameIdempotent:
		return types.Bool(hint(a.Idempotent, false))
	case nameOpenWorld:
		return types.Bool(hint(a.OpenWorld, true))
	case namePinned:
		return types.Bool(s.in.Pinned)
	case nameNow:
		return instant(s.in.Now)
	case nameRiskScore:
		return types.Int(s.risk.Score)
	case nameRiskMode:
		return nameText(s.risk.Mode)
	case nameRiskRules:
		return types.NewStringList(types.DefaultTypeAdapter, s.risk.Rules)
	}
	return types.NewErr("%s has no value", names[n].Name)
}

// value converts one name of the actor to a value.
func (a *Actor) value(n int) ref.Val {
	switch {
	case n == nameActorRoles && !a.RolesUnknown:
		return types.NewStringList(types.DefaultTypeAdapter, a.Roles)
	case n == nameActorGroups && a.Groups != nil:
		return types.NewStringList(types.DefaultTypeAdapter, *a.Groups)
	case n == nameActorRoles, n == nameActorGroups, a.Kind == "":
	case n == nameActorKind:
		return nameText(a.Kind)
	case n == nameActorClient:
		return nameText(a.Client)
	case n == nameActorOnBehalfOf:
		return nameText(a.OnBehalfOf)
	}
	return types.NewErr("%s is unknown", names[n].Name)
}

// claim converts a claim to a value.
func (a *Actor) claim(name string) ref.Val {
	for _, c := range a.Claims {
		if c.Name == name {
			return nameText(c.Value)
		}
	}
	return types.NewErr("%s%s is unknown", ClaimPrefix, name)
}

// nameText returns a name, or an error if it is too long.
func nameText(text string) ref.Val {
	if len(text) > MaxName {
		return types.NewErr("a name has %d bytes, more than %d", len(text), MaxName)
	}
	return types.String(text)
}

// instant reads an RFC 3339 time.
func instant(text string) ref.Val {
	t := types.String(text).ConvertToType(types.TimestampType)
	if types.IsError(t) {
		return types.NewErr("now is not an RFC 3339 time: %q", text)
	}
	return t
}
