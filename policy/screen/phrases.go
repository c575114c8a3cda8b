package screen

import "strings"

// between matches the text between two words of one sentence.
const between = `[^\w.;:?!]+`

// The words that excuse a request, before the verb, between verb and object and behind the object.
// A word means all words that begin with it; with a dot, only itself. Every rule contains them, and
// every trace contains the rules, so the lists are short.
var (
	excuseBefore = wordPattern(`prevent detect attempt against. protect attacker hackers adversar criminal prohibit
		forbid who. tries. tried. may.`)
	excuseWithin = wordPattern(`about. against. on. from. help. report ticket summar polic guid train detect prevent
		protect anti avoid stop. block remov rid. mitigat inciden aware respon recover alert scan rule. rules.
		article procedure checklist overview mention search audit standard faq log. logs. review plan. know. understand spot. recogni
		identif`)
	excuseBehind = wordPattern(`polic aware train inciden respon prevent protect detect mitigat recover report scan
		filter analy alert assess audit complian standard procedur guid playbook control risk simulat test. tests.
		ticket case. cases. article faq statistic remov rotat manag storage vault review summar trend plan. plans. exercise
		requirement rule. rules. course. insurance threat submi attempt expir reset length screening ban. safety permit. bounty exception`)
)

func wordPattern(list string) string {
	var exact, begin []string
	for _, w := range strings.Fields(list) {
		if e, ok := strings.CutSuffix(w, "."); ok {
			exact = append(exact, e)
		} else {
			begin = append(begin, w)
		}
	}
	return `(?:` + strings.Join(exact, "|") + `)\b|(?:` + strings.Join(begin, "|") + `)\w*`
}

// anyOf returns a pattern for one of the space-separated alternatives; "_" stands for an optional
// space or hyphen, "~" for one of these.
func anyOf(alternatives string) string {
	p := strings.Join(strings.Fields(alternatives), "|")
	return "(?:" + gaps.Replace(p) + ")"
}

var gaps = strings.NewReplacer("_", `[ \-]?`, "~", `[ \-]`)

// inflectVerbs returns alternatives for verbs by their stems: "writ" in e is write and writing,
// "run" in plain is run and running.
func inflectVerbs(e, plain string) string {
	return anyOf(e) + `(?:e|ing)|` + anyOf(plain) + `(?:\w?ing)?`
}

// near matches up to four words between verb and object, and far the same with words that may
// excuse. Both begin with the article that [joinSplit] puts behind a verb with spaces between its
// letters ("w r i t e a").
const near = `a?(?:` + between + `\w+){0,4}?(?:` + between + `)?`

var far = `a?(?:` + between + `(?:(?P<but_within>` + excuseWithin + `)|\w+)){0,4}?(?:` + between + `)?`

// requestPattern makes the pattern of a rule from alternatives "verb … object". Words before the
// verb and behind the object may excuse.
func requestPattern(alternatives ...string) string {
	return `(?:\b(?:(?P<but_before>` + excuseBefore + `)[^\w.;:?!,]+(?:\w+[^\w.;:?!,]+){0,2}?)?)\b(?:` +
		strings.Join(alternatives, "|") + `)\b(?:[ \-/&]+(?P<but_behind>` + excuseBehind + `))?`
}
