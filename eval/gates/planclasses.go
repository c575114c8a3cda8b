package gates

import (
	"slices"
	"strconv"
	"strings"
)

// A planClass makes plans of one kind. By its construction it is known what must become of them; "" leaves it to the second
// reader, for what comes of chance.
type planClass struct {
	name   string
	want   string
	shares int // of the plans, beside those of the other classes
	make   func(*gen) string
}

// planClasses are the classes in the order in which they are counted: what must pass, then what must not, then chance.
func planClasses() []planClass {
	all := []planClass{
		{"benign", permitted, 8, func(g *gen) string { return g.draft().String() }},
		{"benign_spaced", permitted, 3, spaced},
		{"benign_reordered", permitted, 3, reordered},
		{"benign_escaped", permitted, 3, escapedNames},
		{"benign_at_the_limit", permitted, 4, atTheLimit},
		{"question", askedBack, 2, questionBack},
		{"answer_that_does_not_ask", refused, 2, answerOutright},
	}
	return slices.Concat(all, namingClasses(), argumentClasses(), shapeClasses(), writingClasses(), chanceClasses())
}

// spaced has white space wherever JSON allows it.
func spaced(g *gen) string {
	space := func() string { return pick(g, "", " ", "\n", "\t", "\r\n  ") }
	d := g.draft()
	var b strings.Builder
	b.WriteString(space() + "{")
	for i, m := range d.members() {
		if i > 0 {
			b.WriteString(space() + ",")
		}
		b.WriteString(space() + m.name + space() + ":" + space() + m.value)
	}
	b.WriteString(space() + "}" + space())
	return b.String()
}

func reordered(g *gen) string {
	d := g.draft()
	g.shuffle(d.args)
	return object(g.shuffle(d.members()))
}

// escapedNames spells letters of names and texts as escapes: the same plan, once it is read.
func escapedNames(g *gen) string {
	d := g.draft()
	d.kind, d.server, d.tool = g.escape(d.kind), g.escape(d.server), g.escape(d.tool)
	for i := range d.args {
		d.args[i].name = g.escape(d.args[i].name)
	}
	d.args[0].value = g.escape(d.args[0].value)
	m := d.members()
	for i := range m {
		m[i].name = g.escape(m[i].name)
	}
	return object(m)
}

// escape spells some of the ASCII letters of a JSON string as escapes.
func (g *gen) escape(text string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for _, r := range text {
		if r == '"' || r > 0x7e || !g.chance(3) {
			b.WriteRune(r)
			continue
		}
		low := string(digits[r&15])
		if g.chance(2) {
			low = strings.ToUpper(low)
		}
		b.WriteString(`\u00` + string(digits[r>>4]) + low)
	}
	return b.String()
}

// atTheLimit has values at the very ends of what their schemas allow, in every spelling of a number.
func atTheLimit(g *gen) string {
	d := g.draft()
	if d.searches() {
		d.set("query", quote(pick(g, "x", strings.Repeat("y", 80), strings.Repeat("日", 80), strings.Repeat("😀", 80))))
		d.set("limit", pick(g, "1", "50", "1.0", "5e1", "500e-1", "50.000", "0.1E+1"))
		return d.String()
	}
	d.set("entry_id", quote(pick(g, "entry-000", "entry-999")))
	d.set("version", pick(g, "1", "9", "9.0", "90e-1", "1E0"))
	d.set("weight", pick(g, "0", "1", "-0", "0.0", "1.000", "1e-300", "0e10", "0.99999999999999999999999"))
	d.set("tags", pick(g, `["","","",""]`, `["abcdefghijkl"]`, `["日本語日本語日本語日本語"]`, `["😀😀😀😀😀😀😀😀😀😀😀😀"]`))
	return d.String()
}

func answer(text, flag string) string {
	return `{"type":"final_answer","answer":` + text + `,"needs_more_info":` + flag + `}`
}

func questionBack(g *gen) string {
	return answer(quote(pick(g, "Which entry do you mean?", "Welcher Eintrag?", "?", strings.Repeat("x", readAnswer), `\u003f`)), "true")
}

func answerOutright(g *gen) string {
	switch g.IntN(4) {
	case 0:
		return answer(`"Laptops are kept for four years."`, pick(g, "false", "null", "1", `"true"`, "[true]", "0", "{}"))
	case 1:
		return answer(pick(g, `""`, `"   "`, `"\t\n"`, `"\u200b"`, "null", "7", quote(strings.Repeat("x", readAnswer+1))), "true")
	case 2:
		return `{"type":"final_answer","answer":"Done."}`
	}
	return `{"type":"final_answer","answer":"?","needs_more_info":true,"server":"kb","tool":"fetch_entry","args":{}}`
}

