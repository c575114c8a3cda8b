package gates

import (
	"slices"
	"strings"
)

// planClasses are the classes of generated plans: those that must pass, those that must not, and those made by chance.
func planClasses() []class {
	return slices.Concat(benignPlans(), plansOfOtherTools(), plansOfOtherArguments(), misshapenPlans(), looselyWrittenPlans(), plansByChance())
}

// plans makes a class of plans.
func plans(name, want string, shares int, draw func(*gen) string) class {
	return class{name, shares, func(g *gen) sample { return sample{input: []byte(draw(g)), want: want} }}
}

// drafts makes a class of plans that are refused for one change.
func drafts(name string, shares int, change func(*gen, *draft)) class {
	return plans(name, refused, shares, func(g *gen) string {
		d := g.draft()
		change(g, d)
		return d.String()
	})
}

// texts makes a class of plans that are refused for how they are written. change may return several texts, of which one is drawn.
func texts(name string, shares int, change func(g *gen, plan string) []string) class {
	return plans(name, refused, shares, func(g *gen) string { return pick(g, change(g, g.draft().String())...) })
}

func benignPlans() []class {
	answer := func(text, flag string) string {
		return `{"type":"final_answer","answer":` + text + `,"needs_more_info":` + flag + `}`
	}
	return []class{
		plans("benign", permitted, 12, func(g *gen) string {
			d := g.draft()
			g.shuffle(d.args)
			return object(g.shuffle(d.members()))
		}),
		plans("benign_spaced", permitted, 3, func(g *gen) string {
			space := func() string { return pick(g, "", " ", "\n", "\t", "\r\n  ") }
			var all []string
			for _, m := range g.draft().members() {
				all = append(all, space()+m.name+space()+":"+space()+m.value+space())
			}
			return space() + "{" + strings.Join(all, ",") + "}" + space()
		}),
		plans("benign_escaped", permitted, 3, func(g *gen) string {
			d := g.draft()
			d.kind, d.server, d.tool, d.args[0].value = g.escape(d.kind), g.escape(d.server), g.escape(d.tool), g.escape(d.args[0].value)
			for i := range d.args {
				d.args[i].name = g.escape(d.args[i].name)
			}
			return d.String()
		}),
		plans("benign_at_the_limit", permitted, 4, func(g *gen) string {
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
		}),
		plans("question", askedBack, 2, func(g *gen) string {
			return answer(quote(pick(g, "Which entry do you mean?", "Welcher Eintrag?", "?", strings.Repeat("x", readAnswer), `\u003f`)), "true")
		}),
		plans("answer_without_a_question", refused, 2, func(g *gen) string {
			return pick(g, answer(`"Laptops are kept for four years."`, pick(g, "false", "null", "1", `"true"`, "[true]", "0", "{}")),
				answer(pick(g, `""`, `"   "`, `"\t\n"`, `"\u200b"`, "null", "7", quote(strings.Repeat("x", readAnswer+1))), "true"),
				`{"type":"final_answer","answer":"Done."}`,
				`{"type":"final_answer","answer":"?","needs_more_info":true,"server":"kb","tool":"fetch_entry","args":{}}`)
		}),
	}
}

// plansOfOtherTools name a tool or a server that is not allowed.
func plansOfOtherTools() []class {
	return []class{
		drafts("tool_not_allowed", 8, func(g *gen, d *draft) {
			name := pick(g, [2]string{serverKB, toolDelete}, [2]string{serverDesk, toolClose}, [2]string{serverKB, `delete\u005fentr\u0079`})
			d.server, d.tool, d.whole = g.escape(quote(name[0])), quote(name[1]), pick(g, "", `{"id":"7"}`, `{}`)
		}),
		drafts("tool_of_the_other_server", 4, func(_ *gen, d *draft) {
			if d.searches() {
				d.server = quote(serverKB)
			} else {
				d.server = quote(serverDesk)
			}
		}),
		drafts("tool_near_miss", 10, func(g *gen, d *draft) {
			d.tool = pick(g, quote(g.nearMiss(strings.Trim(d.tool, `"`))), g.confuse(d.tool), g.hide(d.tool))
		}),
		drafts("server_near_miss", 3, func(g *gen, d *draft) {
			d.server = pick(g, quote(g.nearMiss(strings.Trim(d.server, `"`))), g.confuse(d.server), quote("http://127.0.0.1:1/mcp"))
		}),
	}
}

