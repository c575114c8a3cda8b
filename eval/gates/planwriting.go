package gates

import "strings"

// textually makes plans by changing the text of one.
func textually(change func(g *gen, plan string) string) func(*gen) string {
	return func(g *gen) string { return change(g, g.draft().String()) }
}

// shapeClasses are JSON, and not the shape of a plan.
func shapeClasses() []planClass {
	return []planClass{
		{"duplicate_member", refused, 5, duplicated},
		{"member_case", refused, 3, func(g *gen) string {
			m := g.draft().members()
			i := g.IntN(len(m))
			m[i].name = pick(g, strings.ToUpper(m[i].name), `"`+strings.ToUpper(m[i].name[1:2])+m[i].name[2:], g.confuse(m[i].name))
			return object(m)
		}},
		{"member_unknown", refused, 3, func(g *gen) string {
			d := g.draft()
			d.more = []member{{quote(pick(g, "reason", "needs_more_info", "answer", "", "$schema", "arguments", "name", "type ")), pick(g, `"x"`, "true", "null", "{}")}}
			return object(g.shuffle(d.members()))
		}},
		{"member_missing", refused, 3, func(g *gen) string { return g.draft().without(g.IntN(4)) }},
		{"member_type", refused, 3, func(g *gen) string {
			m := g.draft().members()
			i := g.IntN(len(m))
			m[i].value = pick(g, "null", "7", "true", "[]", `[{"x":1}]`, `""`, `{"a":1}`)
			return object(m)
		}},
		{"kind_unknown", refused, 2, func(g *gen) string {
			d := g.draft()
			d.kind = quote(pick(g, "call_tools", "CALL_TOOL", "tool_call", "function", "call_tool ", "final_answer", "cаll_tool"))
			return d.String()
		}},
	}
}

// writingClasses write a plan down in a way that is no strict JSON.
func writingClasses() []planClass {
	text := textually
	return []planClass{
		{"trailing_text", refused, 4, text(func(g *gen, p string) string {
			return p + pick(g, "}", "\n\nI will call this tool now.", ",", " {}", "\x00", ";", "null", "//", "\u2028", "]", "\u00a0", "\f")
		})},
		{"leading_text", refused, 3, text(func(g *gen, p string) string {
			return pick(g, "Here is the plan: ", ")]}',\n", "\v", "\u00a0", "json", "<think></think>", "\u200b", "[", ",") + p
		})},
		{"fenced", refused, 3, text(func(g *gen, p string) string {
			return pick(g, "```json\n"+p+"\n```", "```\n"+p+"\n```", "~~~\n"+p+"\n~~~", "`"+p+"`", "<tool_call>"+p+"</tool_call>")
		})},
		{"two_plans", refused, 3, text(func(g *gen, p string) string { return p + pick(g, "", "\n", " ", ",") + g.draft().String() })},
		{"nearly_json", refused, 4, text(nearlyJSON)},
		{"encoding", refused, 4, text(encoded)},
		{"bad_utf8", refused, 3, text(func(g *gen, p string) string {
			return into(g, p, pick(g, "\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3", "\x80"))
		})},
		{"lone_surrogate", refused, 3, text(func(g *gen, p string) string {
			return into(g, p, pick(g, `\ud800`, `\udc00`, `\ud83d`, `\udE00\ud83d`, `\ud800x`, `\ud800\u0041`))
		})},
		{"control_character", refused, 2, text(func(g *gen, p string) string { return into(g, p, pick(g, "\x00", "\n", "\x1f", "\t", "\x01", "\r")) })},
		{"nested_deep", refused, 2, func(g *gen) string {
			d := g.draft()
			d.set("filter", nested(pick(g, 62, 63, 64, 65, 300, 1100, 9000)))
			return d.String()
		}},
		{"too_large", refused, 1, func(g *gen) string {
			d := g.draft()
			if g.chance(2) {
				return d.String() + strings.Repeat(" ", pick(g, readBytes, readBytes-20))
			}
			d.set("note", quote(filled(readBytes)))
			return d.String()
		}},
		{"truncated", refused, 4, text(func(g *gen, p string) string { return p[:g.IntN(len(p))] })},
		{"empty", refused, 1, func(g *gen) string { return pick(g, "", " ", "\n", "{}", "[]", "null", `""`, "0", "true", "\ufeff") }},
	}
}

