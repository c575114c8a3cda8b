package condition

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// A Subject is an [Input] that conditions judge. It converts a name to a value at the first use and
// caches the value, so arguments are decoded at most once. It also has the budget of the decision.
// A Subject is for one goroutine at a time; the Input must not change meanwhile.
type Subject struct {
	input   *Input
	risk    Risk
	values  map[string]ref.Val
	answers bool     // the values of History are in values
	unknown []string // see Unknown

	deciding, trial budget
	onTrial         bool // the budget of shadow policies is charged
}

// NewSubject returns a Subject for in, with the whole budget of a decision.
func NewSubject(in *Input) *Subject {
	return (&Subject{input: in, risk: in.Risk, values: make(map[string]ref.Val)}).WithBudget(MaxDecision, MaxTrial)
}

// Input returns the input, with the risk that was set last.
func (s *Subject) Input() Input {
	input := *s.input
	input.Risk = s.risk
	return input
}

// session returns the session, or an empty one.
func (s *Subject) session() *Session {
	if s.input.Session == nil {
		return &Session{}
	}
	return s.input.Session
}

// WithRisk replaces the risk of the Input, and returns s.
func (s *Subject) WithRisk(r Risk) *Subject {
	s.risk = r
	maps.DeleteFunc(s.values, func(name string, _ ref.Val) bool { return strings.HasPrefix(name, riskPrefix) })
	return s
}

// Unknown returns which of actor.groups and actor.claims.NAME conditions read although they are
// unknown. It omits what only policies in shadow read.
func (s *Subject) Unknown() []string { return s.unknown }

func (s *Subject) readUnknown(name string) {
	if !s.onTrial && !slices.Contains(s.unknown, name) {
		s.unknown = append(s.unknown, name)
	}
}

// WithScore sets `score`, for expressions of risk rules, and returns s. Until it is set, a use of
// `score` is an error.
func (s *Subject) WithScore(score float64) *Subject {
	s.values[nameScore] = types.Double(score)
	return s
}

// WithItem sets `item`, a JSON value, for conditions of trusted_if, and returns s.
func (s *Subject) WithItem(item []byte) *Subject {
	s.values[nameItem] = decodeJSON("the item has", item)
	return s
}

// WithVar sets `vars.NAME`, for expressions of risk rules, and returns s.
func (s *Subject) WithVar(name string, value float64) *Subject {
	s.values[varPrefix+name] = types.Double(value)
	return s
}

// WithFailedVar marks `vars.NAME` as failed: every use of it is an error with the reason. It
// returns s.
func (s *Subject) WithFailedVar(name, reason string) *Subject {
	s.values[varPrefix+name] = types.NewErr("vars.%s failed: %s", name, reason)
	return s
}

// A view adapts a Subject to CEL. It is a separate type so that Subject does not export CEL's
// methods.
type view Subject

var _ cel.Activation = (*view)(nil)

// Parent implements [cel.Activation].
func (*view) Parent() cel.Activation { return nil }

// ResolveName implements [cel.Activation]. The name is one that [Env] declared; it never comes from
// the arguments.
func (v *view) ResolveName(full string) (any, bool) {
	if name, ok := strings.CutPrefix(full, ClaimPrefix); ok {
		value := v.input.Actor.claimValue(name)
		if types.IsError(value) {
			(*Subject)(v).readUnknown(full)
		}
		return value, true
	}
	if strings.HasPrefix(full, historyPrefix) {
		return (*Subject)(v).answerValue(full), true
	}
	if full == originsName {
		return v.input.Origins, true
	}

	if full == nameGroups && v.input.Actor.Groups == nil {
		(*Subject)(v).readUnknown(full)
	}

	if value := v.values[full]; value != nil {
		return value, true
	}

	// The name is converted at its first use.
	i := slices.IndexFunc(names, func(n declaredName) bool { return n.Name == full })
	if i < 0 || names[i].value == nil {
		return types.NewErr("%s has no value", full), true
	}

	value := names[i].value((*Subject)(v))
	if value == nil {
		value = types.NewErr("%s is unknown", full)
	}

	v.values[full] = value
	return value, true
}

// knownText returns a text about the actor; nil if nothing is known of the actor.
func (a *Actor) knownText(text string) ref.Val {
	if a.Kind == "" {
		return nil
	}
	return nameText(text)
}

// claimValue converts a claim to a value.
func (a *Actor) claimValue(name string) ref.Val {
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

// TimeForm is the layout of recorded times: RFC 3339, UTC, milliseconds.
const TimeForm = "2006-01-02T15:04:05.000Z"

// Later adds milliseconds to a time in [TimeForm]. It returns an empty time for another form, and
// beyond four-digit years.
func Later(now string, ms int64) string {
	start, ok := parseTime(now).(types.Timestamp)
	if !ok || start.Format(TimeForm) != now {
		return ""
	}
	wait := types.String(fmt.Sprint(ms, "ms")).ConvertToType(types.DurationType)
	end, ok := start.Add(wait).(types.Timestamp)
	if !ok {
		return ""
	}
	return end.Format(TimeForm)
}

// parseTime reads an RFC 3339 time.
func parseTime(text string) ref.Val {
	t := types.String(text).ConvertToType(types.TimestampType)
	if types.IsError(t) {
		return types.NewErr("now is not an RFC 3339 time: %q", text)
	}
	return t
}