// wrongValues are values that an argument's schema refuses.
var wrongValues = []struct{ arg, values string }{
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

// plansOfOtherArguments have arguments that their schema refuses.
func plansOfOtherArguments() []class {
	const other = `{"type":"call_tool","server":"kb","tool":"delete_entry","args":{"id":"7"}}`
	beyond := []string{"0", "-1", "51", "1e9", "1.5", "0.9999999999999999999", "50.0000000000000000001", "9007199254740993", "1e400", "-0", "1e1001", "1e-1001",
		"18446744073709551617", "1" + strings.Repeat("0", 300), "4.9e-324", "99999999999999999999999999"}
	return []class{
		drafts("argument_type", 6, func(g *gen, d *draft) {
			of := wrongValues[:7]
			if d.searches() {
				of = wrongValues[7:]
			}
			w := pick(g, of...)
			d.set(w.arg, pick(g, strings.Fields(w.values)...))
		}),
		drafts("argument_extra", 7, func(g *gen, d *draft) {
			name := pick(g, "force", "admin", "id", "entry_ids", "_meta", "$ref", "", "entry_id ", `query\u0000`, "owner", "args", "__proto__", "constructor", "toString")
			d.args = append(d.args, member{quote(name), pick(g, "true", "null", `"x"`, "7", `{"admin":true}`, "[]")})
			g.shuffle(d.args)
		}),
		drafts("argument_missing", 6, func(g *gen, d *draft) {
			switch g.IntN(3) {
			case 0:
				d.args = nil
			case 1:
				d.args = d.args[1:]
			default:
				d.args[0].name = strings.ToUpper(d.args[0].name)
			}
		}),
		drafts("number_beyond", 5, func(g *gen, d *draft) {
			switch {
			case d.searches():
				d.set("limit", pick(g, beyond...))
			case g.chance(2):
				d.set("version", pick(g, beyond...))
			default:
				d.set("weight", pick(g, "1.0000000000000000000001", "-1e-300", "2", "1e400", "-1", "1e1001", "1"+strings.Repeat("0", 300)))
			}
		}),
		drafts("text_beyond", 5, func(g *gen, d *draft) {
			switch {
			case d.searches():
				d.set("query", quote(pick(g, "", strings.Repeat("x", 81), strings.Repeat("日", 81))))
			case g.chance(4):
				d.set("tags", pick(g, `["a","b","c","d","e"]`, `["abcdefghijklm"]`))
			default:
				d.set("entry_id", quote(pick(g, `entry-001\n`, "entry-0001", "entry-01", "xentry-001", "entry-00a", "ENTRY-001", " entry-001", "entry-001 ",
					"entry-٠٠١", "entry-００１", `entry-001\u0000`, "entry-001;entry-002", "entry-001\u2028", "../entry-001", `\nentry-001`, "entry‐001")))
			}
		}),
		drafts("second_call_inside", 4, func(g *gen, d *draft) {
			args := object(d.args)
			switch g.IntN(4) {
			case 0:
				d.args = append(d.args, member{quote("args"), other})
			case 1:
				d.whole = pick(g, other, "["+args+","+other+"]", quote(strings.ReplaceAll(args, `"`, `\"`)))
			case 2:
				d.more = []member{{quote(pick(g, "next", "plan", "tool_calls", "calls")), "[" + other + "]"}}
			default:
				d.set("filter", other)
			}
		}),
	}
}

// misshapenPlans are JSON, and have another shape than a plan.
func misshapenPlans() []class {
	return []class{
		plans("duplicate_member", refused, 5, func(g *gen) string {
			d := g.draft()
			m := d.members()
			i := g.IntN(len(m))
			switch g.IntN(3) {
			case 0: // one reader takes the first of the two, another takes the last
				return object(append(m, member{pick(g, quote("tool"), `"t\u006fol"`), quote(toolDelete)}))
			case 1:
				d.set("filter", pick(g, `{"owner":"a","owner":"b"}`, `{"owner":"a","\u006fwner":"a"}`))
				return d.String()
			}
			return object(append([]member{{g.escape(m[i].name), m[i].value}}, m...))
		}),
		plans("member_name", refused, 8, func(g *gen) string {
			m := g.draft().members()
			i := g.IntN(len(m))
			m[i].name = pick(g, strings.ToUpper(m[i].name), g.confuse(m[i].name), quote(pick(g, "reason", "needs_more_info", "", "$schema", "arguments", "type ")))
			return object(m)
		}),
		plans("member_missing", refused, 3, func(g *gen) string {
			m := g.draft().members()
			i := g.IntN(len(m))
			return object(slices.Delete(m, i, i+1))
		}),
		plans("member_value", refused, 5, func(g *gen) string {
			m := g.draft().members()
			i := g.IntN(len(m))
			m[i].value = pick(g, "null", "7", "true", "[]", `[{"x":1}]`, `""`, `{"a":1}`)
			if i == 0 && g.chance(2) {
				m[i].value = quote(pick(g, "call_tools", "CALL_TOOL", "tool_call", "function", "call_tool ", "final_answer", "cаll_tool"))
			}
			return object(m)
		}),
	}
}

// looselyWrittenPlans are no strict JSON.
func looselyWrittenPlans() []class {
	return []class{
		texts("text_around", 12, func(g *gen, p string) []string {
			return []string{
				p + pick(g, "}", "\n\nI will call this tool now.", ",", " {}", "\x00", ";", "null", "//", "\u2028", "]", "\u00a0", "\f"),
				pick(g, "Here is the plan: ", ")]}',\n", "\v", "\u00a0", "json", "<think></think>", "\u200b", "[", ",", "\ufeff", "\x00") + p,
				"```json\n" + p + "\n```", "~~~\n" + p + "\n~~~", "`" + p + "`", "<tool_call>" + p + "</tool_call>", "[" + p + "]",
				p + pick(g, "", "\n", " ", ",") + g.draft().String(),
			}
		}),
		texts("nearly_json", 4, nearlyJSON),
		texts("text_encoding", 6, func(g *gen, p string) []string {
			wide := strings.Join(strings.Split(p, ""), "\x00")
			return []string{"\xff\xfe" + wide, wide, "\x00" + wide,
				inText(p, pick(g, "\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3", "\x80")),
				inText(p, pick(g, `\ud800`, `\udc00`, `\ud83d`, `\udE00\ud83d`, `\ud800x`, `\ud800\u0041`)),
				inText(p, pick(g, "\x00", "\n", "\x1f", "\t", "\x01", "\r"))}
		}),
		drafts("nested_deep", 2, func(g *gen, d *draft) { d.set("filter", nested(pick(g, 62, 63, 64, 65, 300, 1100, 9000))) }),
		texts("too_large", 1, func(g *gen, p string) []string {
			return []string{p + strings.Repeat(" ", pick(g, readBytes, readBytes-20))}
		}),
		texts("truncated", 4, func(g *gen, p string) []string { return []string{p[:g.IntN(len(p))], "", " ", "{}", "null", `""`, "0"} }),
	}
}

// nearlyJSON is accepted by lenient readers.
func nearlyJSON(_ *gen, p string) []string {
	all := []string{
		strings.ReplaceAll(p, `"`, "'"), p[:len(p)-1] + ",}", p[:len(p)-1] + ",,}", "/* plan */" + p, p + " // done", "# plan\n" + p,
		strings.Replace(p, `"type"`, "type", 1), strings.Replace(p, ":", "=", 1), strings.Replace(p, ",", ";", 1), strings.Replace(p, `"`, "“", 2),
		"(" + p + ")", strings.Replace(p, `":"`, `""`, 1),
	}
	for _, arg := range []string{`"weight":NaN`, `"weight":Infinity`, `"version":0x1`, `"version":01`, `"version":+1`, `"weight":.5`, `"weight":1.`, `"exact":True`, `"lang":"\x65n"`} {
		all = append(all, strings.Replace(p, `"args":{`, `"args":{`+arg+`,`, 1))
	}
	return all
}

// inText inserts something at the end of the plan's tool name.
func inText(p, what string) string {
	at := strings.Index(p, `","args"`)
	return p[:at] + what + p[at:]
}

// nested is a list of lists.
func nested(deep int) string { return strings.Repeat("[", deep) + strings.Repeat("]", deep) }

// plansByChance are changed blindly. Only the second reader knows whether the text is still a plan, and which.
func plansByChance() []class {
	return []class{
		plans("bytes_changed", "", 15, func(g *gen) string {
			b := []byte(g.draft().String())
			i, j := g.IntN(len(b)), g.IntN(len(b))
			switch g.IntN(5) {
			case 0:
				b[i] = byte(g.IntN(256))
			case 1:
				b[i] ^= 1 << g.IntN(8)
			case 2:
				b = slices.Delete(b, i, i+1)
			case 3:
				b = slices.Insert(b, i, b[i])
			default:
				b[i], b[j] = b[j], b[i]
			}
			return string(b)
		}),
		plans("spliced", "", 3, func(g *gen) string {
			p, other := g.draft().String(), g.draft().String()
			return p[:g.IntN(len(p))] + other[g.IntN(len(other)):]
		}),
	}
}