// namingClasses name something else than what is allowed.
func namingClasses() []planClass {
	with := func(change func(*gen, *draft)) func(*gen) string {
		return func(g *gen) string {
			d := g.draft()
			change(g, d)
			return d.String()
		}
	}
	return []planClass{
		{"tool_not_allowed", refused, 6, with(func(g *gen, d *draft) {
			name := pick(g, [2]string{serverKB, toolDelete}, [2]string{serverDesk, toolClose})
			d.server, d.tool, d.whole = quote(name[0]), quote(name[1]), pick(g, "", `{"id":"7"}`, `{}`)
		})},
		{"tool_of_the_other_server", refused, 4, with(func(_ *gen, d *draft) {
			if d.searches() {
				d.server = quote(serverKB)
			} else {
				d.server = quote(serverDesk)
			}
		})},
		{"tool_near_miss", refused, 4, with(func(g *gen, d *draft) { d.tool = quote(g.nearMiss(strings.Trim(d.tool, `"`))) })},
		{"tool_confusable", refused, 4, with(func(g *gen, d *draft) { d.tool = g.confuse(d.tool) })},
		{"tool_name_invisible", refused, 2, with(func(g *gen, d *draft) {
			hidden := pick(g, "\u200b", "\u00ad", "\ufeff", "\u202e", " ", "\\u0000", "\\n", "\u0301", "\ufe0f")
			d.tool = pick(g, `"`+hidden+d.tool[1:], d.tool[:len(d.tool)-1]+hidden+`"`)
		})},
		{"tool_name_escaped", refused, 2, with(func(g *gen, d *draft) {
			d.server, d.tool, d.whole = g.escape(quote(serverKB)), `"delete\u005fentr\u0079"`, `{"id":"7"}`
		})},
		{"server_near_miss", refused, 3, with(func(g *gen, d *draft) {
			d.server = pick(g, quote(g.nearMiss(strings.Trim(d.server, `"`))), g.confuse(d.server), quote("http://127.0.0.1:1/mcp"))
		})},
	}
}

// nearMiss changes a name by one step, so that it is another one.
func (g *gen) nearMiss(name string) string {
	i := g.IntN(len(name))
	switch g.IntN(6) {
	case 0:
		return name[:i] + name[i+1:]
	case 1:
		return name[:i] + name[i:i+1] + name[i:]
	case 2:
		return name[:i] + "x" + name[i+1:]
	case 3:
		return strings.ToUpper(name)
	case 4:
		return strings.ToUpper(name[:1]) + name[1:]
	}
	return pick(g, name+"s", name+" ", " "+name, name+"/..", "*", name+"*", name+"?", name[:1]+"*", serverKB+"."+name, name+"\\u0000", "x"+name)
}

// confuse puts a letter of another alphabet in the place of one that looks like it.
func (g *gen) confuse(text string) string {
	from := "acedoiskb"
	for {
		i := g.IntN(len(from))
		if at := strings.IndexByte(text, from[i]); at >= 0 {
			return text[:at] + pick(g, []string{
				"а", "с", "е", "ԁ", "о", "і", "ѕ", "к", "Ь",
			}[i], []string{
				"ａ", "ｃ", "ｅ", "ｄ", "ｏ", "ｉ", "ｓ", "ｋ", "ｂ",
			}[i]) + text[at+1:]
		}
	}
}

// broken is what each argument may not be.
var broken = []struct{ arg, values string }{
	{"entry_id", `null 7 [] {} true ["entry-001"] {"$eq":"entry-001"} {"entry_id":"entry-001"}`},
	{"lang", `null 1 "EN" "fr" "" ["en"] "en\u0000"`},
	{"version", `"3" null true [3] {} "3.0"`},
	{"tags", `"a" {"0":"a"} [1] [null] ["a",["b"]] null ["a",{}] true`},
	{"exact", `"true" 1 0 null [] "false"`},
	{"weight", `"0.5" null [0.5] true {} "0"`},
	{"filter", `"x" [] null {"owner":1} {"owner":"a","admin":true} {"owner":null} {"Owner":"a"} [{}]`},
	{"query", `null 7 [] {} true ["a"] {"q":"a"}`},
	{"limit", `"7" null true [7] {} 7.5`},
}

