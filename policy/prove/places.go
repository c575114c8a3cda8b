package prove

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/policy"
	"pgfsm/policy/condition"
)

// A tag is the part of a caller on which its other names depend.
type tag uint8

const (
	anyCaller   tag = iota
	staticAgent     // of no identity provider
	staticPerson
	subject // of an identity provider
)

func tagOf(actor string) tag {
	switch {
	case policy.HasSubject(actor):
		return subject
	case strings.HasPrefix(actor, policy.LocalUser):
		return staticPerson
	}
	return staticAgent
}

// A cell is a set of values of a place that no condition tells apart, with one of them.
type cell struct {
	out     []outcomes // by atom
	tag     tag
	apply   func(*Call)
	conform bool // the value that stands for the cell is valid by the schema
}

// A domain is a place with its cells.
type domain struct {
	name  string
	atoms []*atom
	cells []cell
	union []outcomes // by atom, over all cells
}

// addCell adds a cell, or replaces one with the same outcomes by one that conforms.
func (d *domain) addCell(c cell) {
	for i := range d.cells {
		if d.cells[i].tag == c.tag && slices.Equal(d.cells[i].out, c.out) {
			if c.conform && !d.cells[i].conform {
				d.cells[i] = c
			}
			return
		}
	}
	d.cells = append(d.cells, c)
}

// finish sorts the cells, those of which a valid value is known first.
func (d *domain) finish() {
	slices.SortStableFunc(d.cells, func(a, b cell) int { return b2i(b.conform) - b2i(a.conform) })
	d.union = make([]outcomes, len(d.atoms))
	for i := range d.cells {
		for k, o := range d.cells[i].out {
			d.union[k] |= o
		}
	}
}

// ask returns the outcomes of atoms for an input.
func ask(atoms []*atom, in *condition.Input) []outcomes {
	out := make([]outcomes, len(atoms))
	subject := condition.NewSubject(in)
	for i, a := range atoms {
		out[i] = outcomeOf(a.program.True(subject.WithBudget(condition.MaxDecision, condition.MaxTrial)))
	}
	return out
}

// A tool is a tool of the allowlist, as far as it is known.
type tool struct {
	server, name, env string
	pinned            bool
	live              *policy.Tool // nil: any schema and any annotations
	root              shape
	groups            []string // the groups that may call it; none: everybody
	divided           *argumentCache
	required          map[string]value // values of the arguments that the schema requires
}

// An argumentCache has the divided arguments of all tools. Its keys have the addresses of atoms, which
// its domains keep alive: of tools with one schema, and with the
// same conditions, an argument is divided once.
type argumentCache struct {
	domains  map[string]*domain
	problems map[string]string
}

// divideOnce divides an argument, or returns it as it was divided for another tool.
func (t *tool) divideOnce(d *domain) (divided *domain, problem string) {
	var key strings.Builder
	key.WriteString(d.name)
	if t.live != nil {
		fmt.Fprintf(&key, " %q", t.live.InputSchema)
	}
	for _, a := range d.atoms {
		fmt.Fprintf(&key, " %p", a)
	}
	known := t.divided.domains[key.String()]
	if known == nil {
		known = d
		t.divided.problems[key.String()] = t.divideArgument(d)
		d.finish()
		t.divided.domains[key.String()] = d
	}
	return known, t.divided.problems[key.String()]
}

func (t *tool) input() *condition.Input {
	in := &condition.Input{Server: t.server, Tool: t.name, Env: t.env, Pinned: t.pinned, Now: proofTime, Args: []byte("{}")}
	if t.live != nil {
		in.Annotations = condition.Annotations(t.live.Annotations)
	}
	return in
}

// divideArgument divides the values of an argument.
func (t *tool) divideArgument(d *domain) (problem string) {
	root, name := new(tree), strings.TrimPrefix(d.name, placeArgs)
	for _, a := range d.atoms {
		for _, feature := range a.features {
			feature(root)
		}
	}

	part, possible := t.root.member(name)
	wrap := func(v value) value { return objectOf([]string{name}, []value{v}) }
	known := map[string][]outcomes{}
	outcomesOf := func(arguments value) []outcomes {
		in := t.input()
		in.Args = arguments.appendJSON(nil)
		if out, ok := known[string(in.Args)]; ok {
			return out
		}
		out := ask(d.atoms, in)
		known[string(in.Args)] = out
		for i, a := range d.atoms {
			if a.loop && arguments.follow(a.path).kind == object && !root.descend(a.path[1:]).dividesKeys() {
				out[i] = anything
			}
		}
		return out
	}
	key := func(arguments value) string {
		out := outcomesOf(arguments)
		b := make([]byte, len(out))
		for i, o := range out {
			b[i] = byte(o)
		}
		return string(b)
	}

	divided := &divider{outcomes: key, distinct: mergeBy(key)}
	var values []value
	if possible {
		values = divided.divide(root, &part, wrap, 0)
	}
	if divided.problem != "" {
		return divided.problem
	}
	if !possible || !t.root.requires(name) {
		values = append(values, value{})
	}

	for _, v := range values {
		d.addCell(cell{
			out:     outcomesOf(wrap(v)),
			conform: part.conforms(&v),
			apply:   func(c *Call) { c.set(name, v) },
		})
	}
	return ""
}

