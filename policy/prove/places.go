package prove

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/policy"
	"pgfsm/policy/condition"
)

// A cell is a set of values of a place that no condition tells apart, with one of them.
type cell struct {
	out     vector
	apply   func(*Call)
	conform bool // the value that stands for the cell is valid by the schema
}

// A domain is a place with its cells.
type domain struct {
	name    string
	atoms   []*atom
	cells   []cell
	union   vector // of all cells
	problem string // why the place is not divided; empty: it is
}

// addCell adds a cell, or replaces one with the same outcomes by one that conforms.
func (d *domain) addCell(c cell) {
	for i := range d.cells {
		if d.cells[i].out == c.out {
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
	d.union = vector(make([]byte, len(d.atoms)))
	for i := range d.cells {
		d.union = d.union.join(d.cells[i].out)
	}
}

// ask returns the outcomes of atoms for an input.
func ask(atoms []*atom, in *condition.Input) vector {
	out := make([]byte, len(atoms))
	subject := condition.NewSubject(in)
	for i, a := range atoms {
		out[i] = byte(outcomeOf(a.program.True(subject.WithBudget(condition.MaxDecision, condition.MaxTrial))))
	}
	return vector(out)
}

// A tool is a tool of the allowlist, as far as it is known.
type tool struct {
	server, name, env string
	pinned            bool
	live              *policy.Tool // nil: any schema and any annotations
	root              shape
	groups            []string         // the groups that may call it; none: everybody
	required          map[string]value // values of the arguments that the schema requires
}

func (t *tool) input() *condition.Input {
	in := &condition.Input{Server: t.server, Tool: t.name, Env: t.env, Pinned: t.pinned, Now: proofTime, Args: []byte("{}")}
	if t.live != nil {
		in.Annotations = condition.Annotations(t.live.Annotations)
	}
	return in
}

// A cache has what was divided for other problems.
type cache struct {
	domains  map[string]*domain
	outcomes map[string]map[string]vector // of the conditions of an argument: by its value
}

func newCache() *cache { return &cache{map[string]*domain{}, map[string]map[string]vector{}} }

// divide divides the place of atoms, or returns it as it was divided before: for tools with one
// schema and the same conditions, an argument has the same cells.
func (p *problem) divide(place string, atoms []*atom) *domain {
	d := &domain{name: place, atoms: atoms}
	asked := place
	for _, a := range atoms {
		asked += fmt.Sprintf(" %p", a)
	}
	key := fmt.Sprintf("%s %q", asked, p.tool.groups)
	if strings.HasPrefix(place, placeActor) {
		key += fmt.Sprint(p.form)
	}
	if p.tool.live != nil {
		key += string(p.tool.live.InputSchema)
	}
	for _, a := range atoms {
		if slices.ContainsFunc(a.reads, isAboutTool) {
			key += fmt.Sprintf(" %p", p.tool)
		}
	}
	if known := p.cache.domains[key]; known != nil {
		return known
	}

	switch {
	case strings.HasPrefix(place, placeArgs):
		if p.cache.outcomes[asked] == nil {
			p.cache.outcomes[asked] = map[string]vector{}
		}
		p.divideArgument(d, p.cache.outcomes[asked])
	case place == placeAnnotations:
		p.divideAnnotations(d)
	case place == placeCaller:
		p.divideCaller(d)
	case strings.HasPrefix(place, placeHistory):
		p.divideHistory(d)
	default:
		p.divideName(d)
	}
	d.finish()
	p.cache.domains[key] = d
	return d
}

// addCell adds the cell of a value of another place than the arguments.
func (p *problem) addCell(d *domain, conform bool, apply func(*Call)) {
	c := p.tool.newCall(p.form)
	apply(c)
	c.finish()
	d.addCell(cell{out: ask(d.atoms, c.Input(p.sides[0].bundle)), apply: apply, conform: conform})
}

// divideArgument divides the values of an argument.
func (p *problem) divideArgument(d *domain, known map[string]vector) {
	name, t := strings.TrimPrefix(d.name, placeArgs), p.tool
	part, possible := t.root.member(name)
	divided := &divider{atoms: d.atoms, root: treeOf(d.atoms), in: t.input(), known: known}
	wrap := func(v value) value { return members{}.appendMember(name, v).value() }
	var values []value
	if possible {
		values = divided.divide(divided.root, &part, wrap, 0)
	}
	if d.problem = divided.problem; d.problem != "" {
		return
	}
	if !possible || !t.root.requires(name) {
		values = append(values, value{})
	}
	for _, v := range values {
		d.addCell(cell{
			out:     divided.outcomes(wrap(v)),
			conform: part.conforms(&v),
			apply:   func(c *Call) { c.members[name] = v },
		})
	}
}

// divideAnnotations lists what is possible for the tool's annotations.
func (p *problem) divideAnnotations(d *domain) {
	if p.tool.live != nil {
		p.addCell(d, true, func(*Call) {})
		return
	}
	for i := range 16 {
		has := func(bit int) *bool { return new(i&bit != 0) }
		annotations := condition.Annotations{ReadOnly: has(1), Destructive: has(2), Idempotent: has(4), OpenWorld: has(8)}
		p.addCell(d, true, func(c *Call) { c.Annotations = annotations })
	}
}

// divideHistory divides the answers to a query: the numbers, and a failure.
func (p *problem) divideHistory(d *domain) {
	query := d.atoms[0].program.Queries()[0]
	add := func(answer condition.Answer) {
		p.addCell(d, answer.Failed == "", func(c *Call) { c.History = append(c.History, answer) })
	}
	for _, v := range divideNumbers(treeOf(d.atoms).numbers, &shape{}) {
		isCount := !strings.ContainsAny(v.json, "-.e")
		if query.Of == condition.QuerySum || isCount {
			add(query.Answer(v.json))
		}
	}
	add(query.Fail("it could not be read"))
}
