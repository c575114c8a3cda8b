package gates

import (
	"fmt"
	"strconv"
	"strings"
)

// A member is a member of an object as it is written: name is a JSON string, value any text.
type member struct{ name, value string }

// A draft is a plan to call a tool, before it is written.
type draft struct {
	kind, server, tool string // JSON texts
	args               []member
	whole              string   // replaces args unless it is empty
	more               []member // beside the four
}

func quote(s string) string { return `"` + s + `"` }

// draft draws a call that is allowed.
func (g *gen) draft() *draft {
	if g.chance(3) {
		d := &draft{kind: quote("call_tool"), server: quote(serverDesk), tool: quote(toolSearch)}
		d.set("query", quote(pick(g, "laptop", "retention", "travel", "Über-Regel", "日本語", "printer on floor 3", "café", "it's")))
		if g.chance(2) {
			d.set("limit", strconv.Itoa(1+g.IntN(50)))
		}
		return d
	}
	d := &draft{kind: quote("call_tool"), server: quote(serverKB), tool: quote(toolFetch)}
	d.set("entry_id", quote(fmt.Sprintf("entry-%03d", g.IntN(1000))))
	for _, optional := range []struct {
		name   string
		values []string
	}{
		{"lang", []string{`"en"`, `"de"`}}, {"version", []string{"1", "2", "5", "9"}}, {"exact", []string{"true", "false"}},
		{"weight", []string{"0", "0.5", "1", "0.25", "1e-3"}}, {"tags", []string{`[]`, `["a"]`, `["hr","it"]`}},
		{"filter", []string{`{}`, `{"owner":"Records Office"}`}},
	} {
		if g.chance(2) {
			d.set(optional.name, pick(g, optional.values...))
		}
	}
	return d
}

// members are the plan's own members, in the usual order.
func (d *draft) members() []member {
	args := d.whole
	if args == "" {
		args = object(d.args)
	}
	return append([]member{{quote("type"), d.kind}, {quote("server"), d.server}, {quote("tool"), d.tool}, {quote("args"), args}}, d.more...)
}

func (d *draft) String() string { return object(d.members()) }

func object(members []member) string {
	var all []string
	for _, m := range members {
		all = append(all, m.name+":"+m.value)
	}
	return "{" + strings.Join(all, ",") + "}"
}

// shuffle changes the order of members.
func (g *gen) shuffle(m []member) []member {
	g.Shuffle(len(m), func(i, j int) { m[i], m[j] = m[j], m[i] })
	return m
}

// set gives an argument another value, or adds it.
func (d *draft) set(name, value string) {
	for i := range d.args {
		if d.args[i].name == quote(name) {
			d.args[i].value = value
			return
		}
	}
	d.args = append(d.args, member{quote(name), value})
}

// searches reports whether the draft calls search_tickets.
func (d *draft) searches() bool { return d.tool == quote(toolSearch) }

// escape writes some of the ASCII letters of a JSON string as escapes.
func (g *gen) escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '"' || r > 0x7e || !g.chance(3):
			b.WriteRune(r)
		case g.chance(2):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\u%04X`, r)
		}
	}
	return b.String()
}

// nearMiss changes a name by one step, so that it is another name.
func (g *gen) nearMiss(name string) string {
	i := g.IntN(len(name))
	return pick(g, name[:i]+name[i+1:], name[:i]+name[i:i+1]+name[i:], name[:i]+"x"+name[i+1:], strings.ToUpper(name), strings.ToUpper(name[:1])+name[1:],
		name+"s", name+" ", " "+name, name+"/..", "*", name+"*", name[:1]+"*", serverKB+"."+name, name+`\u0000`, name+`\n`)
}

// confuse replaces a letter by one of another alphabet that looks like it.
func (g *gen) confuse(text string) string {
	const from = "acedoiskb"
	for {
		i := g.IntN(len(from))
		if at := strings.IndexByte(text, from[i]); at >= 0 {
			return text[:at] + string(pick(g, []rune("асеԁоіѕкЬ")[i], []rune("ａｃｅｄｏｉｓｋｂ")[i])) + text[at+1:]
		}
	}
}

// hidden are texts that do not show.
var hidden = []string{"\u200b", "\u00ad", "\ufeff", "\u202e", "\u2060", "\u034f", "\ufe0f"}

// hide puts a text that does not show behind one of the letters of a text.
func (g *gen) hide(text string) string {
	i := 2 + g.IntN(len(text)-3)
	return text[:i] + pick(g, hidden...) + text[i:]
}
