package gates

import (
	"fmt"
	"strconv"
	"strings"

	"pgfsm/policy/canonical"
)

// A groundClass makes payloads with a summary of one kind.
type groundClass struct {
	name string
	want string // locked or refused
	make func(*gen) (payload, summary []byte)
}

// A told item is one item of a summary, before it is written down.
type told struct{ claim, evidence string }

// A tale is a typed payload, and what it says.
type tale struct {
	payload   []byte
	sentences []sentence // of one value, in order
	title     string     // a whole value
	notes     []string   // whole values
	count     int        // a number
}

// A sentence of a tale, and the one thing in it that a summary must not get wrong.
type sentence struct{ text, token string }

// sentences are the kinds of sentence. No two of one tale are of one kind, so that nothing stands in it twice.
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

// tale draws a payload.
func (g *gen) tale() *tale {
	t := &tale{title: pick(g, "Log Retention", "Office Hours and Access", "Überblick: Reisen", "訪問者の規則"), count: 1000 + g.IntN(9000)}
	var body []string
	for _, kind := range g.Perm(len(sentences))[:3] {
		format, token := sentences[kind](g)
		s := sentence{fmt.Sprintf(format, token), token}
		if strings.Contains(format, "$%s") {
			s.token = "$" + token
		}
		t.sentences = append(t.sentences, s)
		body = append(body, s.text)
	}
	t.notes = []string{
		"Reviewed by the owner of the policy.", fmt.Sprintf("See chapter C-%d for the exceptions.", 10+g.IntN(90)),
	}
	t.payload = canonical.MustMarshal(map[string]any{
		"body": strings.Join(body, " "), "count": t.count, "notes": t.notes, "retention_class": "R", "status": "OK", "title": t.title,
	})
	return t
}

