package gates

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// A gen draws one case. What it draws depends on the seed and the case's number, and on no other case.
type gen struct{ *rand.Rand }

func newGen(seed uint64, i int) *gen {
	return &gen{rand.New(rand.NewPCG(seed, uint64(i)))}
}

// pick draws one of several.
func pick[T any](g *gen, from ...T) T { return from[g.IntN(len(from))] }

func (g *gen) chance(oneIn int) bool { return g.IntN(oneIn) == 0 }

// A member is a member of an object as it is written: name is a JSON string, value any text.
type member struct{ name, value string }

// A draft is a plan to call a tool, before it is written down.
type draft struct {
	kind, server, tool string // JSON texts
	args               []member
	whole              string   // in the place of args, if it is not empty
	more               []member // beside the four
}

func quote(s string) string { return `"` + s + `"` }

var subjects = []string{
	"laptop", "retention", "travel", "visitors", "backup", "passwords", "Über-Regel", "日本語", "onboarding", "printer on floor 3", "café", "it's",
}

// draft draws a call that is allowed.
func (g *gen) draft() *draft {
	if g.chance(3) {
		d := &draft{kind: quote("call_tool"), server: quote(serverDesk), tool: quote(toolSearch)}
		d.args = append(d.args, member{quote("query"), quote(pick(g, subjects...))})
		if g.chance(2) {
			d.args = append(d.args, member{quote("limit"), strconv.Itoa(1 + g.IntN(50))})
		}
		return d
	}
	d := &draft{kind: quote("call_tool"), server: quote(serverKB), tool: quote(toolFetch)}
	d.args = append(d.args, member{quote("entry_id"), quote(g.entry())})
	some := func(name string, values ...string) {
		if g.chance(2) {
			d.args = append(d.args, member{name, pick(g, values...)})
		}
	}
	some(`"lang"`, `"en"`, `"de"`)
	some(`"version"`, "1", "2", "3", "4", "5", "6", "7", "8", "9")
	some(`"exact"`, "true", "false")
	some(`"weight"`, "0", "0.5", "1", "0.25", "1e-3")
	some(`"tags"`, `[]`, `["a"]`, `["hr","it"]`)
	some(`"filter"`, `{}`, `{"owner":"Records Office"}`)
	return d
}

// entry draws the id of an entry.
func (g *gen) entry() string {
	n := g.IntN(1000)
	return "entry-" + string([]byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)})
}

// arguments are the arguments as they are written.
func (d *draft) arguments() string {
	if d.whole != "" {
		return d.whole
	}
	return object(d.args)
}

// members are the plan's own members, in the usual order.
func (d *draft) members() []member {
	return append([]member{
		{quote("type"), d.kind}, {quote("server"), d.server}, {quote("tool"), d.tool}, {quote("args"), d.arguments()},
	}, d.more...)
}

func (d *draft) String() string { return object(d.members()) }

// without is the plan without one of its four members.
func (d *draft) without(i int) string {
	m := d.members()
	return object(append(m[:i:i], m[i+1:]...))
}

func object(members []member) string {
	var b strings.Builder
	size := 2
	for _, m := range members {
		size += len(m.name) + len(m.value) + 2
	}
	b.Grow(size)
	b.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(m.name)
		b.WriteByte(':')
		b.WriteString(m.value)
	}
	b.WriteByte('}')
	return b.String()
}

// shuffle brings members into another order.
func (g *gen) shuffle(m []member) []member {
	g.Shuffle(len(m), func(i, j int) { m[i], m[j] = m[j], m[i] })
	return m
}

// arg is the place of an argument, or -1.
func (d *draft) arg(name string) int {
	for i, m := range d.args {
		if m.name == quote(name) {
			return i
		}
	}
	return -1
}

// set gives an argument another value, or adds it.
func (d *draft) set(name, value string) {
	if i := d.arg(name); i >= 0 {
		d.args[i].value = value
		return
	}
	d.args = append(d.args, member{quote(name), value})
}

// searches reports whether the draft calls search_tickets.
func (d *draft) searches() bool { return d.tool == quote(toolSearch) }
