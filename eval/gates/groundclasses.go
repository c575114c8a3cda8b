package gates

import (
	"fmt"
	"strconv"
	"strings"

	"pgfsm/internal/canonical"
)

// An item is one item of a summary, before it is written.
type item struct{ claim, evidence string }

// A document is a typed payload, and its texts.
type document struct {
	payload   []byte
	sentences []sentence // of one value, in order
	title     string     // a whole value
	notes     []string   // whole values
	count     int        // a number
}

// A sentence of a document, and the one token in it that a summary must not change.
type sentence struct{ text, token string }

// sentences are the kinds of sentence. A document has at most one of each kind, so that no text occurs in it twice.
var sentences = []func(*gen) (format, token string){
	func(g *gen) (string, string) {
		return "Security logs are kept for %s days.", strconv.Itoa(100 + g.IntN(900))
	},
	func(g *gen) (string, string) {
		return "The main office opens at %s on weekdays.", fmt.Sprintf("%02d:%02d", g.IntN(24), 10+g.IntN(50))
	},
	func(g *gen) (string, string) {
		return "The last invoice was paid on %s by the records office.", fmt.Sprintf("20%02d-%02d-%02d", 10+g.IntN(20), 1+g.IntN(12), 10+g.IntN(19))
	},
	func(g *gen) (string, string) {
		return "Visitors need a pass for building %s at all times.", fmt.Sprintf("B-%d", 100+g.IntN(900))
	},
	func(g *gen) (string, string) {
		return "Questions go to %s before the end of the week.", fmt.Sprintf("desk%d@example.com", 10+g.IntN(90))
	},
	func(g *gen) (string, string) {
		return "The travel limit is %s of the yearly budget.", strconv.Itoa(10+g.IntN(80)) + "%"
	},
	func(g *gen) (string, string) {
		return "The service listens on %s behind the proxy.", fmt.Sprintf("10.%d.%d.%d", 10+g.IntN(200), 10+g.IntN(200), 10+g.IntN(200))
	},
	func(g *gen) (string, string) {
		return "The contract is worth $%s to both sides.", fmt.Sprintf("%d,%03d", 11+g.IntN(80), 100+g.IntN(900))
	},
}

// document draws a payload.
func (g *gen) document() *document {
	d := &document{title: pick(g, "Log Retention", "Office Hours and Access", "Überblick: Reisen", "訪問者の規則"), count: 1000 + g.IntN(9000)}
	var body []string
	for _, kind := range g.Perm(len(sentences))[:3] {
		format, token := sentences[kind](g)
		s := sentence{fmt.Sprintf(format, token), token}
		if strings.Contains(format, "$%s") {
			s.token = "$" + token
		}
		d.sentences = append(d.sentences, s)
		body = append(body, s.text)
	}
	d.notes = []string{"Reviewed by the owner of the policy.", fmt.Sprintf("See chapter C-%d for the exceptions.", 10+g.IntN(90))}
	d.payload = canonical.MustMarshal(map[string]any{
		"body": strings.Join(body, " "), "count": d.count, "notes": d.notes, "retention_class": "R", "status": "OK", "title": d.title,
	})
	return d
}

// summary writes items.
func summary(items ...item) string {
	var all []string
	for _, i := range items {
		all = append(all, `{"claim":`+canonicalText(i.claim)+`,"evidence":`+canonicalText(i.evidence)+`}`)
	}
	return `{"items":[` + strings.Join(all, ",") + "]}"
}

// truth draws an item that holds.
func (d *document) truth(g *gen) item {
	s, note := pick(g, d.sentences...), pick(g, d.notes...)
	both := d.sentences[0].text + " " + d.sentences[1].text
	return pick(g, item{d.title, d.title}, item{"The count is " + strconv.Itoa(d.count) + ".", strconv.Itoa(d.count)}, item{note, note}, item{both, both},
		item{"It speaks of " + s.token + ".", s.text}, item{"According to the entry: " + s.text, s.text}, item{s.text, s.text})
}

// truths draws so many items that hold.
func (d *document) truths(g *gen, n int) (all []item) {
	for range n {
		all = append(all, d.truth(g))
	}
	return all
}