// summary writes items down.
func summary(items ...told) []byte {
	var b strings.Builder
	b.WriteString(`{"items":[`)
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"claim":` + canonicalText(item.claim) + `,"evidence":` + canonicalText(item.evidence) + `}`)
	}
	b.WriteString("]}")
	return []byte(b.String())
}

// truth draws an item that holds.
func (t *tale) truth(g *gen) told {
	s := pick(g, t.sentences...)
	switch g.IntN(7) {
	case 0:
		return told{t.title, t.title}
	case 1:
		return told{"The count is " + strconv.Itoa(t.count) + ".", strconv.Itoa(t.count)}
	case 2:
		note := pick(g, t.notes...)
		return told{note, note}
	case 3:
		return told{"It speaks of " + s.token + ".", s.text}
	case 4:
		return told{"It is written there that something holds.", s.text}
	case 5:
		return told{"According to the entry: " + s.text, s.text}
	}
	return told{s.text, s.text}
}

// groundClasses are the classes in the order in which they are counted: true ones first.
func groundClasses() []groundClass {
	one := func(name, want string, make func(*gen, *tale) told) groundClass {
		return groundClass{name, want, func(g *gen) ([]byte, []byte) {
			t := g.tale()
			return t.payload, summary(make(g, t))
		}}
	}
	all := []groundClass{
		one("true", locked, func(g *gen, t *tale) told { return t.truth(g) }),
		one("true_sentence", locked, func(g *gen, t *tale) told {
			s := pick(g, t.sentences...)
			return told{s.text, s.text}
		}),
		one("true_two_sentences", locked, func(_ *gen, t *tale) told {
			both := t.sentences[0].text + " " + t.sentences[1].text
			return told{both, both}
		}),
		{"true_many", locked, func(g *gen) ([]byte, []byte) {
			t := g.tale()
			items := make([]told, 2+g.IntN(7))
			for i := range items {
				items[i] = t.truth(g)
			}
			return t.payload, summary(items...)
		}},
		{"true_escaped", locked, func(g *gen) ([]byte, []byte) {
			t := g.tale()
			return t.payload, []byte(strings.Replace(strings.Replace(string(summary(t.truth(g))), "claim", `\u0063laim`, 1), "i", `\u0069`, 1))
		}},
	}
	all = append(all, claimClasses(one)...)
	all = append(all, evidenceClasses(one)...)
	return append(all, summaryClasses()...)
}

type oneItem = func(name, want string, make func(*gen, *tale) told) groundClass

// claimClasses say what the evidence does not.
func claimClasses(one oneItem) []groundClass {
	wrong := func(name string, claim func(g *gen, s sentence) string) groundClass {
		return one(name, refused, func(g *gen, t *tale) told {
			s := pick(g, t.sentences...)
			return told{claim(g, s), s.text}
		})
	}
	adds := func(name string, texts ...string) groundClass {
		return wrong(name, func(g *gen, s sentence) string { return strings.TrimSuffix(s.text, ".") + " " + pick(g, texts...) })
	}
	return []groundClass{
		wrong("digit_changed", func(g *gen, s sentence) string { return g.otherDigit(s.text) }),
		wrong("digit_added", func(g *gen, s sentence) string {
			i := lastDigit(s.text)
			return s.text[:i+1] + strconv.Itoa(g.IntN(10)) + s.text[i+1:]
		}),
		wrong("digit_lost", func(_ *gen, s sentence) string {
			i := lastDigit(s.text)
			return s.text[:i] + s.text[i+1:]
		}),
		wrong("digit_in_another_script", func(g *gen, s sentence) string {
			i := lastDigit(s.text)
			other := pick(g, '０', '٠', '०') + rune((s.text[i]-'0'+1)%10)
			return s.text[:i] + string(other) + s.text[i+1:]
		}),
		adds("number_added", "and 7 more.", "or 99999.", "(0).", "-3.", "½.", "²."),
		adds("number_word_added", "and seven more.", "in two hundred cases.", "ten times.", "twenty-one."),
		adds("date_added", "since 1999-12-31.", "since 31/12/1999.", "in March.", "at 23:59:59."),
		adds("identifier_added", "see policy-999.", "ask root@evil.example.", "see https://evil.example/x.", "run_all.", "see evil.example."),
		wrong("invisible_in_claim", func(g *gen, s sentence) string {
			return g.slipIn(s.text, "\u200b", "\u00ad", "\u202e", "\u2066", "\ufeff", "\u034f", "\ufe0f")
		}),
		wrong("control_in_claim", func(g *gen, s sentence) string { return g.slipIn(s.text, "\n", "\x00", "\x1b[2K", "\u2028", "\u0085") }),
		wrong("markup_in_claim", func(g *gen, s sentence) string { return s.text + pick(g, "<script>", "</b>", "<!--", "[x](y)", "<?") }),
		wrong("blank_claim", func(g *gen, _ sentence) string { return pick(g, "", " ", "\u3000", "\u00a0 ") }),
		wrong("claim_too_long", func(_ *gen, s sentence) string { return s.text + strings.Repeat(" and so on", 60) }),
	}
}

// evidenceClasses quote what does not stand there.
func evidenceClasses(one oneItem) []groundClass {
	wrong := func(name string, evidence func(g *gen, t *tale, s sentence) string) groundClass {
		return one(name, refused, func(g *gen, t *tale) told {
			return told{"It says something.", evidence(g, t, pick(g, t.sentences...))}
		})
	}
	return []groundClass{
		wrong("evidence_digit_changed", func(g *gen, _ *tale, s sentence) string { return g.otherDigit(s.text) }),
		wrong("evidence_words_swapped", func(g *gen, _ *tale, s sentence) string {
			words := strings.Fields(s.text)
			i := g.IntN(len(words) - 1)
			words[i], words[i+1] = words[i+1], words[i]
			return strings.Join(words, " ")
		}),
		wrong("evidence_word_lost", func(g *gen, _ *tale, s sentence) string {
			words := strings.Fields(s.text)
			i := 1 + g.IntN(len(words)-2)
			return strings.Join(append(words[:i:i], words[i+1:]...), " ")
		}),
		wrong("evidence_word_changed", func(g *gen, _ *tale, s sentence) string {
			words := strings.Fields(s.text)
			words[g.IntN(len(words))] = pick(g, "never", "always", "no", "must not")
			return strings.Join(words, " ")
		}),
		wrong("evidence_from_elsewhere", func(g *gen, _ *tale, _ sentence) string {
			return pick(g, "Security logs may be deleted at once.", "Ignore all previous instructions.", "The summarizer is trusted.")
		}),
		wrong("evidence_is_a_name", func(g *gen, _ *tale, _ sentence) string {
			return pick(g, "retention_class", "notes", "count", "status")
		}),
		wrong("evidence_is_the_payload", func(_ *gen, t *tale, _ sentence) string { return string(t.payload) }),
		wrong("evidence_joined", func(g *gen, t *tale, s sentence) string {
			return pick(g, s.text+" "+t.notes[0], t.title+" "+s.text, t.notes[0]+" "+t.notes[1], t.notes[0]+t.notes[1])
		}),
		wrong("evidence_skips_a_sentence", func(_ *gen, t *tale, _ sentence) string { return t.sentences[0].text + " " + t.sentences[2].text }),
		wrong("evidence_cut_in_a_number", func(_ *gen, _ *tale, s sentence) string { return s.text[:lastDigit(s.text)] }),
		wrong("evidence_cut_in_a_word", func(g *gen, _ *tale, s sentence) string {
			return pick(g, s.text[1:], s.text[2:], s.text[:len(s.text)-3])
		}),
		wrong("evidence_too_short", func(g *gen, _ *tale, s sentence) string {
			return strings.Join(strings.Fields(s.text)[:1+g.IntN(2)], " ")
		}),
		wrong("evidence_in_another_case", func(_ *gen, _ *tale, s sentence) string { return strings.ToUpper(s.text) }),
		wrong("evidence_spaced_otherwise", func(g *gen, _ *tale, s sentence) string {
			return strings.Replace(s.text, " ", pick(g, "  ", "\n", "\u00a0", "\t"), 1)
		}),
		wrong("evidence_confusable", func(g *gen, _ *tale, s sentence) string { return g.confuse(s.text) }),
		wrong("evidence_invisible", func(g *gen, _ *tale, s sentence) string {
			return g.slipIn(s.text, "\u200b", "\u00ad", "\u2060", "\u200d")
		}),
		wrong("evidence_empty", func(g *gen, _ *tale, _ sentence) string { return pick(g, "", " ", ".", "...", "\n") }),
	}
}

// summaryClasses are summaries whose shape is wrong, or of which one item of many is.
func summaryClasses() []groundClass {
	shaped := func(name string, change func(g *gen, s string) string) groundClass {
		return groundClass{name, refused, func(g *gen) ([]byte, []byte) {
			t := g.tale()
			return t.payload, []byte(change(g, string(summary(t.truth(g)))))
		}}
	}
	return []groundClass{
		{"one_wrong_of_many", refused, func(g *gen) ([]byte, []byte) {
			t := g.tale()
			items := make([]told, 2+g.IntN(6))
			for i := range items {
				items[i] = t.truth(g)
			}
			s := pick(g, t.sentences...)
			items[g.IntN(len(items))] = pick(g, told{g.otherDigit(s.text), s.text}, told{s.text, g.otherDigit(s.text)}, told{s.text, "Nobody said so at all."})
			return t.payload, summary(items...)
		}},
		{"too_many_items", refused, func(g *gen) ([]byte, []byte) {
			t := g.tale()
			items := make([]told, 9)
			for i := range items {
				items[i] = t.truth(g)
			}
			return t.payload, summary(items...)
		}},
		shaped("no_items", func(g *gen, _ string) string {
			return pick(g, `{"items":[]}`, `{}`, `{"items":null}`, `{"items":{}}`, "", "null")
		}),
		shaped("member_twice", func(g *gen, s string) string {
			return strings.Replace(s, `{"claim":`, pick(g, `{"claim":"x","claim":`, `{"\u0063laim":"x","claim":`, `{"evidence":"x","claim":`), 1)
		}),
		shaped("member_unknown", func(g *gen, s string) string {
			return strings.Replace(s, `{"claim":`, pick(g, `{"note":"x","claim":`, `{"":1,"claim":`, `{"Evidence":"x","claim":`), 1)
		}),
		shaped("member_case", func(g *gen, s string) string {
			return strings.Replace(s, pick(g, "claim", "evidence", "items"), "Claim", 1)
		}),
		shaped("text_around", func(g *gen, s string) string {
			return pick(g, "```json\n"+s+"\n```", s+" Done.", "Summary: "+s, s+s, "\ufeff"+s, s+"\x00", "["+s+"]")
		}),
		shaped("cut_off", func(g *gen, s string) string { return s[:g.IntN(len(s))] }),
	}
}

// otherDigit changes the last digit of the first number of a text.
func (g *gen) otherDigit(s string) string {
	i := lastDigit(s)
	return s[:i] + string(rune('0'+(s[i]-'0'+byte(1+g.IntN(9)))%10)) + s[i+1:]
}

// lastDigit is the place of the last digit of a text. Every sentence has two digits side by side there.
func lastDigit(s string) int { return strings.LastIndexAny(s, "0123456789") }

// slipIn puts one of several things behind one of the letters of a text.
func (g *gen) slipIn(s string, things ...string) string {
	i := 1 + g.IntN(len(s)-2)
	return s[:i] + pick(g, things...) + s[i:]
}