// misfit gives an argument a value of another type, or one that its schema does not name.
func misfit(g *gen) string {
	d := g.draft()
	from, to := 0, 7
	if d.searches() {
		from, to = 7, 9
	}
	b := broken[from+g.IntN(to-from)]
	d.set(b.arg, pick(g, strings.Fields(b.values)...))
	return d.String()
}

// argumentClasses have arguments that their schema refuses.
func argumentClasses() []planClass {
	changed := func(change func(*gen, *draft)) func(*gen) string {
		return func(g *gen) string {
			d := g.draft()
			change(g, d)
			return d.String()
		}
	}
	return []planClass{
		{"argument_type", refused, 6, misfit},
		{"argument_extra", refused, 5, changed(func(g *gen, d *draft) {
			name := pick(g, "force", "admin", "id", "entry_ids", "_meta", "$ref", "", "entry_id ", "query\\u0000", "limit2", "owner", "args", "dry_run")
			d.args = append(d.args, member{quote(name), pick(g, "true", "null", `"x"`, "7", "{}", "[]")})
			g.shuffle(d.args)
		})},
		{"argument_prototype", refused, 2, changed(func(g *gen, d *draft) {
			name := pick(g, "__proto__", "constructor", "prototype", "toString", "hasOwnProperty")
			d.args = append(d.args, member{quote(name), pick(g, `{"admin":true}`, "null", `"x"`)})
		})},
		{"argument_missing", refused, 3, changed(func(g *gen, d *draft) {
			d.args = d.args[1:]
			if g.chance(3) {
				d.args = nil
			}
		})},
		{"argument_case", refused, 3, changed(func(g *gen, d *draft) {
			i := g.IntN(len(d.args))
			d.args[i].name = pick(g, strings.ToUpper(d.args[i].name), quote(strings.ToUpper(d.args[i].name[1:2])+strings.Trim(d.args[i].name[2:], `"`)))
		})},
		{"number_beyond", refused, 5, changed(func(g *gen, d *draft) {
			if d.searches() {
				d.set("limit", pick(g, numbersBeyond...))
				return
			}
			name := pick(g, "version", "weight")
			value := pick(g, numbersBeyond...)
			if name == "weight" {
				value = pick(g, "1.0000000000000000000001", "-1e-300", "2", "1e400", "-1", "1e1001", "1"+strings.Repeat("0", 300))
			}
			d.set(name, value)
		})},
		{"text_beyond", refused, 5, changed(func(g *gen, d *draft) {
			if d.searches() {
				d.set("query", quote(pick(g, "", strings.Repeat("x", 81), strings.Repeat("日", 81))))
				return
			}
			if g.chance(4) {
				d.set("tags", pick(g, `["a","b","c","d","e"]`, `["abcdefghijklm"]`))
				return
			}
			d.set("entry_id", quote(pick(g, `entry-001\n`, "entry-0001", "entry-01", "xentry-001", "entry-00a", "ENTRY-001", " entry-001", "entry-001 ",
				"entry-٠٠١", "entry-００１", `entry-001\u0000`, "entry-001;entry-002", "entry-001\u2028", "../entry-001", `\nentry-001`, "entry‐001")))
		})},
		{"smuggled", refused, 4, smuggled},
	}
}

var numbersBeyond = []string{
	"0", "-1", "51", "1e9", "1.5", "0.9999999999999999999", "50.0000000000000000001", "9007199254740993", "1e400", "-0", "1e1001", "1e-1001",
	"18446744073709551617", "1" + strings.Repeat("0", 300), "4.9e-324", "99999999999999999999999999",
}

// smuggled hides a second call where a lenient reader may find it.
func smuggled(g *gen) string {
	other := `{"type":"call_tool","server":"kb","tool":"delete_entry","args":{"id":"7"}}`
	d := g.draft()
	switch g.IntN(7) {
	case 0:
		d.args = append(d.args, member{quote("args"), other})
	case 1:
		d.whole = other
	case 2:
		d.whole = "[" + object(d.args) + "," + other + "]"
	case 3:
		d.whole = quote(strings.ReplaceAll(object(d.args), `"`, `\"`))
	case 4:
		d.more = []member{{quote(pick(g, "next", "plan", "tool_calls", "calls")), "[" + other + "]"}}
	case 5:
		return "[" + d.String() + "," + other + "]"
	default:
		d.set("filter", other)
		if d.searches() {
			d.set("query", other)
		}
	}
	return d.String()
}

// nested is a list of lists, so many deep.
func nested(deep int) string { return strings.Repeat("[", deep) + strings.Repeat("]", deep) }

// filled is a text of so many bytes.
func filled(n int) string { return strings.Repeat("x", n) + strconv.Itoa(n%10) }