// mergeBy returns a function that merges values with the same key. Of each key it returns a value
// that conforms to the schema, if one is there.
func mergeBy(key func(value) string) func([]value, *shape, func(value) value) []value {
	return func(values []value, s *shape, wrap func(value) value) (merged []value) {
		known, valid := map[string]int{}, map[string]bool{}
		for _, v := range values {
			k := key(wrap(v))
			i, ok := known[k]
			switch {
			case !ok:
				known[k], valid[k] = len(merged), s.conforms(&v)
				merged = append(merged, v)
			case !valid[k] && s.conforms(&v):
				merged[i], valid[k] = v, true
			}
		}
		return merged
	}
}

// divideAnnotations lists what is possible for the tool's annotations.
func (t *tool) divideAnnotations(d *domain) {
	hints := [][4]bool{}
	for i := range 16 {
		hints = append(hints, [4]bool{i&1 != 0, i&2 != 0, i&4 != 0, i&8 != 0})
	}
	for _, h := range hints {
		annotations := condition.Annotations{ReadOnly: &h[0], Destructive: &h[1], Idempotent: &h[2], OpenWorld: &h[3]}
		if t.live != nil {
			annotations = condition.Annotations(t.live.Annotations)
		}
		in := t.input()
		in.Annotations = annotations
		d.addCell(cell{
			out:     ask(d.atoms, in),
			conform: true,
			apply:   func(c *Call) { c.Annotations = annotations },
		})
	}
}

// divideHistory divides the answers to a query: the numbers, and a failure.
func (t *tool) divideHistory(d *domain) {
	root := new(tree)
	for _, a := range d.atoms {
		for _, feature := range a.features {
			feature(root)
		}
	}
	query := d.atoms[0].program.Queries()[0]
	add := func(answer condition.Answer) {
		in := t.input()
		in.History = []condition.Answer{answer}
		d.addCell(cell{
			out:     ask(d.atoms, in),
			conform: answer.Failed == "",
			apply:   func(c *Call) { c.History = append(c.History, answer) },
		})
	}

	for _, v := range divideNumbers(root.numbers, &shape{}) {
		isCount := !strings.ContainsAny(v.literal, "-.e")
		if query.Of == condition.QuerySum || isCount {
			add(query.Answer(v.literal))
		}
	}
	add(query.Fail("it could not be read"))
}

// longName is a name that no condition can use.
var longName = strings.Repeat("a", condition.MaxName+1)

// divideName divides what conditions ask about the caller's kind, client, claims and so on.
func (t *tool) divideName(d *domain) (problem string) {
	root := new(tree)
	for _, a := range d.atoms {
		for _, feature := range a.features {
			feature(root)
		}
	}
	add := func(to tag, actor condition.Actor, apply func(*Call)) {
		in := t.input()
		in.Actor = actor
		d.addCell(cell{out: ask(d.atoms, in), tag: to, conform: true, apply: apply})
	}
	unchanged := func(*Call) {}

	if d.name == placeKind {
		add(staticAgent, condition.Actor{Kind: policy.ActorAgent}, unchanged)
		add(staticPerson, condition.Actor{Kind: policy.ActorPerson}, unchanged)
		for _, kind := range []string{policy.ActorAgent, policy.ActorPerson, ""} {
			add(subject, condition.Actor{Kind: kind}, func(c *Call) { c.identity.Kind = kind })
		}
		return ""
	}

	texts, ok := divideAmong(root.literals, root.patterns, root.sizes)
	if !ok {
		return "its patterns have too many states together"
	}
	texts = append(texts, longName)
	add(staticAgent, condition.Actor{Kind: policy.ActorAgent}, unchanged)
	add(staticPerson, condition.Actor{Kind: policy.ActorPerson}, unchanged)

	claim, isClaim := strings.CutPrefix(d.name, condition.ClaimPrefix)
	if isClaim {
		add(subject, condition.Actor{Kind: policy.ActorAgent}, unchanged)
	}
	for _, name := range texts {
		actor := condition.Actor{Kind: policy.ActorAgent}
		switch {
		case isClaim:
			one := condition.Claim{Name: claim, Value: name}
			actor.Claims = []condition.Claim{one}
			add(subject, actor, func(c *Call) { c.identity.Claims = append(c.identity.Claims, one) })
		case d.name == placeClient:
			actor.Client = name
			add(subject, actor, func(c *Call) { c.identity.Client = name })
		default:
			actor.OnBehalfOf = name
			add(subject, actor, func(c *Call) { c.identity.OnBehalfOf = name })
		}
	}
	return ""
}