// chanceClasses change a plan blindly: whether it is still one, and which, is for the second reader to say.
func chanceClasses() []planClass {
	text := textually
	return []planClass{
		{"byte_changed", "", 5, text(func(g *gen, p string) string {
			b := []byte(p)
			b[g.IntN(len(b))] = byte(g.IntN(256))
			return string(b)
		})},
		{"bit_flipped", "", 5, text(func(g *gen, p string) string {
			b := []byte(p)
			b[g.IntN(len(b))] ^= 1 << g.IntN(8)
			return string(b)
		})},
		{"byte_lost", "", 3, text(func(g *gen, p string) string {
			i := g.IntN(len(p))
			return p[:i] + p[i+1:]
		})},
		{"byte_twice", "", 2, text(func(g *gen, p string) string {
			i := g.IntN(len(p))
			return p[:i] + p[i:i+1] + p[i:]
		})},
		{"spliced", "", 3, text(func(g *gen, p string) string {
			other := g.draft().String()
			return p[:g.IntN(len(p))] + other[g.IntN(len(other)):]
		})},
		{"bytes_moved", "", 2, text(func(g *gen, p string) string {
			b := []byte(p)
			i, j := g.IntN(len(b)), g.IntN(len(b))
			b[i], b[j] = b[j], b[i]
			return string(b)
		})},
	}
}

// duplicated says one thing twice: a reader that takes the first and one that takes the last read two plans.
func duplicated(g *gen) string {
	d := g.draft()
	m := d.members()
	switch g.IntN(4) {
	case 0:
		i := g.IntN(len(d.args))
		d.args = append(d.args, member{pick(g, d.args[i].name, g.escapeAll(d.args[i].name)), d.args[i].value})
		return d.String()
	case 1:
		d.set("filter", pick(g, `{"owner":"a","owner":"b"}`, `{"owner":"a","\u006fwner":"a"}`))
		return d.String()
	case 2:
		return object(append(m, member{pick(g, quote("tool"), `"t\u006fol"`), quote(toolDelete)}))
	}
	i := g.IntN(len(m))
	return object(append([]member{{g.escapeAll(m[i].name), m[i].value}}, m...))
}

// escapeAll spells the first letter of a JSON string as an escape.
func (g *gen) escapeAll(text string) string {
	const digits = "0123456789abcdef"
	return `"\u00` + string(digits[text[1]>>4]) + string(digits[text[1]&15]) + text[2:]
}

// nearlyJSON is what lenient readers take.
func nearlyJSON(g *gen, p string) string {
	return pick(g,
		strings.ReplaceAll(p, `"`, "'"),
		p[:len(p)-1]+",}",
		p[:len(p)-1]+",,}",
		"/* plan */"+p,
		p+" // done",
		"# plan\n"+p,
		strings.Replace(p, `"type"`, "type", 1),
		strings.Replace(p, `"args":{`, `"args":{"weight":NaN,`, 1),
		strings.Replace(p, `"args":{`, `"args":{"weight":Infinity,`, 1),
		strings.Replace(p, `"args":{`, `"args":{"version":0x1,`, 1),
		strings.Replace(p, `"args":{`, `"args":{"version":01,`, 1),
		strings.Replace(p, `"args":{`, `"args":{"version":+1,`, 1),
		strings.Replace(p, `"args":{`, `"args":{"weight":.5,`, 1),
		strings.Replace(p, `"args":{`, `"args":{"weight":1.,`, 1),
		strings.Replace(p, `"args":{`, `"args":{"exact":True,`, 1),
		strings.Replace(p, `"args":{`, `"args":{"lang":"\x65n",`, 1),
		strings.Replace(p, ":", "=", 1),
		strings.Replace(p, ",", ";", 1),
		strings.Replace(p, `"`, "“", 2),
		"("+p+")",
		strings.Replace(p, `":"`, `""`, 1),
	)
}

// encoded is a plan in another encoding than UTF-8, or with a mark of one.
func encoded(g *gen, p string) string {
	wide := func(low, high func(byte) byte) string {
		var b strings.Builder
		for i := range len(p) {
			b.WriteByte(low(p[i]))
			b.WriteByte(high(p[i]))
		}
		return b.String()
	}
	same, none := func(c byte) byte { return c }, func(byte) byte { return 0 }
	switch g.IntN(5) {
	case 0:
		return "\ufeff" + p
	case 1:
		return wide(same, none)
	case 2:
		return "\xff\xfe" + wide(same, none)
	case 3:
		return wide(none, same)
	}
	return "\x00" + p
}

// into puts something into one of the plan's strings, behind its first letter.
func into(g *gen, p, what string) string {
	var ends []int
	for i := range len(p) {
		if i > 1 && p[i] == '"' && p[i-1] != '\\' && isLetter(p[i-1]) {
			ends = append(ends, i)
		}
	}
	i := pick(g, ends...)
	return p[:i] + what + p[i:]
}

func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