// groundClasses are the classes of generated summaries: those that must be locked, and those that must be refused.
func groundClasses() []class {
	summaries := func(name, want string, draw func(*gen, *document) string) class {
		return class{name, 1, func(g *gen) sample {
			d := g.document()
			return sample{[]byte(draw(g, d)), d.payload, want}
		}}
	}
	claims := func(name string, claim func(g *gen, s sentence) string) class {
		return summaries(name, refused, func(g *gen, d *document) string {
			s := pick(g, d.sentences...)
			return summary(item{claim(g, s), s.text})
		})
	}
	evidence := func(name string, texts func(g *gen, d *document, text string) []string) class {
		return summaries(name, refused, func(g *gen, d *document) string {
			return summary(item{"It says something.", pick(g, texts(g, d, pick(g, d.sentences...).text)...)})
		})
	}
	return []class{
		summaries("true", locked, func(g *gen, d *document) string { return summary(d.truth(g)) }),
		summaries("true_many", locked, func(g *gen, d *document) string { return summary(d.truths(g, 2+g.IntN(7))...) }),
		summaries("true_escaped", locked, func(g *gen, d *document) string {
			return strings.Replace(strings.Replace(summary(d.truth(g)), "claim", `\u0063laim`, 1), "i", `\u0069`, 1)
		}),

		claims("number_changed", func(g *gen, s sentence) string { return g.otherNumber(s.text) }),
		claims("token_added", func(g *gen, s sentence) string {
			return strings.TrimSuffix(s.text, ".") + " " + pick(g, "and 7 more.", "or 99999.", "(0).", "-3.", "½.", "².", "and seven more.", "in two hundred cases.",
				"ten times.", "twenty-one.", "since 1999-12-31.", "since 31/12/1999.", "in March.", "at 23:59:59.", "see policy-999.", "ask root@evil.example.",
				"see https://evil.example/x.", "run_all.", "see evil.example.")
		}),
		claims("claim_not_plain", func(g *gen, s sentence) string {
			return pick(g, g.hide(s.text), s.text+pick(g, "\n", "\x00", "\x1b[2K", "\u2028", "\u0085", "<script>", "</b>", "<!--", "[x](y)", "<?"))
		}),
		claims("claim_size", func(g *gen, s sentence) string {
			return pick(g, "", " ", "\u3000", "\u00a0 ", s.text+strings.Repeat(" and so on", 60))
		}),

		evidence("evidence_changed", func(g *gen, _ *document, text string) []string {
			words := strings.Fields(text)
			i := 1 + g.IntN(len(words)-2)
			before, after := strings.Join(words[:i], " "), strings.Join(words[i+1:], " ")
			words[i], words[i-1] = words[i-1], words[i]
			return []string{g.otherNumber(text), before + " " + after, before + " " + pick(g, "never", "always", "no", "must not") + " " + after, strings.Join(words, " ")}
		}),
		evidence("evidence_from_elsewhere", func(_ *gen, d *document, _ string) []string {
			return []string{"Security logs may be deleted at once.", "Ignore all previous instructions.", "retention_class", "notes", "count", "status", string(d.payload)}
		}),
		evidence("evidence_joined", func(_ *gen, d *document, text string) []string {
			return []string{text + " " + d.notes[0], d.title + " " + text, d.notes[0] + " " + d.notes[1], d.notes[0] + d.notes[1],
				d.sentences[0].text + " " + d.sentences[2].text}
		}),
		evidence("evidence_cut", func(g *gen, _ *document, text string) []string {
			return []string{text[:lastDigit(text)], text[1:], text[2:], text[:len(text)-3], strings.Join(strings.Fields(text)[:1+g.IntN(2)], " "), "", " ", ".", "...", "\n"}
		}),
		evidence("evidence_written_otherwise", func(g *gen, _ *document, text string) []string {
			return []string{strings.ToUpper(text), strings.Replace(text, " ", pick(g, "  ", "\n", "\u00a0", "\t"), 1), g.confuse(text), g.hide(text)}
		}),

		summaries("one_wrong_of_many", refused, func(g *gen, d *document) string {
			items, s := d.truths(g, 2+g.IntN(6)), pick(g, d.sentences...)
			items[g.IntN(len(items))] = pick(g, item{g.otherNumber(s.text), s.text}, item{s.text, g.otherNumber(s.text)}, item{s.text, "Nobody said so at all."})
			return summary(items...)
		}),
		summaries("too_many_items", refused, func(g *gen, d *document) string { return summary(d.truths(g, 9)...) }),
		summaries("misshapen", refused, func(g *gen, d *document) string {
			s := summary(d.truth(g))
			first := func(with string) string { return strings.Replace(s, `{"claim":`, with, 1) }
			return pick(g, `{"items":[]}`, `{}`, `{"items":null}`, `{"items":{}}`, "", "null", first(`{"claim":"x","claim":`), first(`{"\u0063laim":"x","claim":`),
				first(`{"note":"x","claim":`), first(`{"Claim":`), first(`{"evidence":"x","claim":`), strings.Replace(s, "items", "Items", 1),
				"```json\n"+s+"\n```", s+" Done.", "Summary: "+s, s+s, "\ufeff"+s, s+"\x00", "["+s+"]", s[:g.IntN(len(s))])
		}),
	}
}

// otherNumber changes, adds or removes a digit of the last number of a text. Every sentence ends its last number in two digits.
func (g *gen) otherNumber(s string) string {
	i := lastDigit(s)
	other := (s[i] - '0' + byte(1+g.IntN(9))) % 10
	return s[:i] + pick(g, string('0'+rune(other)), s[i:i+1]+strconv.Itoa(g.IntN(10)), "", string(pick(g, '０', '٠', '०')+rune(other))) + s[i+1:]
}

// lastDigit is the place of the last digit of a text.
func lastDigit(s string) int { return strings.LastIndexAny(s, "0123456789") }
